import { isUtf8 } from 'node:buffer'
import { existsSync, readFileSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { isAbsolute, relative, resolve } from 'node:path'
import { malformed, systemCode } from './errors.js'
import { type Input, type Output, ProcessOutput, processInput, Signals } from './streams.js'

export type { Input, Output }

/** The outside: everything but the program's own memory and the stores. */
export interface Io {
  readonly stdin: Input
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** The absolute path of one that starts in the current directory, or with `~` in the user's home. */
  resolvePath(path: string): string
  /** The absolute paths of the system's folders for this user's data, settings, and what was begun and not finished. */
  dataFolder(): Promise<string>
  configFolder(): Promise<string>
  stateFolder(): Promise<string>
  /** Whether files of a user are as good as this user's own: it is this user, root, or whoever used `sudo`. */
  trusts(uid: number): boolean
  /** Whether a command may be run that stands in a file of a user: it is this user or root, not whoever used `sudo`. */
  mayRunFor(uid: number): boolean
  /** What the system calls this user; undefined for a user id without an account. */
  userName(): string | undefined
  /** Texts, such as tokens, that are never shown on stderr. */
  readonly secrets: Set<string>
  /** False when an argument was not UTF-8: Node has put U+FFFD where its bytes were. */
  argumentsAreExact(): boolean
  /** Aborts on SIGINT and SIGTERM with a `PlantsError` as the reason. Signals that come while nobody asks for it end the process at once. */
  readonly signal: AbortSignal
  /** milliseconds since some fixed moment, never going back */
  now(): number
  /** the time of day, in milliseconds since 1970 (UTC) */
  time(): number
  /** a number from 0 up to 1 */
  random(): number
}

/** The Io of this process, and how it ends. Nothing is opened before it is asked for: that is what keeps a start short. */
export function processIo(): { argv: string[]; io: Io; end(exitCode: number): void } {
  const env = { ...process.env }
  // What is meant for PostgreSQL is taken out of the process: a driver would read it for every database, and a password is for one.
  for (const name of Object.keys(env)) if (name.startsWith('PG')) delete process.env[name]
  const signals = new Signals()
  const stdout = new ProcessOutput(1, () => process.stdout, signals)
  const stderr = new ProcessOutput(2, () => process.stderr, signals)
  const io: Io = {
    stdin: processInput,
    stdout,
    stderr,
    env,
    resolvePath,
    dataFolder: () => folderOf('data'),
    configFolder: () => folderOf('config'),
    stateFolder: () => folderOf(process.platform === 'linux' ? 'log' : 'data'), // which is XDG_STATE_HOME there, and elsewhere for logs alone
    trusts: (uid) => mayRunFor(uid) || (process.getuid?.() === 0 && String(uid) === process.env['SUDO_UID']),
    mayRunFor,
    userName,
    secrets: new Set(),
    argumentsAreExact,
    get signal() {
      return signals.listen()
    },
    now: () => process.uptime() * 1000, // the global `performance` would load a module for this
    time: Date.now,
    random: Math.random,
  }
  let code = 70 // a crash, or a wait that nothing ends, is a defect
  process.once('exit', () => {
    process.exitCode = code
  })
  const end = (exitCode: number) => {
    code = exitCode
    const { received } = signals
    if (received === undefined) return
    // A reader that stalls would hold the process for ever: it has half a second, then the signal ends the process.
    const deadline = process.uptime() + 0.5
    const timer = setInterval(() => {
      const isWriting = stdout.isWriting || stderr.isWriting
      if (!isWriting) clearInterval(timer)
      else if (process.uptime() > deadline) process.kill(process.pid, received)
    }, 10)
  }
  return { argv: process.argv.slice(2), io, end }
}

function resolvePath(path: string): string {
  const place = path.replace(/^~(?=$|[\\/])/, homeFolder)
  if (isAbsolute(place)) return place
  try {
    return resolve(place)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
    throw malformed('The current folder is gone', 'Go to another one, or give absolute paths', error)
  }
}

async function folderOf(kind: 'data' | 'config' | 'log'): Promise<string> {
  const { default: envPaths } = await import('env-paths').catch(withoutHome)
  // An empty HOME is no folder. Node gives it as it is; Bun takes it for none, and the one that the account has.
  const home = process.env['HOME'] === '' ? homeFolder() : ''
  const path = envPaths('plants', { suffix: '' })[kind]
  const folder = home !== '' && path.startsWith(home) ? relative(home, path) : path
  if (isAbsolute(folder)) return folder
  const [what, hint] = {
    data: ['the store', 'Set HOME and XDG_DATA_HOME to absolute paths, or choose a file with --store PATH'],
    log: ['the journal of an import', 'Set HOME and XDG_STATE_HOME to absolute paths, or set PLANTS_STATE_DIR'],
    config: ['the settings', 'Set HOME and XDG_CONFIG_HOME to absolute paths, or set PLANTS_CONFIG_DIR'],
  }[kind]
  throw malformed(`There is no absolute path for ${what}, only ${folder}`, hint)
}

function mayRunFor(uid: number): boolean {
  return uid === (process.getuid?.() ?? uid) || uid === 0 // Windows has none
}

function userName(): string | undefined {
  try {
    return userInfo().username
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) return undefined
    throw error
  }
}

function homeFolder(): string {
  try {
    return homedir()
  } catch (error) {
    return withoutHome(error)
  }
}

/** A user id without an account has no home; `os.homedir` and whoever calls it then throw. */
function withoutHome(error: unknown): never {
  if (!(error instanceof Error && 'syscall' in error && error.syscall === 'uv_os_homedir')) throw error
  const hint = 'Set HOME, or PLANTS_DATA_DIR and PLANTS_CONFIG_DIR, or choose a file with --store PATH'
  throw malformed('This user has no home directory to keep anything in', hint, error)
}

function argumentsAreExact(): boolean {
  if (process.platform !== 'linux' || !process.argv.some((argument) => argument.includes('\uFFFD'))) return true
  return !existsSync('/proc/self/cmdline') || isUtf8(readFileSync('/proc/self/cmdline'))
}
