/*
 * The standard streams and the signals of the process.
 *
 * Node's stream for a file ignores that a full disk has taken only a part. So output is written with `writeSync` until a
 * pipe has no room (EAGAIN), and only the rest by the stream. But `writeSync` waits for the reader of a blocking pipe,
 * and a signal that is handled would wait with it: once signals are, and for the log, pipes are left to the stream.
 * To give up a stalled reader a moment after a signal was tried: a second signal, which ends the process, is enough.
 */
import { fstatSync, type Stats, statSync, writeSync } from 'node:fs'
import { devNull } from 'node:os'
import { isWindows, PlantsError, systemCode, unlessSystemError } from './errors.js'

export interface Input {
  readonly isTerminal: boolean
  /** A pipe, a socket or a file: not a terminal, and not /dev/null. */
  readonly isPiped: boolean
  chunks(): AsyncIterable<Uint8Array>
  stream(): NodeJS.ReadableStream
}

export interface Output {
  readonly isTerminal: boolean
  /** 80 when unknown */
  readonly columns: number
  /** Resolves when the system has accepted every byte; rejects with its error. */
  write(text: string): Promise<void>
  /** Drops the line if more than 1 MiB would wait for a slow reader. Ignores the system's errors. */
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
    return !(statsOf(0)?.isCharacterDevice() ?? isTerminal(0))
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
}

const maxWaitingBytes = 1_048_576

export class ProcessOutput implements Output {
  readonly #fd: 1 | 2
  readonly #signals: Signals
  #stream: NodeJS.WriteStream | undefined
  /** In the queue of the stream: Bun does not report those of stderr. */
  #waitingBytes = 0

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
    const bytes = Buffer.from(text)
    const rest = this.#isDirect() ? this.#writeNow(bytes) : bytes
    if (rest.length > 0) await this.#queue(rest)
  }

  async log(line: string): Promise<void> {
    const bytes = Buffer.from(line)
    if (this.#waitingBytes + bytes.length > maxWaitingBytes) return
    await this.#queue(bytes).catch((error: unknown) => {
      if (systemCode(error) === undefined) throw error
    })
  }

  #isDirect(): boolean {
    if (this.#waitingBytes > 0) return false
    // `fs.write` would show UTF-8 in the code page of a console of Windows (https://nodejs.org/api/fs.html).
    if (isWindows && this.isTerminal) return false
    return !this.#signals.areHandled || isFileOrDevice(this.#fd)
  }

  /** Returns what the system has not taken yet. */
  #writeNow(bytes: Buffer): Buffer {
    let rest = bytes
    try {
      while (rest.length > 0) rest = rest.subarray(writeSync(this.#fd, rest))
    } catch (error) {
      if (systemCode(error) !== 'EAGAIN') throw error
    }
    return rest
  }

  #queue(bytes: Buffer): Promise<void> {
    this.#waitingBytes += bytes.length
    return new Promise((resolve, reject) => {
      this.stream().write(bytes, (error) => {
        this.#waitingBytes -= bytes.length
        if (error) reject(error)
        else resolve()
      })
    })
  }
}

/** Neither waits for a reader. */
function isFileOrDevice(fd: number): boolean {
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

/** Undefined for what the system has no information of, such as a console of Windows. */
function statsOf(fd: number): Stats | undefined {
  return unlessSystemError(() => fstatSync(fd))
}

/**
 * A console of Windows sends SIGBREAK for Ctrl-Break, by which supervisors stop a program, and SIGHUP when it is closed.
 * Elsewhere, `nohup` makes a process ignore SIGHUP, which a handler would undo.
 */
const endingSignals: NodeJS.Signals[] = isWindows
  ? ['SIGINT', 'SIGTERM', 'SIGBREAK', 'SIGHUP']
  : ['SIGINT', 'SIGTERM']

/** Handles signals from the first `listen` on. A second one, and any before `listen`, ends the process. */
export class Signals {
  #controller: AbortController | undefined

  get areHandled(): boolean {
    return this.#controller !== undefined
  }

  listen(): AbortSignal {
    this.#controller ??= this.#handle()
    return this.#controller.signal
  }

  #handle(): AbortController {
    const controller = new AbortController()
    let receivedAt = 0
    const receive = (name: NodeJS.Signals) => {
      if (!controller.signal.aborted) {
        receivedAt = process.uptime()
        controller.abort(
          name === 'SIGINT'
            ? new PlantsError('interrupted', 'Interrupted')
            : new PlantsError('terminated', 'Terminated'),
        )
      } else if (process.uptime() - receivedAt >= 0.1) {
        // `timeout` and shells send one signal to the process and one to its group: both together count as one.
        for (const signal of endingSignals) process.off(signal, receive)
        process.kill(process.pid, name === 'SIGINT' ? name : 'SIGTERM') // Windows can send no other
      }
    }
    for (const signal of endingSignals) process.on(signal, receive)
    return controller
  }
}
