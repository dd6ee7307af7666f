import { once } from 'node:events'
import type { NetConnectOpts } from 'node:net'
import { constants } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Caller, createFixedTokenSource } from '../../../src/server/authenticate.js'
import { type Service, type ServiceOptions, startService } from '../../../src/server/service.js'
import type { Change, Outcome } from '../../../src/stores/change.js'
import type { DirectStore, Store } from '../../../src/stores/store.js'
import { rights } from '../../../src/stores/tokens.js'
import { checkSecrets } from '../expect/secrets.js'
import { bin, execute } from '../sandbox/process.js'
import { runPlants } from '../sandbox/run.js'
import { openFile } from '../sandbox/store.js'
import { createTemporaryFolder } from '../sandbox/temporary-folder.js'
import { waitFor } from '../sandbox/wait.js'

/** The token that a service accepts, unless a test sets another one. */
export const testToken = 'plants_s3cret-TOKEN-that-no-output-may-hold'

export type RunningService = Awaited<ReturnType<typeof serve>>

interface Options {
  folder?: string
  /** The rights of a token in the store, which the service then accepts instead of `testToken`. */
  rights?: string
  env?: Record<string, string>
  through?: string[]
  token?: string
}

/** Runs `plants serve` as a process that ends with the test. */
export async function serve(args: string[] = [], options: Options = {}) {
  const { folder = createTemporaryFolder(), rights } = options
  // Without PLANTS_SERVE_TOKEN in its environment, the service accepts the tokens in the store.
  const storedToken = rights && { env: {}, token: await createStoredToken(folder, rights) }
  const { child, ready } = launchService(args, folder, { ...options, ...storedToken })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await child
  })
  return ready
}

async function createStoredToken(folder: string, rights: string): Promise<string> {
  const env = { PLANTS_DATA_DIR: join(folder, 'data') }
  const { out } = await runPlants(['tokens', 'create', '--allow', rights], { env })
  return out.trim()
}

export const getStorePath = ({ folder }: { folder: string }) => join(folder, 'data/plants.db')

/** Launches a process that serves. `ready` resolves when it has printed its address. */
export function launchService(args: string[], folder: string, options: Options = {}) {
  const { env = { PLANTS_SERVE_TOKEN: testToken }, through = [], token = testToken } = options
  const port = args.includes('--socket') || args.includes('--port') ? [] : ['--port', '0']
  const command = [...through, bin, 'serve', ...port, ...args]
  const child = execute(command, folder, { forceKillAfterDelay: false, env })
  let [out, err] = ['', '']
  child.stdout?.on('data', (chunk: Buffer) => {
    out += chunk.toString()
  })
  child.stderr?.on('data', (chunk: Buffer) => {
    err += chunk.toString()
  })
  /** The code is the one that a shell reports, also for a signal. */
  const ended = child.then(({ exitCode, signal }) => {
    checkSecrets({ argv: ['serve', ...args], out, err })
    return { code: exitCode ?? 128 + (signal ? constants.signals[signal] : 0), out, err }
  })
  const waitForEnd = () => waitFor(ended, () => `the end of the service, whose log is: ${err}`)
  const waitUntilReady = async () => {
    while (!out.includes('\n')) {
      const addressPrinted = Promise.race([once(child.stdout ?? child, 'data'), ended])
      const event = await waitFor(
        addressPrinted,
        () => `the address of the service, whose log is: ${err}`,
      )
      if (!Array.isArray(event)) throw new Error(`The service ended: ${JSON.stringify(event)}`)
    }
    const address = out.slice(0, out.indexOf('\n'))
    return {
      address,
      endpoint: toConnectOptions(address),
      token,
      folder,
      pid: child.pid,
      /** Resolves when the service has ended. The limit of this wait begins now. */
      get ended() {
        return waitForEnd()
      },
      get err() {
        return err
      },
      get log() {
        // After the last line feed, there may be a part of a line.
        const lines = err.split('\n').slice(0, -1)
        return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
      },
      kill: (signal: NodeJS.Signals) => void child.kill(signal),
      stop: (signal: NodeJS.Signals = 'SIGTERM') => {
        child.kill(signal)
        return waitForEnd()
      },
    }
  }
  return { child, ended, ready: waitUntilReady() }
}

export function toConnectOptions(address: string): NetConnectOpts {
  if (address.startsWith('unix:')) return { path: address.replace('unix:', '') }
  const { hostname, port } = new URL(address)
  return { host: hostname, port: parseInt(port, 10) }
}

/** A store that creates every plant, and keeps none. */
export const quickStore: Pick<Store, 'write' | 'close'> = {
  write: async (changes) => changes.map(buildCreatedOutcome),
  close: async () => undefined,
}

export function buildCreatedOutcome(change: Change): Outcome {
  return change.type === 'create' ? { type: 'created', plant: change.plant } : failUnexpectedCall()
}

export const testCaller: Caller = { name: 'test', rights, isAccepted: () => true }

/** Starts a service in this process, which ends with the test, and writes no log. */
export async function serveInProcess(
  options: Partial<ServiceOptions> & Pick<ServiceOptions, 'openStore' | 'openTokenSource'>,
): Promise<Service> {
  const service = await startService({
    listen: { host: '127.0.0.1', port: 0 },
    cors: [],
    usesStoreTokens: false,
    tls: undefined,
    admin: undefined,
    limits,
    timeoutMs: 30_000,
    log: { ...createLogTo(async () => undefined), level: 'silent' },
    ...options,
  })
  onTestFinished(() => service.drain(0))
  return service
}

/** The token of services in this process that keep plants. */
export const token = 's3cret-token'

/** Starts the program's own service on an empty store in a file; its only token is `token`. */
export async function serveFile(path: string, caller = testCaller): Promise<string> {
  const service = await serveInProcess({
    openStore: (events) => openFile(path, events),
    openTokenSource: async () => createFixedTokenSource(token, caller),
  })
  return service.address
}

export function createLogTo(write: (lines: string) => Promise<void>): ServiceOptions['log'] {
  const output = {
    isTerminal: false,
    columns: 80,
    write,
    log: write,
    openStream: failUnexpectedCall,
  }
  return { output, level: 'info', delayMs: 0, redact: String }
}

/** Puts any store behind HTTP in this process, until the test is over. */
export async function serveStore(store: Partial<Store>, options: Partial<ServiceOptions> = {}) {
  let log = ''
  const service = await serveInProcess({
    openStore: async () => ({ ...emptyStore, ...store }) as DirectStore, // no more of it is called
    openTokenSource: async () => (token) => (token === testToken ? testCaller : undefined),
    log: createLogTo(async (text) => {
      log += text
    }),
    ...options,
  })
  return {
    ...service,
    endpoint: toConnectOptions(service.address),
    token: testToken,
    log: () => log,
  }
}

const emptyStore = {
  check: async () => undefined,
  findRights: async () => rights,
  findServer: async () => undefined,
  close: async () => undefined,
}

export const limits = {
  requestTimeoutMs: 3_600_000,
  connectionLimit: 1000,
}

function failUnexpectedCall(): never {
  throw new Error('No test needs this')
}

/** Creates a gate at which calls wait until the test opens it. */
export function createGate() {
  let open = () => {}
  const gateOpened = new Promise<undefined>((resolve) => {
    open = () => resolve(undefined)
  })
  return {
    /** How many calls have come to the gate. */
    waiting: 0,
    open,
    wait() {
      this.waiting += 1
      return gateOpened
    },
  }
}
