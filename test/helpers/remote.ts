import { onTestFinished } from 'vitest'
import { fixedTokens } from '../../src/server/authenticator.js'
import type { ListenAddress } from '../../src/server/listen.js'
import { startService } from '../../src/server/service.js'
import type { Access } from '../../src/stores/common/access.js'
import { rights } from '../../src/stores/common/store.js'
import { ownSchemeOf } from '../../src/stores/registry.js'
import { type Hostile, json } from './hostile.js'
import { runPlants, withUsual } from './run.js'
import { fileAddress, openOptions } from './store.js'
import { temporaryFolder } from './temporary.js'

export const token = 's3cret-token'

/** The description of a service without idempotency keys. */
export const keyless = json(200, { openapi: '3.1.0', paths: { '/plants': { post: { parameters: [] } } } })

/** How a create at a remote store went, and what that saw of it. */
export interface Outcome {
  code: number
  out: string
  /** the lines on stderr; the remote's own address is URL in them, and the idempotency key KEY */
  said: unknown[]
  /** the first line of each request */
  requests: string[]
}

/** How it goes when the first request is answered well. */
export const created: Outcome = { code: 0, out: '{"name":"Fern"}\n', said: [], requests: ['POST /plants'] }

/** Creates plant 1, Fern, at a remote store; every request for it must have one and the same key. */
export async function createAt(
  remote: Hostile,
  flags: string[] = [],
  env: Record<string, string> = {},
): Promise<Outcome> {
  const usual = { '--id': '1', '--name': 'Fern', '--output': 'json', '--timeout': '5s', '--store': remote.url }
  const argv = withUsual(usual, ['create', ...flags])
  const { code, out, err } = await runPlants(argv, { env: { PLANTS_TOKEN: token, ...env } })
  const [key, ...others] = new Set(remote.keys)
  if (remote.posts.length > 0 && (key === undefined || others.length > 0))
    throw new Error(`The keys were ${remote.keys}`)
  return { code, out, said: linesOf(err, remote), requests: remote.lines }
}

/** Reads what a program has said on stderr of a remote store. */
export function linesOf(err: string, remote: Hostile): unknown[] {
  const general = [remote.keys[0] ?? 'no key', remote.url].reduce(
    (text, part, index) => text.replaceAll(part, index ? 'URL' : 'KEY'),
    err,
  )
  return general
    .split('\n')
    .flatMap((line): unknown[] => (line === '' ? [] : [line.startsWith('{') ? JSON.parse(line) : line]))
}

const unknownOutcome = 'Whether plant 1 is stored is unknown'

/** What a hint says of a plant that may be stored: by what is known of the service's idempotency keys. */
export const howToRepeat = {
  unasked: `${unknownOutcome}. To avoid a second plant, repeat it with: --idempotency-key KEY, if the service supports such keys`,
  listed: `${unknownOutcome}. To avoid a second plant, repeat it with: --idempotency-key KEY`,
  unlisted: `${unknownOutcome}, and this service does not support idempotency keys: check the service before you repeat it`,
}

/** An output that nothing is written to. */
export const silent = {
  isTerminal: false,
  columns: 80,
  rows: 24,
  write: async () => {},
  log: async () => {},
  stream: () => process.stderr,
}

/** As the command line would access a service with `token`. */
export const usualAccess: Access = {
  token,
  userAgent: 'test',
  ca: undefined,
  proxy: undefined,
  observer: undefined,
  tokenHint: '',
  notify: async () => {},
}

/** Starts the program's own service on an empty store in a file; its only token is `token`. */
export async function ownService(listen: ListenAddress, path: string, basePath = ''): Promise<string> {
  const service = await startService({
    openStore: (watch) => ownSchemeOf(fileAddress(path)).open(fileAddress(path), openOptions(watch)),
    openTokenSource: async () => fixedTokens(new Map([[token, 'test']]), rights),
    listen,
    allow: rights,
    basePath,
    tls: undefined,
    admin: undefined,
    limits: { bodyLimit: 1_048_576, requestTimeout: 30_000, connectionLimit: 1000 },
    log: { output: silent, level: 'silent', delay: 0 },
    now: () => performance.now(),
  })
  onTestFinished(() => service.drain(1000))
  return service.address
}

/** A place for a Unix socket, which must not be long. */
export function socketPath(): string {
  return `${temporaryFolder()}/p.sock`
}
