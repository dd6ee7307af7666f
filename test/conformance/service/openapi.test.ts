import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fromJSONSchema } from 'zod'
import { DatabaseSync } from '../../helpers/database.js'
import { runPlants } from '../../helpers/run.js'
import { addressOf, startService } from '../../helpers/service-process.js'
import { temporaryFolder } from '../../helpers/temporary.js'

type Schema = Parameters<typeof fromJSONSchema>[0]
type Content = Record<'application/json', { schema: Schema; examples?: Record<string, { value: unknown }> }>

interface Operation {
  parameters: { name: string; in: string; required: boolean; description: string; schema: Schema; example: string }[]
  requestBody: { content: Content }
  responses: Record<string, { headers?: Record<string, unknown>; content: Content }>
}

/** As far as the tests look into it, and without references. */
interface Description {
  openapi: string
  info: { version: string; license: unknown }
  security: unknown
  paths: Record<'/plants', { post: Operation; get?: Operation }> & Record<string, Record<string, Operation>>
  components: { securitySchemes: unknown; schemas: Record<string, Shape> }
}

interface Shape {
  required: string[]
  properties: Record<string, { type: string; format?: string }>
}

const token = 's3cret-of-this-test'
const validator = new Validator()
const validity = await validator.validate(JSON.parse((await runPlants(['openapi'])).out))
const description = validator.resolveRefs() as unknown as Description // the tests find out whether it is
const { parameters, requestBody, responses } = description.paths['/plants'].post
const { examples: requests = {} } = requestBody.content['application/json']

