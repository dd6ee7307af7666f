import { homedir, userInfo } from 'node:os'
import { isAbsolute, resolve } from 'node:path'
import { isWindows, unlessSystemError, usageError } from './errors.js'
import type { Runtime } from './runtime.js'
import { type Input, type Output, ProcessInput, ProcessOutput, Signals } from './streams.js'

export type { Input, Output }

/** Everything outside the program's memory, except the stores. */
export interface Io extends Runtime {
  readonly stdin: Input
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** Relative to the current directory, or with `~` to the user's home. */
  resolvePath(path: string): string
  /** Absolute paths of this user's folders. */
  dataFolder(): Promise<string>
  configFolder(): Promise<string>
  stateFolder(): Promise<string>
  /** According to the proxy variables of the environment, with NO_PROXY. */
  isProxied(url: URL): Promise<boolean>
  userName(): string | undefined
  /** They are redacted on stderr. */
  readonly secrets: Set<string>
  /** The time of day, in milliseconds since 1970 (UTC). */
  time(): number
}

/** `end` sets the exit code. Streams are opened on first use. */
export function processIo(): { argv: string[]; io: Io; end(exitCode: number): void } {
  const env = environmentOf(process.env)
  // PostgreSQL's variables are removed from the process: a driver would read them for every database, but a password is
  // for one.
  for (const name of Object.keys(env)) if (name.startsWith('PG')) delete process.env[name]
  const signals = new Signals()
  const stdout = new ProcessOutput(1, signals)
  const stderr = new ProcessOutput(2, signals)
  const io: Io = {
    stdin: new ProcessInput(signals),
    stdout,
    stderr,
    env,
    resolvePath,
    dataFolder: () => folderOf('data'),
    configFolder: () => folderOf('config'),
    // XDG_STATE_HOME on Linux; elsewhere for logs only
    stateFolder: () => folderOf(process.platform === 'linux' ? 'log' : 'data'),
    isProxied: async ({ href }) => (await import('proxy-from-env')).getProxyForUrl(href) !== '',
    userName: () => unlessSystemError(() => userInfo().username),
    secrets: new Set(),
    handleSignals: () => signals.listen(),
    now: () => process.uptime() * 1000,
    time: Date.now,
    random: Math.random,
  }
  let code = 70 // without `end`: a crash, or a promise that never settles, is a defect
  process.once('exit', () => {
    process.exitCode = code
  })
  const end = (exitCode: number) => {
    code = exitCode
    // What still waits is for a reader that has stalled: lines of the log.
    setTimeout(() => process.exit(code), 500).unref()
  }
  return { argv: process.argv.slice(2), io, end }
}

/** Windows ignores the case of a name; a copy of its environment does not. */
export function environmentOf(
  env: Io['env'],
  system: { isWindows: boolean } = { isWindows },
): Io['env'] {
  const named = (name: string) => (system.isWindows ? name.toUpperCase() : name)
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [named(name), value]))
}

function resolvePath(path: string): string {
  const place = path.replace(/^~(?=$|[\\/])/, homeFolder)
  return isAbsolute(place) ? place : resolve(place)
}

function homeFolder(): string {
  return unlessSystemError(homedir) || withoutHome()
}

async function folderOf(name: 'data' | 'config' | 'log'): Promise<string> {
  const { default: envPaths } = await import('env-paths').catch(withoutHome)
  const folder = envPaths('plants', { suffix: '' })[name]
  return isAbsolute(folder) ? folder : withoutHome()
}

/** Of a user id without an account, or with an empty HOME. */
function withoutHome(cause?: unknown): never {
  const variable = isWindows ? 'USERPROFILE' : 'HOME'
  const hint = `Set ${variable}, or PLANTS_DATA_DIR and PLANTS_CONFIG_DIR, or choose a file with --store PATH`
  throw usageError('This user has no home directory, or its path is not absolute', hint, cause)
}
