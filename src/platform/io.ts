import { isUtf8 } from 'node:buffer'
import { existsSync, readFileSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { isAbsolute, relative, resolve } from 'node:path'
import { isWindows, systemCode, unlessSystemError, usageError } from './errors.js'
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
  /** False when an argument is not UTF-8: Node has replaced bytes of it by U+FFFD. */
  argumentsAreExact(): boolean
  /** While another program has the terminal, only the first signal counts. Returns what ends that. */
  lendTerminal(): () => void
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
    argumentsAreExact,
    lendTerminal: () => signals.lendTerminal(),
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
    // What still waits is for a reader that has stalled: lines of the log, or output that a signal has cut off.
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

/** The path of a device of Windows, such as NUL, which `resolve` would take for a file in the current directory. */
export function deviceOf(
  path: string,
  system: { isWindows: boolean } = { isWindows },
): string | undefined {
  const name = /^(?:\\\\\.\\)?(?<name>nul|con|prn|aux|com\d|lpt\d):?$/i.exec(path)?.groups?.['name']
  return system.isWindows && name !== undefined ? `\\\\.\\${name}` : undefined
}

function resolvePath(path: string): string {
  const device = deviceOf(path)
  if (device !== undefined) return device
  const place = path.replace(/^~(?=$|[\\/])/, homeFolder)
  if (isAbsolute(place)) return place
  try {
    return resolve(place)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
    const hint = 'Change to another directory, or use absolute paths'
    throw usageError('The current directory no longer exists', hint, error)
  }
}

async function folderOf(name: 'data' | 'config' | 'log'): Promise<string> {
  const { default: envPaths } = await import('env-paths').catch(withoutHome)
  // With an empty HOME, Node returns it as the home folder; Bun returns that of the account.
  const home = process.env['HOME'] === '' ? homeFolder() : ''
  const path = envPaths('plants', { suffix: '' })[name]
  const folder = home !== '' && path.startsWith(home) ? relative(home, path) : path
  if (isAbsolute(folder)) return folder
  const what = { data: 'the store', log: 'the journal of an import', config: 'the settings' }[name]
  throw usageError(`There is no absolute path for ${what}, only ${folder}`, setFolders)
}

const setFolders = `Set ${isWindows ? 'USERPROFILE' : 'HOME'}, or PLANTS_DATA_DIR and PLANTS_CONFIG_DIR, or choose a file with --store PATH`

function homeFolder(): string {
  try {
    return homedir()
  } catch (error) {
    return withoutHome(error)
  }
}

/** A user id without an account has no home. */
function withoutHome(error: unknown): never {
  if (!(error instanceof Error && 'syscall' in error && error.syscall === 'uv_os_homedir'))
    throw error
  throw usageError('This user has no home directory', setFolders, error)
}

function argumentsAreExact(): boolean {
  if (process.platform !== 'linux' || !process.argv.some((argument) => argument.includes('\uFFFD')))
    return true
  return !existsSync('/proc/self/cmdline') || isUtf8(readFileSync('/proc/self/cmdline'))
}
