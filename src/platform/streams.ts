import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync, writeSync } from 'node:fs'
import { devNull } from 'node:os'
import { PlantsError, systemCode, unlessSystemError } from './errors.js'

export interface Input {
  readonly isTerminal: boolean
  /** whether it is a pipe, a socket or a file: not a terminal, and not /dev/null */
  readonly isPiped: boolean
  chunks(): AsyncIterable<Uint8Array>
  stream(): NodeJS.ReadableStream
}

export interface Output {
  readonly isTerminal: boolean
  /** width of the terminal, 80 when unknown */
  readonly columns: number
  /** height of the terminal, 24 when unknown */
  readonly rows: number
  /** Resolves when the operating system has accepted every byte; rejects with the system's error. */
  write(text: string): Promise<void>
  /**
   * Writes a log line, in order. A slow reader does not delay the program: lines beyond a backlog of 1 MiB are dropped.
   * Resolves when the line is written or dropped.
   */
  log(line: string): Promise<void>
  stream(): NodeJS.WritableStream
}

/** Stdin. A file, and the data that is already in a pipe, are read without Node's stream, which takes 4 ms to create. */
export const processInput: Input = {
  get isTerminal() {
    return isTerminal(0)
  },

  get isPiped() {
    const stats = statsOf(0)
    return stats === undefined ? !isTerminal(0) : stats.isFIFO() || stats.isSocket() || stats.isFile()
  },

  async *chunks() {
    const stats = statsOf(0)
    if (stats?.isFile()) yield* readFrom(0)
    else if (!(stats?.isFIFO() && (yield* readPipe()))) yield* process.stdin
  },

  stream: () => process.stdin,
}

/** Reads the data that is in a pipe, where Linux can reopen it as non-blocking. Returns whether that was all of it. */
function* readPipe(): Generator<Uint8Array, boolean> {
  const fd = unlessSystemError(() => openSync('/proc/self/fd/0', constants.O_RDONLY | constants.O_NONBLOCK))
  if (fd === undefined) return false
  try {
    yield* readFrom(fd)
    return true
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return false // EAGAIN: the writer is not done. The stream waits for more, and reports any other error
  } finally {
    closeSync(fd)
  }
}

/** Reads a file descriptor to its end, or until it has read more than `limit` bytes, with synchronous system calls. */
export function* readFrom(fd: number, limit = Infinity): Generator<Uint8Array> {
  for (let total = 0; total <= limit; ) {
    const chunk = new Uint8Array(65_536)
    const length = readSync(fd, chunk)
    if (length === 0) return
    yield chunk.subarray(0, length)
    total += length
  }
}

/**
 * Stdout or stderr, written with synchronous system calls: Node's stream takes 2 ms to create, and loses what a full disk rejects. Such
 * a call blocks while the reader of a pipe stalls, and a signal then ends the process. While signals are handled here, and for log
 * lines, Node's stream writes to pipes and terminals instead.
 */
export class ProcessOutput implements Output {
  readonly #fd: 1 | 2
  readonly #signals: Signals
  #stream: NodeJS.WriteStream | undefined
  /** log lines of this turn of the event loop, which one system call writes */
  #lines = ''
  #logging: Promise<void> | undefined

  constructor(fd: 1 | 2, signals: Signals) {
    this.#fd = fd
    this.#signals = signals
  }

  get isTerminal(): boolean {
    return isTerminal(this.#fd)
  }

  get isWriting(): boolean {
    return this.#logging !== undefined || this.#unwritten > 0
  }

  /** bytes that wait for a reader */
  get #unwritten(): number {
    return this.#stream?.writableLength ?? 0
  }

  get columns(): number {
    return this.stream().columns || 80
  }

  get rows(): number {
    return this.stream().rows ?? 24
  }

  stream(): NodeJS.WriteStream {
    this.#stream ??= process[this.#fd === 1 ? 'stdout' : 'stderr'].on('error', () => undefined) // each write reports its own error
    return this.#stream
  }

