import { isUtf8 } from 'node:buffer'
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, readSync, statSync, write, writeSync } from 'node:fs'
import { devNull, homedir } from 'node:os'
import { isAbsolute, resolve } from 'node:path'
import { PlantsError, systemCode } from './errors.js'

/** The world as the program sees it: everything outside its own memory and the stores. */
export interface Io {
  readonly stdin: Input
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** The absolute path of a path that starts in the current directory, or with `~` in the user's home. */
  resolvePath(path: string): string
  /** The absolute path of the system's place for this user's data. */
  dataFolder(): Promise<string>
  /** The absolute path of the system's place for this user's settings. */
  configFolder(): Promise<string>
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

export interface Input {
  readonly isTerminal: boolean
  /** something may be waiting there: a pipe, a socket or a file, but not a terminal and not /dev/null */
  readonly isPiped: boolean
  chunks(): AsyncIterable<Uint8Array>
  stream(): NodeJS.ReadableStream
}

export interface Output {
  readonly isTerminal: boolean
  /** width of the terminal, 80 when unknown */
  readonly columns: number
  /** Resolves when the operating system has taken every byte; rejects with the system's error. */
  write(text: string): Promise<void>
  /**
   * Takes a line of a log, in order. A reader that falls behind holds nothing up: what is more than 1 MiB is dropped.
   * Resolves when the line is written or dropped.
   */
  log(line: string): Promise<void>
  stream(): NodeJS.WritableStream
}

/** The Io of this process, and how it ends. Nothing is opened before it is asked for: that is what keeps a start short. */
export function processIo(): { argv: string[]; io: Io; end(exitCode: number): void } {
  const signals = new Signals()
  const stdout = new ProcessOutput(1, () => process.stdout, signals)
  const stderr = new ProcessOutput(2, () => process.stderr, signals)
  const io: Io = {
    stdin: new ProcessInput(),
    stdout,
    stderr,
    env: process.env,
    resolvePath,
    dataFolder: () => folderOf('data'),
    configFolder: () => folderOf('config'),
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
    // A reader that stalls would hold the process for ever: it was told to go, so it goes.
    if (signals.received !== undefined && (stdout.unwritten > 0 || stderr.unwritten > 0)) process.kill(process.pid, signals.received)
  }
  return { argv: process.argv.slice(2), io, end }
}

/** Listens to SIGINT and SIGTERM while something waits. The second signal, and any that comes while nothing waits, ends the process. */
class Signals {
  received: NodeJS.Signals | undefined
  readonly #controller = new AbortController()
  readonly #kinds = { SIGINT: 'interrupted', SIGTERM: 'terminated' } as const
  #isListening = false

