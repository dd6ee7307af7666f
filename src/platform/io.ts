import { homedir, userInfo } from 'node:os'
import { isAbsolute, resolve } from 'node:path'
import {
  createUsageError,
  fileHint,
  getSystemCode,
  ignoreSystemError,
  isWindows,
} from '../errors.js'
import type { Runtime } from './runtime.js'
import {
  createStandardInput,
  createStandardOutput,
  type Input,
  type Output,
  Signals,
} from './streams.js'

export type { Input, Output }

/**
 * Everything outside of the program except the stores: streams, environment, folders, time and
 * signals. A test passes its own, so that commands run in its process.
 */
export interface Io extends Runtime {
  readonly stdin: Input
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** Makes a path absolute. `~` is the user's home. */
  resolvePath(path: string): string
  /** The folders of this user are absolute paths. */
  findDataFolder(): Promise<string>
  findConfigFolder(): Promise<string>
  /** Returns the proxy for a URL as proxy-from-env finds it in the environment, or ''. */
  getProxyForUrl(url: URL): Promise<string>
  findUserName(): string | undefined
  /** Tokens and passwords that were read, which are redacted on stderr. */
  readonly secrets: Set<string>
  /** Returns the milliseconds since 1970 (UTC). */
  getTimeMs(): number
}

/**
 * Returns an `Io` with the streams and the signal of a pager, for example, and all else as it is.
 */
export function replaceOutput(
  io: Io,
  replacement: Pick<Io, 'stdout' | 'stderr' | 'getStopSignal'>,
): Io {
  return Object.assign(Object.create(io) as Io, replacement)
}

/**
 * Builds the `Io` of this process.
 *
 * `exitWith` sets the exit code. The process then exits by itself when it has written everything.
 * Until `exitWith` is called, the exit code is 70 (internal error), for a crash or a promise that
 * never settles.
 */
export function createProcessIo(): {
  argv: string[]
  io: Io
  exitWith(exitCode: number): void
} {
  const env = copyEnvironment(process.env)
  // The driver of PostgreSQL would send PGPASSWORD to every database, but a password is for one.
  for (const name of Object.keys(env)) if (name.startsWith('PG')) delete process.env[name]
  // Where a snap has set this variable, conf would write into files instead of replacing them.
  delete process.env['SNAP']
  const signals = new Signals()
  const io: Io = {
    stdin: createStandardInput(signals),
    stdout: createStandardOutput(1, signals),
    stderr: createStandardOutput(2, signals),
    env,
    resolvePath,
    findDataFolder: () => findFolder('data'),
    findConfigFolder: () => findFolder('config'),
    getProxyForUrl: async ({ href }) => (await import('proxy-from-env')).getProxyForUrl(href),
    findUserName: () => ignoreSystemError(() => userInfo().username),
    secrets: new Set(),
    getStopSignal: () => signals.listen(),
    now: () => process.uptime() * 1000,
    getTimeMs: Date.now,
    random: Math.random,
  }
  let currentCode = 70
  process.once('exit', () => {
    process.exitCode = currentCode
  })
  const exitWith = (exitCode: number) => {
    currentCode = exitCode
    // A reader of stderr that has stalled would keep the process alive. So the lines of the log
    // that are not written after half a second are dropped.
    setTimeout(() => process.exit(exitCode), 500).unref()
  }
  return { argv: process.argv.slice(2), io, exitWith }
}

/**
 * Copies the variables of the environment. On Windows, their names become upper case, because
 * Windows ignores the case of a name, and a JavaScript object does not.
 */
export function copyEnvironment(env: Io['env'], system = { isWindows }): Io['env'] {
  if (!system.isWindows) return { ...env }
  return Object.fromEntries(Object.entries(env).map(([name, text]) => [name.toUpperCase(), text]))
}

function resolvePath(path: string): string {
  // A URL or a PEM text may contain a secret, so the message does not repeat it.
  if (/^\s*\w[\w+.-]+:\/\/|-----BEGIN /.test(path))
    throw createUsageError('A path is expected, but this is a URL or PEM text', fileHint)
  // Every directory of Windows has the null device, but Node.js would create a file of its name.
  if (isWindows && /^nul$/i.test(path)) return '\\\\.\\NUL'
  const home = () => ignoreSystemError(homedir) || throwNoHome()
  const expandedPath = path.replace(/^~(?=$|[\\/])/, home)
  return isAbsolute(expandedPath) ? expandedPath : resolveInCurrentFolder(expandedPath)
}

/** Node.js cannot name a current directory that was deleted. */
function resolveInCurrentFolder(path: string): string {
  try {
    return resolve(path)
  } catch (error) {
    if (getSystemCode(error) !== 'ENOENT') throw error
    const hint = 'Change to another directory with cd'
    throw createUsageError('The current directory no longer exists', hint, error)
  }
}

async function findFolder(name: 'data' | 'config'): Promise<string> {
  const { default: envPaths } = await import('env-paths').catch(throwNoHome)
  const folder = envPaths('plants', { suffix: '' })[name]
  return isAbsolute(folder) ? folder : throwNoHome()
}

/** A user id without an account has no home directory, nor does a user with an empty HOME. */
function throwNoHome(cause?: unknown): never {
  const variable = isWindows ? 'USERPROFILE' : 'HOME'
  const hint = `Set ${variable}, or PLANTS_DATA_DIR and PLANTS_CONFIG_DIR, or choose a file with --store PATH`
  throw createUsageError(
    'The home directory of this user is not set, or is not an absolute path',
    hint,
    cause,
  )
}