  log(line: string): Promise<void> {
    if (this.#lines.length + this.#unwritten + line.length <= maxBacklog) this.#lines += line
    this.#logging ??= new Promise(setImmediate).then(async () => {
      this.#logging = undefined
      try {
        await this.#send('', { mayBlock: false })
      } catch (error) {
        if (systemCode(error) === undefined) throw error
      }
    })
    return this.#logging
  }

  async write(text: string): Promise<void> {
    const { received, isListening } = this.#signals
    if (received !== undefined) return this.#writeBriefly(text)
    const written = this.#send(text, { mayBlock: !isListening })
    if (!isListening) return written
    // Throws the reason of a signal that arrives before everything is written.
    const signal = this.#signals.listen()
    let abort = () => {}
    const aborted = new Promise<never>((_, reject) => {
      abort = () => reject(signal.reason)
      signal.addEventListener('abort', abort)
    })
    try {
      await Promise.race([written, aborted])
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  /** Waits at most 200 ms: the program is ending, and if the reader stalls, a second signal to end the wait may never come. */
  async #writeBriefly(text: string): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, 200)
    })
    await Promise.race([this.log(text), timeout])
    clearTimeout(timer)
  }

  /** Writes what was logged, and then a text. */
  async #send(text: string, { mayBlock }: { mayBlock: boolean }): Promise<void> {
    let bytes: Uint8Array = Buffer.from(this.#lines + text)
    this.#lines = ''
    if (this.#unwritten === 0 && (mayBlock || isFile(this.#fd)) && !isConsole(this.#fd)) {
      try {
        while (bytes.length > 0) bytes = bytes.subarray(writeSync(this.#fd, bytes))
        return
      } catch (error) {
        if (systemCode(error) !== 'EAGAIN') throw error // a pipe that another program has made non-blocking
      }
    }
    await new Promise<void>((resolve, reject) => {
      this.stream().write(bytes, (error) => (error ? reject(error) : resolve()))
    })
  }
}

/** bytes of log lines that may wait for a reader; further ones are dropped */
const maxBacklog = 1_048_576

/** Whether this is a console of Windows: `fs.write` would show UTF-8 in its code page (https://nodejs.org/api/fs.html, `fs.write`). */
function isConsole(fd: number): boolean {
  return process.platform === 'win32' && isTerminal(fd)
}

/** Whether writing never waits for a reader. */
function isFile(fd: number): boolean {
  const stats = statsOf(fd)
  return stats?.isFile() === true || (stats?.isCharacterDevice() === true && !isTerminal(fd))
}

function statsOf(fd: number): Stats | undefined {
  return process.platform === 'win32' ? unlessSystemError(() => fstatSync(fd)) : fstatSync(fd)
}

function isTerminal(fd: number): boolean {
  const stats = statsOf(fd)
  const isNull = () => stats?.rdev === unlessSystemError(() => statSync(devNull))?.rdev
  // node:tty loads node:net, which takes 2 ms. Pipes and /dev/null do not need it.
  if (stats && (!stats.isCharacterDevice() || isNull())) return false
  return process.getBuiltinModule('node:tty').isatty(fd)
}

/** Handles SIGINT and SIGTERM from the first `listen` on. A second signal, and any signal before `listen`, ends the process. */
export class Signals {
  received: NodeJS.Signals | undefined
  isListening = false
  #controller: AbortController | undefined
  /** seconds since the start of the process, at the first signal */
  #receivedAt = 0

  listen(): AbortSignal {
    if (!this.isListening && this.received === undefined) {
      this.isListening = true
      process.on('SIGINT', this.#receive).on('SIGTERM', this.#receive)
    }
    this.#controller ??= new AbortController()
    return this.#controller.signal
  }

  readonly #receive = (name: NodeJS.Signals): void => {
    if (this.received === undefined) {
      this.received = name
      this.#receivedAt = process.uptime()
      const error = name === 'SIGINT' ? new PlantsError('interrupted', 'Interrupted') : new PlantsError('terminated', 'Terminated')
      this.#controller?.abort(error)
    } else if (process.uptime() - this.#receivedAt >= 0.1) {
      // `timeout` and shells send one signal to the process and one to its group: both together count as one.
      this.isListening = false
      process.off('SIGINT', this.#receive).off('SIGTERM', this.#receive)
      process.kill(process.pid, name)
    }
  }
}
