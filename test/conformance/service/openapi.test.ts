import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fromJSONSchema } from 'zod'
import { DatabaseSync } from '../../helpers/database.js'
import { connectTo, exchange, type RawAnswer, type RawRequest } from '../../helpers/raw-http.js'
import { runPlants } from '../../helpers/run.js'
import { serve, serveForAll } from '../../helpers/service.js'

type Schema = Parameters<typeof fromJSONSchema>[0]
type Content = Record<'application/json', { schema: Schema; examples?: Record<string, { value: unknown }> }>

interface Operation {
  parameters: { name: string; in: string; required: boolean; description: string; schema: Schema; example: string }[]
  requestBody: { content: Content }
  responses: Record<string, { headers?: Record<string, unknown>; content: Content }>
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
const sent = (plant: unknown, headers = {}): RawRequest => ({ headers, body: JSON.stringify(plant) })

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
    const { info, paths, security, components } = description
    expect(info).toMatchObject({ version: '1.0.0', license: { name: 'MIT', identifier: 'MIT' } })
    expect(security).toEqual([{ bearer: [] }])
    expect(components.securitySchemes).toEqual({ bearer: { type: 'http', scheme: 'bearer' } })
    expect(Object.entries<object>(paths).map(([path, methods]) => [path, ...Object.keys(methods)])).toEqual([
      ['/plants', 'post', 'get'],
      ['/plants/{id}', 'get', 'put', 'delete'],
    ])
    expect(parameters).toMatchObject([{ name: 'Idempotency-Key', in: 'header', required: false }])
  })

  test('leaves the limit of a list open, which a stream does not have: both numbers are in its description', () => {
    const list: Operation = description.paths['/plants'].get
    const limit = list.parameters.find(({ name }) => name === 'limit')
    expect(limit?.description).toMatch(/\b1000\b.*\b100\b/)
    expect(limit?.schema).toEqual({ type: 'integer', minimum: 1 })
  })

  test("has the specification's shapes", () => {
    const shapes = Object.entries<Shape>(description.components.schemas).map(([name, { required, properties }]) => {
      const fields = Object.entries(properties).map(([field, { type, format = '' }]) => `${field} ${type} ${format}`)
      return [name, required.join(), ...fields.map((field) => field.trim())]
    })
    expect(shapes).toEqual([
      ['Plant', 'name', 'name string', 'tag string'],
      ['NewPlant', 'id,name', 'id integer int64', 'name string', 'tag string'],
      ['StoredPlant', 'id,name', 'id integer int64', 'name string', 'tag string'],
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

  test('of a request gets the response of the same name', async () => {
    const service = await serve()
    const answers: Record<string, unknown> = {}
    for (const [name, { value }] of Object.entries(requests))
      answers[name] = { value: JSON.parse((await exchange(service, sent(value))).body) }
    expect(answers).toEqual(examplesOf('200'))
  })

  test('of an error is what the service says', async () => {
    const service = await serve()
    const request = sent(requests['withTag']?.value)
    await exchange(service, request)
    const answers = {
      exists: await exchange(service, request),
      token: await exchange({ ...service, token: 'wrong' }, request),
    }
    const seen = Object.entries(answers).map(([name, { status, body }]) => [name, { status, value: JSON.parse(body) }])
    expect(seen).toEqual(Object.entries(examplesOf('400')).map(([name, { value }]) => [name, { status: 400, value }]))
  })
})

describe('a response of the service is as the description says for its status:', () => {
  const service = serveForAll(['--timeout', '100ms', '--request-timeout', '1s'])
  const first = async (bytes: string) => (await (await connectTo(service().place)).send(bytes).answers())[0]
  const provocations: Record<string, () => Promise<RawAnswer | undefined>> = {
    200: () => exchange(service(), sent({ id: 1, name: 'Fern' })),
    400: () => exchange({ ...service(), token: '' }, sent({ id: 1 })),
    408: () => first('POST /plants HTTP/1.1\r\n'),
    431: () => first(`POST /plants HTTP/1.1\r\nHost: a\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`),
    503: () => {
      const db = new DatabaseSync(join(service().folder, 'data/plants.db'))
      onTestFinished(() => db.close())
      db.exec('BEGIN IMMEDIATE')
      return exchange(service(), sent({ id: 2, name: 'Fern' }))
    },
  }

  test.each(Object.entries(provocations))('%s', async (status, provoke) => {
    const answer = await provoke()
    const { headers = {}, content } = responses[status] ?? {}
    expect(answer).toMatchObject({ status: Number(status), headers: { 'content-type': 'application/json' } })
    expect(Object.keys(answer?.headers ?? {})).toEqual(
      expect.arrayContaining(Object.keys(headers).map((name) => name.toLowerCase())),
    )
    const schema = content?.['application/json'].schema ?? false
    expect(fromJSONSchema(schema).safeParse(JSON.parse(answer?.body ?? ''))).toMatchObject({ success: true })
  })

  test('there are no others, but for a mistake of the service', () => {
    expect(Object.keys(responses)).toEqual(['200', '400', '408', '431', '500', '503'])
  })
})
