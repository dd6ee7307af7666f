import { expect } from 'vitest'
import type { ServiceAccess } from '../../../src/stores/credentials.js'
import { HttpStore } from '../../../src/stores/http/http-store.js'
import type { HttpOptions } from '../../../src/stores/http/transport.js'
import { parseAddress } from '../../../src/stores/kinds.js'
import { addDefaults, type RunOptions, runPlants } from '../../helpers/sandbox/run.js'
import {
  buildSqliteOptions,
  closeAfterTest,
  createAddressContext,
} from '../../helpers/sandbox/store.js'
import {
  buildJsonResponse,
  type ScriptedResponse,
  ScriptedServer,
} from '../../helpers/scripted-server/scripted-server.js'
import { token } from '../../helpers/scripted-server/service.js'

export const created = {
  code: 0,
  out: '{"name":"Fern"}\n',
  /** The lines on stderr. URL stands for the address of the service, and KEY for the idempotency key. */
  stderr: [] as unknown[],
  requests: ['POST /plants'],
}

export const fern = '{"id":1,"name":"Fern"}'
export const moss = '{"id":2,"name":"Moss"}'
export const missing = buildJsonResponse(404, { error: 404, message: 'No plant has id 1' })
export const denied = buildJsonResponse(403, { error: 403, message: 'Not allowed' })

export const createRequest = 'POST /plants'
export const descriptionRequest = 'GET /openapi.json'
export const idempotencyKeyHeader = { name: 'Idempotency-Key', in: 'header' }

/** Builds the description of a service whose operation POST /plants has these parameters. */
export function describeCreate(parameters: unknown[], otherMembers: object = {}): Buffer {
  const paths = { '/plants': { post: { parameters } } }
  return buildJsonResponse(200, { paths, ...otherMembers })
}

export const descriptionWithKeys = describeCreate([idempotencyKeyHeader])
export const descriptionWithoutKeys = describeCreate([])

export const jsonHead = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'

/** Resets the connection instead of a response. */
export const resetConnection: ScriptedResponse = (socket) => void socket.resetAndDestroy()

/** Writes the beginning of a response, and closes the connection. */
export function cutAfter(text: string): ScriptedResponse {
  return (socket) => void socket.end(text)
}

/** The hint of an error after which nobody knows whether the plant is stored. */
export const repeatHint = { hint: expect.stringContaining('--idempotency-key KEY') }

/** Creates plant 1, Fern, at a service without idempotency keys that responds like this. */
export async function createWithoutKeys(response: ScriptedResponse, now?: () => number) {
  const service = await ScriptedServer.listen({
    posts: [response],
    openapi: descriptionWithoutKeys,
  })
  return createAt(service, [], {}, now)
}

/** Builds the outcome of a create that fails with this error, after these requests. */
export function buildFailure(code: number, error: object, requests = [createRequest]) {
  return { code, out: '', stderr: [expect.objectContaining(error)], requests }
}

/** Creates plant 1, Fern, at a service; every request for it must have one and the same key. */
export async function createAt(
  service: ScriptedServer,
  flags?: string[],
  env?: Record<string, string>,
  now?: () => number,
): Promise<typeof created> {
  const { code, out, err } = await createIn(service.url, flags, env, now)
  const keys = new Set(service.keys)
  if (keys.size > 1 || keys.has(undefined)) throw new Error(`The keys were ${service.keys}`)
  return { code, out, stderr: parseLines(err, service), requests: service.lines }
}

/** Creates plant 1, Fern, in a store, which a flag may name instead. Its clock stands still. */
export function createIn(
  store: string,
  flags: string[] = [],
  env: Record<string, string> = {},
  now = () => 0,
) {
  const plant = { '--id': '1', '--name': 'Fern' }
  const usual = { ...plant, '--output': 'json', '--timeout': '1h', '--store': store }
  return runPlants(addDefaults(usual, ['create', ...flags]), {
    env: { PLANTS_TOKEN: token, ...env },
    now,
  })
}

/** Parses the lines of stderr: JSON to its value, any other line to its text. */
export function parseLines(err: string, service: ScriptedServer): unknown[] {
  const general = err.replaceAll(service.keys[0] ?? 'no key', 'KEY').replaceAll(service.url, 'URL')
  const lines = general.split('\n').filter((line) => line !== '')
  return lines.map((line): unknown => (line.startsWith('{') ? JSON.parse(line) : line))
}

export async function openHttp(
  url: string,
  options: Partial<HttpOptions> = {},
  given: Partial<ServiceAccess> = {},
): Promise<HttpStore> {
  const address = await parseAddress(url, 'test', createAddressContext())
  if (address.scheme !== 'http') throw new Error(`${url} is no service`)
  const none = { ca: undefined, proxy: undefined, tokenHint: '', notify: async () => {} }
  const access = { token, userAgent: 'test', ...none, ...given }
  return closeAfterTest(new HttpStore(address, { ...buildSqliteOptions(), access, ...options }))
}

/**
 * Runs a command at a service that answers with these responses. `last` is the last message on
 * stderr.
 */
export async function runCommandAt(
  line: string,
  others: Record<string, ScriptedResponse[]>,
  {
    posts = [],
    ...runOptions
  }: Pick<RunOptions, 'stdin' | 'now'> & { posts?: ScriptedResponse[] } = {},
) {
  const service = await ScriptedServer.listen({ others, posts })
  const usual = { '--timeout': '1h', '--store': service.url, '--output': 'ndjson' }
  const argv = addDefaults(usual, line.split(' '))
  const { code, out, err } = await runPlants(argv, { env: { PLANTS_TOKEN: token }, ...runOptions })
  const lines = parseLines(err, service) as Record<string, unknown>[]
  const requests = service.requests.map(({ line, body }) => `${line} ${body}`.trim())
  return { code, out, lines, last: lines.at(-1), requests }
}
