import { once } from 'node:events'
import { fstatSync, readSync, type Stats, statSync, writeSync } from 'node:fs'
import { devNull } from 'node:os'
import { isWindows, PlantsError, systemCode, unlessSystemError } from './errors.js'

export interface Input {
  readonly isTerminal: boolean
  /** A pipe, a socket or a file: not a terminal, and not /dev/null. */
  readonly isPiped: boolean
  chunks(): AsyncIterable<Uint8Array>
  stream(): NodeJS.ReadableStream
  /** Calls when the process continues after a stop, such as with `fg` after Ctrl-Z. Returns what ends that. */
  onContinue(call: () => void): () => void
}

export interface Output {
  readonly isTerminal: boolean
  /** 80 when unknown */
  readonly columns: number
  /** Resolves when the operating system has accepted every byte; rejects with the system's error. */
  write(text: string): Promise<void>
  /**
   * A slow reader does not delay the program: lines beyond a backlog of 1 MiB are dropped. Resolves when the line is
   * written or dropped.
   */
  log(line: string): Promise<void>
  stream(): NodeJS.WritableStream
}

export class ProcessInput implements Input {
  readonly #signals: Signals

  constructor(signals: Signals) {
    this.#signals = signals
  }

  get isTerminal(): boolean {
    return isTerminal(0)
  }

