import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync, writeSync } from 'node:fs'
import { devNull } from 'node:os'
import { isWindows, PlantsError, systemCode, unlessSystemError } from './errors.js'

export interface Input {
  readonly isTerminal: boolean
  /** a pipe, a socket or a file: not a terminal, and not /dev/null */
  readonly isPiped: boolean
  chunks(): AsyncIterable<Uint8Array>
  stream(): NodeJS.ReadableStream
}

export interface Output {
  readonly isTerminal: boolean
  /** 80 when unknown */
  readonly columns: number
  /** 24 when unknown */
  readonly rows: number
  /** Resolves when the operating system has accepted every byte; rejects with the system's error. */
  write(text: string): Promise<void>
  /**
   * A slow reader does not delay the program: lines beyond a backlog of 1 MiB are dropped. Resolves when the line is
   * written or dropped.
   */
  log(line: string): Promise<void>
  stream(): NodeJS.WritableStream
}

/** A file, and the data that is already in a pipe, are read without Node's stream, which is slow to create. */
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

/** Returns whether the data in the pipe was all of it. */
function* readPipe(): Generator<Uint8Array, boolean> {
  const fd = reopen(0, constants.O_RDONLY)
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

/** Reads to the end, or until more than `limit` bytes are read. */
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
 * `write` uses synchronous system calls: Node's stream drops what a full disk rejects. Such a call blocks while the
 * reader stalls, and a signal then ends the process. When signals are handled here, or the pipe is non-blocking, a
 * queue is written instead, which never blocks.
 */
export class ProcessOutput implements Output {
  readonly #fd: 1 | 2
  readonly #signals: Signals
  #stream: NodeJS.WriteStream | undefined
  /** the queue: the bytes that are being written, and the text after them */
  #bytes: Uint8Array = new Uint8Array()
  #text = ''
  #writing: Promise<void> | undefined
  /** the same without errors of the system, shared by all lines of one turn of the event loop */
  #logging: Promise<void> | undefined
  /** the file descriptor for the queue, which does not block */
  #channel: number | undefined

  constructor(fd: 1 | 2, signals: Signals) {
    this.#fd = fd
    this.#signals = signals
  }

  get isTerminal(): boolean {
    return isTerminal(this.#fd)
  }

  get isWriting(): boolean {
    return this.#writing !== undefined
  }

  get columns(): number {
    return this.stream().columns || 80
  }

  get rows(): number {
    return this.stream().rows ?? 24
  }

  stream(): NodeJS.WriteStream {
    // each write reports its own error
    this.#stream ??= process[this.#fd === 1 ? 'stdout' : 'stderr'].on('error', () => undefined)
    return this.#stream
  }

  log(line: string): Promise<void> {
    if (this.#text.length + line.length <= maxBacklog) this.#text += line
    this.#logging ??= this.#flush().catch((error: unknown) => {
      if (systemCode(error) === undefined) throw error
    })
    return this.#logging
  }

  async write(text: string): Promise<void> {
    // The program is ending: if the reader stalls, a second signal to end the wait may never come.
    if (this.#signals.received !== undefined) return briefly(this.log(text))
    this.#text += text
    if (this.#signals.isListening || isConsole(this.#fd)) return this.#writeUntilSignal()
    try {
      while (this.#hasMore()) this.#bytes = this.#bytes.subarray(writeSync(this.#fd, this.#bytes))
    } catch (error) {
      if (systemCode(error) === 'EAGAIN') return this.#writeUntilSignal()
      this.#drop()
      throw error
    }
  }

  /**
   * Throws the reason of a signal that arrives before everything is written. Keeps the listeners: a pending signal
   * would be lost.
   */
  async #writeUntilSignal(): Promise<void> {
    const signal = this.#signals.listen()
    const keepAlive = setInterval(() => undefined, 1000)
    let abort = () => {}
    const aborted = new Promise<boolean>((resolve) => {
      abort = () => resolve(true)
      signal.addEventListener('abort', abort)
    })
    try {
      const writing = this.#flush()
      if (!(await Promise.race([aborted, writing.then(() => false)]))) return
      await briefly(writing) // it may only have waited for its turn
      const isWritten = !this.#hasMore()
      this.#drop()
      if (!isWritten) throw signal.reason
    } finally {
      clearInterval(keepAlive)
      signal.removeEventListener('abort', abort)
    }
  }

  #hasMore(): boolean {
    if (this.#bytes.length === 0) {
      this.#bytes = Buffer.from(this.#text)
      this.#text = ''
    }
    return this.#bytes.length > 0
  }

  #drop(): void {
    this.#bytes = new Uint8Array()
    this.#text = ''
  }

  #flush(): Promise<void> {
    this.#writing ??= this.#writeQueue()
    return this.#writing
  }

  async #writeQueue(): Promise<void> {
    await new Promise(setImmediate)
    try {
      for (let waits = 1; this.#hasMore(); ) {
        const written = isConsole(this.#fd) ? await this.#writeToStream() : this.#writeSome()
        waits = written > 0 ? 1 : Math.min(waits + 1, 10)
        this.#bytes = this.#bytes.subarray(written)
        if (written === 0) await new Promise((resolve) => void setTimeout(resolve, waits).unref())
      }
    } finally {
      this.#writing = undefined
      this.#logging = undefined
      this.#drop() // empty, unless a write has failed
    }
  }

  /** Returns how many bytes were written: 0 if the reader stalls. */
  #writeSome(): number {
    this.#channel ??= this.#openChannel()
    try {
      return writeSync(this.#channel, this.#bytes)
    } catch (error) {
      if (systemCode(error) !== 'EAGAIN') throw error
      return 0
    }
  }

  #writeToStream(): Promise<number> {
    const bytes = this.#bytes
    return new Promise((resolve, reject) => {
      this.stream().write(bytes, (error) => (error ? reject(error) : resolve(bytes.length)))
    })
  }

  /** A file does not block. Linux reopens a pipe as non-blocking; otherwise, creating its stream makes it so. */
  #openChannel(): number {
    const stats = statsOf(this.#fd)
    if (stats?.isFile() || (stats?.isCharacterDevice() && !isTerminal(this.#fd))) return this.#fd
    const reopened = stats?.isFIFO() ? reopen(this.#fd, constants.O_WRONLY) : undefined
    if (reopened === undefined) this.stream()
    return reopened ?? this.#fd
  }
}

/** characters of log lines that may wait for a reader */
const maxBacklog = 1_048_576

/**
 * Whether this is a console of Windows: `fs.write` would show UTF-8 in its code page (https://nodejs.org/api/fs.html,
 * `fs.write`).
 */
function isConsole(fd: number): boolean {
  return isWindows && isTerminal(fd)
}

function statsOf(fd: number): Stats | undefined {
  return isWindows ? unlessSystemError(() => fstatSync(fd)) : fstatSync(fd)
}

/**
 * Reopens a pipe as non-blocking; undefined outside Linux, and for a pipe that belongs to another user or has no other
 * end.
 */
function reopen(fd: number, mode: number): number | undefined {
  return unlessSystemError(() => openSync(`/proc/self/fd/${fd}`, mode | constants.O_NONBLOCK))
}

function isTerminal(fd: number): boolean {
  const stats = statsOf(fd)
  const isNull = () => stats?.rdev === unlessSystemError(() => statSync(devNull))?.rdev
  // node:tty loads node:net, which pipes and /dev/null do not need.
  if (stats && (!stats.isCharacterDevice() || isNull())) return false
  return process.getBuiltinModule('node:tty').isatty(fd)
}

/**
 * Handles SIGINT and SIGTERM from the first `listen` on. A second signal, and any signal before `listen`, ends the
 * process.
 */
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
      const error =
        name === 'SIGINT' ? new PlantsError('interrupted', 'Interrupted') : new PlantsError('terminated', 'Terminated')
      this.#controller?.abort(error)
    } else if (process.uptime() - this.#receivedAt >= 0.1) {
      // `timeout` and shells send one signal to the process and one to its group: both together count as one.
      this.isListening = false
      process.off('SIGINT', this.#receive).off('SIGTERM', this.#receive)
      process.kill(process.pid, name)
    }
  }
}

/** Waits 200 ms at most. Failures are not reported: a signal is. */
async function briefly(writing: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, 200)
  })
  await Promise.race([writing.catch(() => undefined), timeout])
  clearTimeout(timer)
}