describe('the description of the interface', () => {
  test.each(['', '/v1'])('is printed as the service gives it, below the base path "%s"', async (basePath) => {
    const args = basePath === '' ? [] : ['--base-path', basePath]
    const { address } = await runningService(args)
    const answer = await fetch(`${address}/openapi.json`)
    const body = await answer.text()
    const whole = {
      status: answer.status,
      type: answer.headers.get('content-type'),
      printed: await runPlants(['openapi', ...args]),
    }
    expect(whole).toEqual({ status: 200, type: 'application/json', printed: { code: 0, out: `${body}\n`, err: '' } })
    expect(JSON.parse(body).servers).toEqual([{ url: basePath || '/' }])
  })

  test('is OpenAPI 3.1, as a validator of others says', () => {
    expect({ ...validity, version: validator.version }).toEqual({ valid: true, version: '3.1' })
  })

  test("has the specification's version, license, operation and authentication, and the idempotency key", () => {
    const { info, paths, security, components } = description
    const operations = Object.entries(paths).map(([path, methods]) => [path, Object.keys(methods)])
    const keys = parameters.map(({ name, in: place, required }) => ({ name, place, required }))
    expect({
      version: info.version,
      license: info.license,
      operations,
      security,
      schemes: components.securitySchemes,
      keys,
    }).toEqual({
      version: '1.0.0',
      license: { name: 'MIT', identifier: 'MIT' },
      operations: [
        ['/plants', ['post', 'get']],
        ['/plants/{id}', ['get', 'put', 'delete']],
      ],
      security: [{ bearer: [] }],
      schemes: { bearer: { type: 'http', scheme: 'bearer' } },
      keys: [{ name: 'Idempotency-Key', place: 'header', required: false }],
    })
  })

  test('leaves the limit of a list open, which a stream does not have: both numbers are in its description', () => {
    const limit = description.paths['/plants'].get?.parameters.find(({ name }) => name === 'limit')
    expect(limit?.description).toMatch(/\b1000\b.*\b100\b/)
    expect(limit?.schema).toEqual({ type: 'integer', minimum: 1 })
  })

  test("has the specification's shapes", () => {
    const shapes = Object.entries(description.components.schemas).map(([name, { required, properties }]) => {
      const fields = Object.entries(properties).map(([field, { type, format }]) => [
        field,
        [type, format].flatMap((word) => word ?? []),
      ])
      return [name, { required, fields: Object.fromEntries(fields) }]
    })
    expect(Object.fromEntries(shapes)).toEqual({
      Plant: { required: ['name'], fields: { name: ['string'], tag: ['string'] } },
      NewPlant: { required: ['id', 'name'], fields: { id: ['integer', 'int64'], name: ['string'], tag: ['string'] } },
      StoredPlant: {
        required: ['id', 'name'],
        fields: { id: ['integer', 'int64'], name: ['string'], tag: ['string'] },
      },
      Error: { required: ['error', 'message'], fields: { error: ['integer', 'int32'], message: ['string'] } },
    })
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

  test('of a request gets the answer of the same name', async () => {
    const { address } = await runningService()
    const { examples } = responses['200']?.content['application/json'] ?? {}
    for (const [name, { value }] of Object.entries(requests)) {
      expect({ name, ...(await post(address, value)) }).toMatchObject({
        name,
        status: 200,
        body: examples?.[name]?.value,
      })
    }
    expect(Object.keys(requests)).toEqual(Object.keys(examples ?? {}))
  })

  test('of a refusal is what the service says', async () => {
    const { address } = await runningService()
    const plant = requests['withTag']?.value
    await post(address, plant)
    const refusals = {
      exists: await post(address, plant),
      token: await post(address, plant, { authorization: 'Bearer wrong' }),
    }
    const answers = Object.entries(refusals).map(([name, { status, body }]) => [name, { status, value: body }])
    const { examples = {} } = responses['400']?.content['application/json'] ?? {}
    expect(answers).toEqual(Object.entries(examples).map(([name, { value }]) => [name, { status: 400, value }]))
  })

  test('of a key makes its request safe to repeat', async () => {
    const { address } = await runningService()
    const headers = { 'idempotency-key': parameters[0]?.example ?? '' }
    for (const name of ['Fern', 'Fern']) {
      expect(await post(address, { id: 1, name }, headers)).toMatchObject({ status: 200, body: { name } })
    }
    expect(await post(address, { id: 1, name: 'Moss' }, headers)).toMatchObject({ status: 400, body: { error: 409 } })
  })
})

describe('an answer of the service is as the description says for its status:', () => {
  const provocations: Record<string, () => Promise<Answer>> = {
    200: async () => post((await runningService()).address, { id: 1, name: 'Fern' }),
    400: async () => post((await runningService()).address, { id: 1 }, { authorization: '' }),
    408: async () => send((await runningService(['--request-timeout', '100ms'])).address, 'POST /plants HTTP/1.1\r\n'),
    431: async () =>
      send((await runningService()).address, `POST /plants HTTP/1.1\r\nHost: a\r\nA: ${'a'.repeat(20_000)}\r\n\r\n`),
    503: async () => {
      const { address, folder } = await runningService(['--timeout', '100ms'])
      const db = new DatabaseSync(join(folder, 'data/plants.db'))
      onTestFinished(() => db.close())
      db.exec('BEGIN IMMEDIATE')
      return post(address, { id: 1, name: 'Fern' })
    },
  }

  test.each(Object.entries(provocations))('%s', async (status, provoke) => {
    const answer = await provoke()
    const { headers = {}, content } = responses[status] ?? { content: undefined }
    const problems = content && fromJSONSchema(content['application/json'].schema).safeParse(answer.body).error
    const missing = Object.keys(headers).filter((name) => !answer.headers.has(name))
    const seen = { status: answer.status, type: answer.headers.get('content-type'), problems, missing }
    expect(seen).toEqual({ status: Number(status), type: 'application/json', problems: undefined, missing: [] })
  })

  test('there are no others, but for a mistake of the service', () => {
    expect(Object.keys(responses)).toEqual(['200', '400', '408', '431', '500', '503'])
  })
})

interface Answer {
  status: number
  headers: Headers
  body: unknown
}

async function runningService(args: string[] = []): Promise<{ address: string; folder: string }> {
  const folder = temporaryFolder()
  const service = startService(['--port', '0', ...args], folder, { env: { PLANTS_SERVE_TOKEN: token } })
  return { address: await addressOf(service), folder }
}

async function post(address: string, plant: unknown, headers: Record<string, string> = {}): Promise<Answer> {
  const usual = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const answer = await fetch(`${address}/plants`, {
    method: 'POST',
    headers: { ...usual, ...headers },
    body: JSON.stringify(plant),
  })
  return { status: answer.status, headers: answer.headers, body: await answer.json() }
}

/** Sends what no client would, and reads until the service closes the connection. */
async function send(address: string, request: string): Promise<Answer> {
  const { hostname, port } = new URL(address)
  const socket = connect(Number(port), hostname)
  socket.write(request)
  const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
  const [statusLine = '', ...lines] = head.split('\r\n')
  const headers = new Headers(
    lines.map((line): [string, string] => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  )
  return { status: Number(statusLine.split(' ')[1]), headers, body: JSON.parse(body) }
}
