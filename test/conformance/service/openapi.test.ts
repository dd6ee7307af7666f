import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { exchange } from '../../helpers/raw-http.js'
import { runPlants } from '../../helpers/run.js'
import { serve } from '../../helpers/service.js'

const validator = new Validator()
const validity = await validator.validate(JSON.parse((await runPlants(['openapi'])).out))
const description = JSON.parse(JSON.stringify(validator.resolveRefs()))
const { Plant, NewPlant, PlantPatch, Error: ErrorSchema } = description.components.schemas

describe('the description of the interface', () => {
  test('is what the service gives', async () => {
    const service = await serve()
    const { body } = await exchange(service, { method: 'GET', target: '/openapi.json' })
    const { out } = await runPlants(['openapi'])
    expect({ ...JSON.parse(body), servers: undefined }).toEqual({
      ...JSON.parse(out),
      servers: undefined,
    })
  })

  test('is OpenAPI 3.1, as a validator of others says', () => {
    expect({ ...validity, version: validator.version }).toEqual({ valid: true, version: '3.1' })
  })

  test("has the specification's version, license, operation and authentication, and the idempotency key", () => {
    const { info, security, components, paths } = description
    const { parameters, responses } = paths['/plants'].post
    expect(info).toMatchObject({ version: '1.0.0', license: { name: 'MIT', identifier: 'MIT' } })
    expect(security).toEqual([{ bearer: [] }])
    expect(components.securitySchemes).toEqual({ bearer: { type: 'http', scheme: 'bearer' } })
    expect(parameters).toMatchObject([{ name: 'Idempotency-Key', in: 'header' }])
    expect(Object.keys(responses)).toEqual(['200', '400', 'default'])
  })

  test('says that a page is an array, and what a limit is', () => {
    const { parameters, responses } = description.paths['/plants'].get
    const { schema } = responses['200'].content['application/json']
    expect(schema).toMatchObject({ type: 'array' })
    const limit = { type: 'integer', minimum: 1, maximum: 1000, default: 100 }
    expect(parameters).toContainEqual(expect.objectContaining({ name: 'limit', schema: limit }))
  })

  test("has the specification's shapes", () => {
    const [plant, { required, properties }] = NewPlant.allOf
    expect(plant).toEqual(Plant)
    expect([Plant.required, required, ErrorSchema.required]).toEqual([
      ['name'],
      ['id'],
      ['error', 'message'],
    ])
    const shapes = [Plant.properties, properties, PlantPatch.properties, ErrorSchema.properties]
    expect(shapes).toMatchObject([
      { name: { type: 'string' }, tag: { type: 'string' } },
      { id: { type: 'integer', format: 'int64' } },
      { name: { type: 'string' }, tag: { type: ['string', 'null'] } },
      { error: { type: 'integer', format: 'int32' }, message: { type: 'string' } },
    ])
  })
})
