import { Validator } from '@seriousme/openapi-schema-validator'
import { expect, test } from 'vitest'
import { runPlants } from '../helpers/sandbox/run.js'
import { exchangeOnce } from '../helpers/scripted-server/raw-http.js'
import { serve } from '../helpers/scripted-server/service.js'

const validator = new Validator()
const validity = await validator.validate(JSON.parse((await runPlants(['openapi'])).out))
const description = JSON.parse(JSON.stringify(validator.resolveRefs()))
const { Plant, NewPlant, PlantPatch, Error: ErrorSchema } = description.components.schemas

test('a service serves the description that plants openapi prints', async () => {
  const service = await serve()
  const { body } = await exchangeOnce(service, { method: 'GET', target: '/openapi.json' })
  const printed = JSON.parse((await runPlants(['openapi'])).out)
  expect({ ...JSON.parse(body), servers: 0 }).toEqual({ ...printed, servers: 0 })
})

test('the description of the service is valid OpenAPI 3.1', () => {
  expect({ ...validity, version: validator.version }).toEqual({ valid: true, version: '3.1' })
})

test("the description of the service has the specification's create, bearer tokens, and list of plants", () => {
  const { info, security, components, paths } = description
  expect(info).toMatchObject({ version: '1.0.0', license: { name: 'MIT', identifier: 'MIT' } })
  expect(security).toEqual([{ bearer: [] }])
  expect(components.securitySchemes).toEqual({ bearer: { type: 'http', scheme: 'bearer' } })
  const { get, post } = paths['/plants']
  expect(post.parameters).toMatchObject([{ name: 'Idempotency-Key', in: 'header' }])
  expect(Object.keys(post.responses)).toEqual(['200', '400', 'default'])
  expect(get.responses['200'].content['application/json'].schema.type).toBe('array')
  const schema = { type: 'integer', minimum: 1, maximum: 1000, default: 100 }
  expect(get.parameters).toContainEqual(expect.objectContaining({ name: 'limit', schema }))
})

test("the description of the service has the specification's Plant, NewPlant and Error, and a PlantPatch", () => {
  const [plant, { required, properties }] = NewPlant.allOf
  expect(plant).toEqual(Plant)
  const all = [Plant.required, required, ErrorSchema.required]
  expect(all).toEqual([['name'], ['id'], ['error', 'message']])
  const shapes = [Plant.properties, properties, PlantPatch.properties, ErrorSchema.properties]
  expect(shapes).toMatchObject([
    { name: { type: 'string' }, tag: { type: 'string' } },
    { id: { type: 'integer', format: 'int64' } },
    { name: { type: 'string' }, tag: { type: ['string', 'null'] } },
    { error: { type: 'integer', format: 'int32' }, message: { type: 'string' } },
  ])
})
