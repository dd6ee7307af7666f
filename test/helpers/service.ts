import { once } from 'node:events'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import type { NetConnectOpts } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { execa } from 'execa'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { must } from '../../src/platform/errors.js'
import type { Caller } from '../../src/server/authenticator.js'
import { type Service, type ServiceOptions, startService } from '../../src/server/service.js'
import type { Change, Outcome } from '../../src/stores/common/change.js'
import type { Store } from '../../src/stores/common/store.js'
import { rights, type TokenStore } from '../../src/stores/common/token-store.js'
import { DatabaseSync } from './database.js'
import { bin } from './process.js'
import { runPlants } from './run.js'
import { checkSecrets } from './secrets.js'
import { temporaryFolder } from './temporary.js'

/** What a service under test accepts, unless it is told otherwise. No output may hold it. */
export const testToken = 'plants_s3cret-TOKEN-that-no-output-may-hold'

export interface RunningService {
  /** what the first line of stdout says */
  address: string
  token: string
  place: NetConnectOpts
  /** of its data */
  folder: string
  pid: number | undefined
  readonly err: string
  readonly log: Record<string, unknown>[]
  kill(signal: NodeJS.Signals): void
  stop(signal?: NodeJS.Signals): Promise<Ended>
  ended: Promise<Ended>
}

export interface Ended {
  /** as a shell sees it: 128 and the number of the signal that killed it */
  code: number
  out: string
  err: string
}

interface Options {
  folder?: string
  /** of a token of the store, which it then accepts instead of the usual one */
  rights?: string
  env?: Record<string, string>
  /** a program that starts it, with its arguments */
  through?: string[]
  token?: string
}

/** Runs `plants serve` as a process that ends with the test. */
export async function serve(args: string[] = [], options: Options = {}): Promise<RunningService> {
  const { folder = temporaryFolder(), rights } = options
  const argv = ['tokens', 'create', '--allow', rights ?? '']
  const own = rights ? { env: {}, token: (await linesIn(folder, argv))[0] ?? '' } : {}
  const { child, ready } = launch(args, folder, { ...options, ...own })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await child
  })
  return ready
}

