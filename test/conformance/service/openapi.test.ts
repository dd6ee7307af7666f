import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { fromJSONSchema } from 'zod'
import { DatabaseSync } from '../../helpers/database.js'
import { exchange } from '../../helpers/raw-http.js'
import { runPlants } from '../../helpers/run.js'
import { serve } from '../../helpers/service.js'

type Schema = Parameters<typeof fromJSONSchema>[0]
type Content = Record<
  'application/json',
  { schema: Schema; examples?: Record<string, { value: unknown }> }
>

interface Operation {
  parameters: {
    name: string
    in: string
    required: boolean
    description: string
    schema: Schema
    example: string
  }[]
  requestBody: { content: Content }
  responses: Record<string, { content: Content }>
}

interface Shape {
  required: string[]
  properties: Record<string, { type: string; format?: string }>
}

const validator = new Validator()
const validity = await validator.validate(JSON.parse((await runPlants(['openapi'])).out))
const description = JSON.parse(JSON.stringify(validator.resolveRefs()))
const { parameters, requestBody, responses }: Operation = description.paths['/plants'].post
const { examples: requests = {} } = requestBody.content['application/json']
const examplesOf = (status: string) => responses[status]?.content['application/json'].examples ?? {}

describe('the description of the interface', () => {
  test.each([
    ['', []],
    ['/v1', ['--base-path', '/v1']],
  ])('is printed as the service gives it, below the base path "%s"', async (basePath, args) => {
    const target = `${basePath}/openapi.json`
    const { status, body } = await exchange(await serve(args), { method: 'GET', target })
    expect(status).toBe(200)
    expect(await runPlants(['openapi', ...args])).toEqual({ code: 0, out: `${body}\n`, err: '' })
    expect(JSON.parse(body).servers).toEqual([{ url: basePath || '/' }])
  })

  test('is OpenAPI 3.1, as a validator of others says', () => {
    expect({ ...validity, version: validator.version }).toEqual({ valid: true, version: '3.1' })
  })

  test("has the specification's version, license, operation and authentication, and the idempotency key", () => {
    const { info, security, components } = description
    expect(info).toMatchObject({ version: '1.0.0', license: { name: 'MIT', identifier: 'MIT' } })
    expect(security).toEqual([{ bearer: [] }])
    expect(components.securitySchemes).toEqual({ bearer: { type: 'http', scheme: 'bearer' } })
    expect(parameters).toMatchObject([{ name: 'Idempotency-Key', in: 'header', required: false }])
    expect(Object.keys(responses)).toEqual(['200', '400', '408', '431', '500', '503'])
  })

  test('says that a page is an array, and nothing else, and what a limit is', () => {
    const { parameters: ofList, responses: pages }: Operation = description.paths['/plants'].get
    const { content } = pages['200'] ?? {}
    expect(content).toMatchObject({ 'application/json': { schema: { type: 'array' } } })
    expect(Object.keys(content ?? {})).toEqual(['application/json'])
    const limit = ofList.find(({ name }) => name === 'limit')
    expect(limit?.description).toMatch(/\b100\b.*A stream takes any limit/)
    expect(limit?.schema).toEqual({ type: 'integer', minimum: 1, maximum: 1000 })
  })

  test('lists 409 for a change, which a constraint that somebody added can refuse', async () => {
    const service = await serve([], { rights: 'create,update' })
    for (const id of [1, 2]) await exchange(service, { body: `{"id":${id},"name":"Fern ${id}"}` })
    const db = new DatabaseSync(join(service.folder, 'data/plants.db'))
    db.exec('CREATE UNIQUE INDEX names ON plants (name)')
    db.close()
    const body = '{"name":"Fern 1"}'
    const { status } = await exchange(service, { method: 'PATCH', target: '/plants/2', body })
    const { patch, delete: remove } = description.paths['/plants/{id}']
    const listed = [patch, remove].map((operation: Operation) =>
      Object.keys(operation.responses).includes('409'),
    )
    expect({ status, listed }).toEqual({ status: 409, listed: [true, true] })
  })

  test("has the specification's shapes", () => {
    const shapes = Object.entries<Shape>(description.components.schemas).map(
      ([name, { required = [], properties }]) => {
        const fields = Object.entries(properties).map(
          ([field, { type, format = '' }]) => `${field} ${type} ${format}`,
        )
        return [name, required.join(), ...fields.map((field) => field.trim())]
      },
    )
    expect(shapes).toEqual([
      ['Plant', 'name', 'name string', 'tag string'],
      ['NewPlant', 'id,name', 'id integer int64', 'name string', 'tag string'],
      ['StoredPlant', 'id,name', 'id integer int64', 'name string', 'tag string'],
      ['PlantPatch', '', 'name string', 'tag string,null'],
      ['Error', 'error,message', 'error integer int32', 'message string'],
    ])
  })
})

describe('an example in the description', () => {
  const bodies = [requestBody, ...Object.values(responses)].flatMap(({ content }) => {
    const { schema, examples = {} } = content['application/json']
    return Object.entries(examples).map(([name, { value }]) => ({ name, schema, value }))
  })
  const keys = parameters.map(({ name, schema, example }) => ({ name, schema, value: example }))

  test.each([...bodies, ...keys])('fits its schema: $name, $value', ({ schema, value }) => {
    expect(fromJSONSchema(schema).safeParse(value)).toMatchObject({ success: true })
  })

  test('of a response is what the service says', async () => {
    const service = await serve()
    const answerTo = async (plant: unknown, token = service.token) => {
      const { body } = await exchange({ ...service, token }, { body: JSON.stringify(plant) })
      return { value: JSON.parse(body) }
    }
    const [withTag, withoutTag] = [requests['withTag']?.value, requests['withoutTag']?.value]
    const accepted = { withTag: await answerTo(withTag), withoutTag: await answerTo(withoutTag) }
    const rejected = { exists: await answerTo(withTag), token: await answerTo(withTag, 'wrong') }
    expect([accepted, rejected]).toEqual([examplesOf('200'), examplesOf('400')])
  })
})