  get isPiped(): boolean {
    const stats = statsOf(0)
    return stats === undefined
      ? !isTerminal(0)
      : isPipe(stats) || stats.isSocket() || stats.isFile()
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    yield* process.stdin
    // Ctrl-C ends the writer of a pipe, too: our signal may come some milliseconds after the end of its data.
    if (this.#signals.areHandled && !statsOf(0)?.isFile())
      await new Promise((resolve) => setTimeout(resolve, 20))
  }

  stream(): NodeJS.ReadableStream {
    return process.stdin
  }

  onContinue(call: () => void): () => void {
    process.on('SIGCONT', call)
    return () => process.off('SIGCONT', call)
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
 * Writes with `fs.writeSync`, because Node's stream drops what a full disk rejects, and the rest with Node's stream,
 * where a pipe has no room. A call that blocks would keep a signal from being handled: once signals are, and for the
 * log, only files are written so.
 */
export class ProcessOutput implements Output {
  readonly #fd: 1 | 2
  readonly #signals: Signals
  #stream: NodeJS.WriteStream | undefined
  /** Bytes in the queue of the stream, which not every runtime reports. */
  #waiting = 0

  constructor(fd: 1 | 2, signals: Signals) {
    this.#fd = fd
    this.#signals = signals
  }

  get isTerminal(): boolean {
    return isTerminal(this.#fd)
  }

  get columns(): number {
    return this.stream().columns || 80
  }

  stream(): NodeJS.WriteStream {
    // Each write reports its own error.
    this.#stream ??= process[this.#fd === 1 ? 'stdout' : 'stderr'].on('error', () => undefined)
    return this.#stream
  }

  async write(text: string): Promise<void> {
    // The program is ending: if the reader stalls, a second signal to end the wait may never come.
    if (this.#signals.received) return Promise.race([this.log(text), grace()])
    const rest = this.#writeNow(Buffer.from(text), !this.#signals.areHandled)
    if (rest.length > 0) await untilSignal(this.#queue(rest), this.#signals.listen())
  }

  async log(line: string): Promise<void> {
    const bytes = Buffer.from(line)
    if (this.#waiting + bytes.length > maxBacklog) return
    try {
      const rest = this.#writeNow(bytes, false)
      if (rest.length > 0) await this.#queue(rest)
    } catch (error) {
      if (systemCode(error) === undefined) throw error
    }
  }

  /** Returns what is left for the queue. */
  #writeNow(bytes: Buffer, mayBlock: boolean): Buffer {
    const isDirect = mayBlock ? !isConsole(this.#fd) : takesAll(this.#fd)
    if (!isDirect || this.#waiting > 0) return bytes
    let rest = bytes
    try {
      while (rest.length > 0) rest = rest.subarray(writeSync(this.#fd, rest))
    } catch (error) {
      if (systemCode(error) !== 'EAGAIN') throw error
    }
    return rest
  }

  #queue(bytes: Buffer): Promise<void> {
    this.#waiting += bytes.length
    return new Promise((resolve, reject) => {
      this.stream().write(bytes, (error) => {
        this.#waiting -= bytes.length
        if (error) reject(error)
        else resolve()
      })
    })
  }
}

/** So many bytes of log lines may wait for a reader. */
const maxBacklog = 1_048_576

/** Output is waited for so long after a signal. */
function grace(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, 200).unref())
}

/** Waits for the output. After a signal, waits only briefly, and throws its reason. */
async function untilSignal(writing: Promise<void>, signal: AbortSignal): Promise<void> {
  const written = new AbortController()
  const stalled = once(signal, 'abort', { signal: written.signal }).then(grace)
  try {
    await Promise.race([writing, stalled.then(() => signal.throwIfAborted())])
  } finally {
    written.abort()
  }
}

/**
 * Whether this is a console of Windows: `fs.write` would show UTF-8 in its code page (https://nodejs.org/api/fs.html,
 * `fs.write`).
 */
function isConsole(fd: number): boolean {
  return isWindows && isTerminal(fd)
}

/** A file and a device such as /dev/null do not wait for a reader. */
function takesAll(fd: number): boolean {
  const stats = statsOf(fd)
  return stats !== undefined && (stats.isFile() || (stats.isCharacterDevice() && !isTerminal(fd)))
}

function isTerminal(fd: number): boolean {
  const stats = statsOf(fd)
  const isNull = () => stats?.rdev === unlessSystemError(() => statSync(devNull))?.rdev
  // A start without a terminal does not load node:tty, which loads node:net: 5 ms.
  if (stats && (!stats.isCharacterDevice() || isNull())) return false
  return process.getBuiltinModule('node:tty').isatty(fd)
}

/** Node's `isFIFO` is false on Windows, whose constants have no S_IFIFO either, but libuv sets the mode of a pipe. */
export function isPipe({ mode }: Pick<Stats, 'mode'>): boolean {
  return (mode & 0o170000) === 0o010000
}

/** Undefined for what the system has no information of, such as a console of Windows. */
function statsOf(fd: number): Stats | undefined {
  return unlessSystemError(() => fstatSync(fd))
}

/**
 * What ends the process. A console of Windows sends SIGBREAK for Ctrl-Break, by which supervisors stop a program, and
 * SIGHUP when it is closed. Elsewhere `nohup` makes a process ignore SIGHUP, which a handler would undo.
 */
export function endingSignals(system: { isWindows: boolean } = { isWindows }): NodeJS.Signals[] {
  return system.isWindows ? ['SIGINT', 'SIGTERM', 'SIGBREAK', 'SIGHUP'] : ['SIGINT', 'SIGTERM']
}

/** Handles signals from the first `listen` on. A second one, and any before `listen`, ends the process. */
export class Signals {
  received = false
  #controller: AbortController | undefined
  #isLent = false

  get areHandled(): boolean {
    return this.#controller !== undefined
  }

  listen(): AbortSignal {
    this.#controller ??= this.#handle()
    return this.#controller.signal
  }

  /** Until the returned function is called, a second signal is for the program that has the terminal. */
  lendTerminal(): () => void {
    this.#isLent = true
    return () => {
      this.#isLent = false
    }
  }

  #handle(): AbortController {
    const controller = new AbortController()
    let receivedAt = 0
    const receive = (name: NodeJS.Signals) => {
      if (!this.received) {
        this.received = true
        receivedAt = process.uptime()
        const interrupted = new PlantsError('interrupted', 'Interrupted')
        controller.abort(
          name === 'SIGINT' ? interrupted : new PlantsError('terminated', 'Terminated'),
        )
      } else if (!this.#isLent && process.uptime() - receivedAt >= 0.1) {
        // `timeout` and shells send one signal to the process and one to its group: both together count as one.
        for (const signal of endingSignals()) process.off(signal, receive)
        process.kill(process.pid, name === 'SIGINT' ? name : 'SIGTERM') // Windows can send no other
      }
    }
    for (const signal of endingSignals()) process.on(signal, receive)
    return controller
  }
}