/** Runs one `plants serve` for all tests of a file. */
export function serveForAll(args: string[] = []): () => RunningService {
  let service: RunningService | undefined
  let folder = ''
  beforeAll(async () => {
    folder = mkdtempSync(join(realpathSync(tmpdir()), 'plants-'))
    service = await launch(args, folder).ready
  })
  afterAll(async () => {
    await service?.stop('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })
  return () => must(service)
}

/** The plants in the data directory of a service, as JSON. */
export function storedIn({ folder }: Pick<RunningService, 'folder'>): Promise<string[]> {
  return linesIn(folder, ['list'])
}

async function linesIn(folder: string, argv: string[]): Promise<string[]> {
  const env = { PLANTS_DATA_DIR: join(folder, 'data') }
  const { code, out, err } = await runPlants(argv, { env })
  if (code !== 0) throw new Error(err)
  return out.split('\n').slice(0, -1)
}

/** Takes the write lock of the store of a service, and returns what lets it go. */
export function lockStore({ folder }: RunningService): () => void {
  const db = new DatabaseSync(join(folder, 'data/plants.db'))
  onTestFinished(() => db.close())
  db.exec('BEGIN IMMEDIATE')
  return () => db.exec('ROLLBACK')
}

/** A store that creates every plant, and keeps none. */
export const quick: Pick<Store, 'write' | 'close'> = {
  write: async (changes) => changes.map(created),
  close: async () => undefined,
}

/** At a store without plants. */
export function created(change: Change): Outcome {
  return change.type === 'create' ? { type: 'created', plant: change.plant } : unused()
}

/** Who has the token of a store that is put behind HTTP here. */
export const testCaller: Caller = { name: 'test', rights }

interface ServedStore extends Service, Pick<RunningService, 'place' | 'token'> {
  log(): string
}

/** Starts a service in this process, which ends with the test. It writes no log unless it is given one. */
export async function serveHere(
  options: Partial<ServiceOptions> & Pick<ServiceOptions, 'openStore' | 'openTokenSource'>,
): Promise<Service> {
  const service = await startService({
    listen: { host: '127.0.0.1', port: 0 },
    allow: rights,
    basePath: '',
    cors: [],
    tls: undefined,
    admin: undefined,
    limits,
    timeoutMs: 30_000,
    log: { ...logInto(async () => undefined), level: 'silent' },
    ...options,
  })
  onTestFinished(() => service.drain(0))
  return service
}

/** The log of a service, whose lines are written at once. */
export function logInto(write: (lines: string) => Promise<void>): ServiceOptions['log'] {
  const output = { isTerminal: false, columns: 80, write, log: write, stream: unused }
  return { output, level: 'info', delayMs: 0, redact: String }
}

/** Puts any store behind HTTP in this process, until the test is over. */
export async function serveStore(
  store: Partial<Store>,
  options: Partial<ServiceOptions> = {},
): Promise<ServedStore> {
  let log = ''
  const service = await serveHere({
    openStore: async () => ({ ...uselessStore, ...store }),
    openTokenSource: async () => (token) => (token === testToken ? testCaller : undefined),
    log: logInto(async (text) => {
      log += text
    }),
    ...options,
  })
  return { ...service, place: placeOf(service.address), token: testToken, log: () => log }
}

export const noTokens: TokenStore = {
  find: async () => undefined,
  add: unused,
  list: () => Readable.from([]),
  revoke: unused,
}

const uselessStore: Awaited<ReturnType<ServiceOptions['openStore']>> = {
  ...{ get: unused, read: unused, count: unused, write: unused, transaction: unused },
  ...{ checkpoint: unused, close: unused, tokens: noTokens },
  check: async () => undefined,
  rights: async () => rights,
}

export const limits = {
  requestTimeoutMs: 3_600_000,
  connectionLimit: 100,
  bodyLimitBytes: 1_048_576,
}

function unused(): never {
  throw new Error('No test needs this')
}

/** Where an address of a service leads, for `node:net`. */
export function placeOf(address: string): NetConnectOpts {
  if (address.startsWith('unix:')) return { path: address.replace('unix:', '') }
  const { hostname, port } = new URL(address)
  return { host: hostname, port: parseInt(port, 10) }
}

/** A process that serves, and the service once its address is there. */
export function launch(args: string[], folder: string, options: Options = {}) {
  const { env = { PLANTS_SERVE_TOKEN: testToken }, through = [], token = testToken } = options
  const port = args.includes('--socket') || args.includes('--port') ? [] : ['--port', '0']
  const [command = '', ...rest] = [...through, bin, 'serve', ...port, ...args]
  const home = { PATH: process.env['PATH'], HOME: folder, PLANTS_DATA_DIR: join(folder, 'data') }
  const child = execa(command, rest, {
    ...{ stdin: 'ignore', reject: false, forceKillAfterDelay: false, extendEnv: false },
    env: { ...home, ...env },
  })
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
  })
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString()
  })
  const ended = child.then(({ exitCode, signal }): Ended => {
    checkSecrets({ argv: ['serve', ...args], out, err })
    return { code: exitCode ?? signals[signal ?? ''] ?? -1, out, err }
  })
  const untilReady = async (): Promise<RunningService> => {
    while (!out.includes('\n')) {
      const event = await Promise.race([once(child.stdout, 'data'), ended])
      if (!Array.isArray(event)) throw new Error(`The service ended: ${JSON.stringify(event)}`)
    }
    const address = out.slice(0, out.indexOf('\n'))
    return {
      ...{ address, place: placeOf(address), token, folder, pid: child.pid, ended },
      get err() {
        return err
      },
      get log() {
        const lines = err.split('\n').slice(0, -1) // the last one may be half a line
        return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
      },
      kill: (signal) => void child.kill(signal),
      stop: (signal = 'SIGTERM') => {
        child.kill(signal)
        return ended
      },
    }
  }
  return { child, ended, ready: untilReady() }
}

const signals: Record<string, number> = { SIGINT: 130, SIGKILL: 137, SIGTERM: 143 }

/** What many wait for, until it is opened. */
export function gate() {
  const gate = {
    waiting: 0,
    open: () => {},
    wait: (): Promise<undefined> => {
      gate.waiting += 1
      return opened
    },
  }
  const opened = new Promise<undefined>((resolve) => {
    gate.open = () => resolve(undefined)
  })
  return gate
}
