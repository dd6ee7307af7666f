import { fixedToken } from '../../src/server/authenticator.js'
import type { ListenAddress } from '../../src/server/service.js'
import { rights } from '../../src/stores/common/token-store.js'
import type { Access, HttpOptions } from '../../src/stores/http/http-options.js'
import { HttpStore } from '../../src/stores/http/http-store.js'
import { parseAddress } from '../../src/stores/registry.js'
import { SqliteStore } from '../../src/stores/sqlite/store.js'
import { type Hostile, json } from './hostile.js'
import { type Result, runPlants, withUsual } from './run.js'
import { limits, serveHere } from './service.js'
import { closedAfterTest, fileAddress, openOptions, place } from './store.js'
import { temporaryFolder } from './temporary.js'

export const token = 's3cret-token'

/** The description of a service without idempotency keys. */
export const keyless = json(200, { paths: { '/plants': { post: { parameters: [] } } } })

export interface Outcome {
  code: number
  out: string
  /** the lines on stderr; the service's own address is URL in them, and the idempotency key KEY */
  said: unknown[]
  requests: string[]
}

export const created: Outcome = {
  code: 0,
  out: '{"name":"Fern"}\n',
  said: [],
  requests: ['POST /plants'],
}

/** Creates plant 1, Fern, at a service; every request for it must have one and the same key. */
export async function createAt(
  service: Hostile,
  flags?: string[],
  env?: Record<string, string>,
  now?: () => number,
): Promise<Outcome> {
  const { code, out, err } = await createIn(service.url, flags, env, now)
  const keys = new Set(service.keys)
  if (keys.size > 1 || keys.has(undefined)) throw new Error(`The keys were ${service.keys}`)
  return { code, out, said: linesOf(err, service), requests: service.lines }
}

/** Creates plant 1, Fern, in a store, which a flag may name instead. Its runtime stands still, unless it is given one. */
export function createIn(
  store: string,
  flags: string[] = [],
  env: Record<string, string> = {},
  now = () => 0,
): Promise<Result> {
  const plant = { '--id': '1', '--name': 'Fern' }
  const usual = { ...plant, '--output': 'json', '--timeout': '1h', '--store': store }
  const world = { env: { PLANTS_TOKEN: token, ...env }, now }
  return runPlants(withUsual(usual, ['create', ...flags]), world)
}

export function linesOf(err: string, service: Hostile): unknown[] {
  const general = err.replaceAll(service.keys[0] ?? 'no key', 'KEY').replaceAll(service.url, 'URL')
  const lines = general.split('\n').filter((line) => line !== '')
  return lines.map((line): unknown => (line.startsWith('{') ? JSON.parse(line) : line))
}

/** What a hint says of a plant that may be stored. */
export const howToRepeat =
  'Whether plant 1 is stored is unknown. To avoid a second plant, if the service supports such keys, repeat it with: --idempotency-key KEY'

/** As the command line would access a service with `token`. */
const usualAccess: Access = {
  token,
  userAgent: 'test',
  ca: undefined,
  proxy: undefined,
  tokenHint: '',
  notify: async () => {},
}

/** Opens a service as a store, which is closed when the test is over. */
export async function openHttp(
  url: string,
  options: Partial<HttpOptions> = {},
  access: Partial<Access> = {},
): Promise<HttpStore> {
  const address = await parseAddress(url, 'test', place())
  if (address.scheme !== 'http') throw new Error(`${url} is no service`)
  const opening = { ...openOptions(), access: { ...usualAccess, ...access }, ...options }
  return closedAfterTest(new HttpStore(address, opening))
}

/** Starts the program's own service on an empty store in a file; its only token is `token`. */
export async function ownService(
  listen: ListenAddress,
  path: string,
  basePath = '',
): Promise<string> {
  const service = await serveHere({
    openStore: (events) => SqliteStore.open(fileAddress(path), openOptions(events)),
    openTokenSource: async () => fixedToken(token, { name: 'test', rights }),
    listen,
    basePath,
    limits: { ...limits, connectionLimit: 1000 },
  })
  return service.address
}

/** A place for a Unix socket, which must not be long. */
export function socketPath(): string {
  return `${temporaryFolder()}/p.sock`
}