  listen(): AbortSignal {
    if (!this.#isListening && this.received === undefined) {
      this.#isListening = true
      process.on('SIGINT', this.#receive).on('SIGTERM', this.#receive)
    }
    return this.#controller.signal
  }

  release(): void {
    if (!this.#isListening) return
    this.#isListening = false
    process.off('SIGINT', this.#receive).off('SIGTERM', this.#receive)
  }

  readonly #receive = (name: NodeJS.Signals): void => {
    if (this.received !== undefined) {
      this.release()
      process.kill(process.pid, name)
    } else if (name === 'SIGINT' || name === 'SIGTERM') {
      this.received = name
      const message = name === 'SIGINT' ? 'Interrupted' : 'Terminated'
      this.#controller.abort(new PlantsError(this.#kinds[name], message))
    }
  }
}

class ProcessInput implements Input {
  get isTerminal(): boolean {
    return isTerminal(0)
  }

  get isPiped(): boolean {
    const stats = fstatSync(0)
    return stats.isFIFO() || stats.isSocket() || stats.isFile()
  }

  async *chunks(): AsyncIterable<Uint8Array> {
    const stats = fstatSync(0)
    if (stats.isFile()) yield* readFrom(0)
    else if (!(stats.isFIFO() && (yield* readWaiting()))) yield* process.stdin
  }

  stream(): NodeJS.ReadStream {
    return process.stdin
  }
}

/** Reads what a pipe holds already, without Node's stream, which costs 4 ms to make. True when that was all of it. */
function* readWaiting(): Generator<Uint8Array, boolean> {
  if (process.platform !== 'linux') return false
  let fd: number | undefined
  try {
    fd = openSync('/proc/self/fd/0', constants.O_RDONLY | constants.O_NONBLOCK)
    yield* readFrom(fd)
    return true
  } catch (error) {
    // EAGAIN: the writer is not done. Anything else, such as a pipe of another user: the stream can do it.
    if (systemCode(error) === undefined) throw error
    return false
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/** Reads a file descriptor to its end, with plain system calls. Throws the system's error. */
export function* readFrom(fd: number): Generator<Uint8Array> {
  for (;;) {
    const chunk = new Uint8Array(65_536)
    const length = readSync(fd, chunk)
    if (length === 0) return
    yield chunk.subarray(0, length)
  }
}

/**
 * Writes with plain system calls, because Node's own stream costs 2 ms to make, and for a file drops what a full disk did
 * not take. A reader that stalls stops the process in such a call, so signals are let through to end it. Only a pipe
 * that somebody made non-blocking goes through the stream, which waits for it.
 */
class ProcessOutput implements Output {
  unwritten = 0
  readonly #fd: 1 | 2
  readonly #open: () => NodeJS.WriteStream
  readonly #signals: Signals
  #stream: NodeJS.WriteStream | undefined
  #isSlow = false
  #log = ''
  #logging: Promise<void> | undefined

  constructor(fd: 1 | 2, open: () => NodeJS.WriteStream, signals: Signals) {
    this.#fd = fd
    this.#open = open
    this.#signals = signals
  }

  get isTerminal(): boolean {
    return isTerminal(this.#fd)
  }

  get columns(): number {
    return this.stream().columns ?? 80
  }

  stream(): NodeJS.WriteStream {
    if (!this.#stream) {
      this.#stream = this.#open()
      this.#stream.on('error', () => undefined) // each write reports its own
    }
    return this.#stream
  }

  async write(text: string): Promise<void> {
    const bytes = Buffer.from(text)
    let written = 0
    if (!this.#isSlow) {
      this.#signals.release()
      written = writeNow(this.#fd, bytes)
      this.#isSlow = written < bytes.length
    }
    if (this.#isSlow) await this.#writeLater(bytes.subarray(written))
  }

  log(line: string): Promise<void> {
    if (this.#log.length + line.length <= longestLog) this.#log += line
    this.#logging ??= this.#writeLog()
    return this.#logging
  }

  /** Writes all lines of a turn with one call, in a thread that may wait for the reader. */
  async #writeLog(): Promise<void> {
    await new Promise(setImmediate)
    while (this.#log !== '') {
      const bytes = Buffer.from(this.#log)
      this.#log = ''
      await writeInThread(this.#fd, bytes).catch((error: unknown) => {
        if (systemCode(error) === undefined) throw error // nobody can be told that the log is gone
      })
    }
    this.#logging = undefined
  }

  #writeLater(bytes: Uint8Array): Promise<void> {
    const signal = this.#signals.listen()
    this.unwritten += 1
    return new Promise((resolve, reject) => {
      const abort = () => reject(signal.reason)
      if (signal.aborted) setImmediate(resolve) // why the program ends is told, but not waited for
      signal.addEventListener('abort', abort)
      this.stream().write(bytes, (error) => {
        signal.removeEventListener('abort', abort)
        this.unwritten -= 1
        if (error) reject(error)
        else resolve()
      })
    })
  }
}

/** How many bytes were taken before the file descriptor, which somebody made non-blocking, wanted a pause. */
function writeNow(fd: number, bytes: Uint8Array): number {
  let written = 0
  try {
    while (written < bytes.length) written += writeSync(fd, bytes, written)
  } catch (error) {
    if (systemCode(error) !== 'EAGAIN') throw error
  }
  return written
}

/** characters of a log that wait for their reader */
const longestLog = 1_048_576

async function writeInThread(fd: number, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    written += await new Promise<number>((resolve, reject) => {
      write(fd, bytes, written, (error, count) => {
        if (!error) resolve(count)
        else if (systemCode(error) === 'EAGAIN')
          setTimeout(resolve, 10, 0) // somebody made it non-blocking
        else reject(error)
      })
    })
  }
}

function resolvePath(path: string): string {
  const place = path.replace(/^~(?=$|[\\/])/, homeFolder)
  if (isAbsolute(place)) return place
  try {
    return resolve(place)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
    throw new PlantsError('malformed', 'The current folder is gone', { hint: 'Go to another one, or give absolute paths', cause: error })
  }
}

async function folderOf(kind: 'data' | 'config'): Promise<string> {
  const { default: envPaths } = await import('env-paths').catch(withoutHome)
  const folder = envPaths('plants', { suffix: '' })[kind]
  if (isAbsolute(folder)) return folder
  const [what, hint] = {
    data: ['the store', 'Set HOME and XDG_DATA_HOME to absolute paths, or choose a file with --store PATH'],
    config: ['the settings', 'Set HOME and XDG_CONFIG_HOME to absolute paths, or set PLANTS_CONFIG_DIR'],
  }[kind]
  throw new PlantsError('malformed', `There is no absolute path for ${what}, only ${folder}`, { hint })
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
  if (systemCode(error) !== 'ERR_SYSTEM_ERROR') throw error
  const hint = 'Set HOME, or PLANTS_DATA_DIR and PLANTS_CONFIG_DIR, or choose a file with --store PATH'
  throw new PlantsError('malformed', 'This user has no home directory to keep anything in', { hint, cause: error })
}

function isTerminal(fd: number): boolean {
  const stats = fstatSync(fd)
  // node:tty brings the whole of node:net, 2 ms that neither a pipe nor /dev/null is worth.
  if (!stats.isCharacterDevice() || stats.rdev === statSync(devNull, { throwIfNoEntry: false })?.rdev) return false
  return process.getBuiltinModule('node:tty').isatty(fd)
}

function argumentsAreExact(): boolean {
  if (process.platform !== 'linux' || !process.argv.some((argument) => argument.includes('\uFFFD'))) return true
  return !existsSync('/proc/self/cmdline') || isUtf8(readFileSync('/proc/self/cmdline'))
}
