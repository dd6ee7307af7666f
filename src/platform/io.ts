import { homedir, userInfo } from 'node:os'
import { isAbsolute, resolve } from 'node:path'
import { isWindows, systemCode, unlessSystemError, usageError } from '../errors.js'
import type { Runtime } from './runtime.js'
import { type Input, type Output, processInput, processOutput, Signals } from './streams.js'

export type { Input, Output }

/** What is outside of the program, except the stores. */
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
  /** The proxy for a URL, from the variables as proxy-from-env reads them; '' if there is none. */
  getProxyForUrl(url: URL): Promise<string>
  userName(): string | undefined
  /** They are redacted on stderr. */
  readonly secrets: Set<string>
  /** Milliseconds since 1970 (UTC). */
  time(): number
}

/** The same world with other streams, such as those of a pager, and with their signal. */
export function withOutput(io: Io, own: Pick<Io, 'stdout' | 'stderr' | 'handleSignals'>): Io {
  return Object.assign(Object.create(io) as Io, own)
}

/** `end` sets the exit code: without it, a crash or a hanging promise is a defect. */
export function processIo(): { argv: string[]; io: Io; end(exitCode: number): void } {
  const env = copyEnvironment(process.env)
  // A driver would use PostgreSQL's variables for every database, but a password is for one.
  for (const name of Object.keys(env)) if (name.startsWith('PG')) delete process.env[name]
  const signals = new Signals()
  const io: Io = {
    stdin: processInput(signals),
    stdout: processOutput(1, signals),
    stderr: processOutput(2, signals),
    env,
    resolvePath,
    dataFolder: () => findFolder('data'),
    configFolder: () => findFolder('config'),
    // XDG_STATE_HOME on Linux; elsewhere for logs only
    stateFolder: () => findFolder(process.platform === 'linux' ? 'log' : 'data'),
    getProxyForUrl: async ({ href }) => (await import('proxy-from-env')).getProxyForUrl(href),
    userName: () => unlessSystemError(() => userInfo().username),
    secrets: new Set(),
    handleSignals: () => signals.listen(),
    now: () => process.uptime() * 1000,
    time: Date.now,
    random: Math.random,
  }
  let code = 70
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
export function copyEnvironment(env: Io['env'], system = { isWindows }): Io['env'] {
  if (!system.isWindows) return { ...env }
  return Object.fromEntries(Object.entries(env).map(([name, text]) => [name.toUpperCase(), text]))
}

function resolvePath(path: string): string {
  // Either may hold a secret.
  if (/^\s*\w[\w+.-]+:\/\/|-----BEGIN /.test(path))
    throw usageError('A path is expected, not a URL or a PEM text', 'Give the path of a file')
  const home = () => unlessSystemError(homedir) || withoutHome()
  const place = path.replace(/^~(?=$|[\\/])/, home)
  return isAbsolute(place) ? place : resolveInCurrentFolder(place)
}

/** Node.js cannot name a current directory that was deleted. */
function resolveInCurrentFolder(path: string): string {
  try {
    return resolve(path)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
    const hint = 'Change to another directory with cd, or give an absolute path'
    throw usageError('The current directory does not exist any more', hint, error)
  }
}

async function findFolder(name: 'data' | 'config' | 'log'): Promise<string> {
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
