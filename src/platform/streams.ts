/*
 * The standard streams and the signals of the process.
 *
 * On a full disk, the system may write only a part of the bytes, which the streams of Node.js do
 * not notice. So output is written with `writeSync`. If a pipe has no room (EAGAIN), the remaining
 * bytes are written to the stream.
 *
 * But `writeSync` waits until the reader of a blocking pipe reads, and the program cannot handle a
 * signal in the meantime. So output to a pipe is written to the stream as soon as the program
 * handles signals, and the log is always written to the stream.
 */
import { closeSync, fstatSync, type Stats, statSync, writeSync } from 'node:fs'
import { devNull } from 'node:os'
import { getSystemCode, ignoreSystemError, isWindows, PlantsError } from '../errors.js'

export interface Input {
  readonly isTerminal: boolean
  /** Whether stdin is a pipe or a file: neither a terminal nor /dev/null. */
  readonly isPiped: boolean
  readChunks(): AsyncIterable<Uint8Array>
  openStream(): NodeJS.ReadableStream
}

export interface Output {
  readonly isTerminal: boolean
  /** The width of the terminal, or 80 where it is not known. */
  readonly columns: number
  /** Resolves when the system has accepted every byte, or rejects with its error. */
  write(text: string | Uint8Array): Promise<void>
  /**
   * Writes lines of a log. They are dropped if more than 1 MiB would wait for the reader, and errors
   * of the system are ignored.
   */
  log(line: string): Promise<void>
  openStream(): NodeJS.WritableStream
}

export function createStandardInput(signals: Signals): Input {
  process.once('exit', closeLostTerminals)
  return {
    get isTerminal() {
      return isTerminal(0)
    },
    get isPiped() {
      return !(readStats(0)?.isCharacterDevice() ?? isTerminal(0))
    },
    async *readChunks() {
      yield* process.stdin
      // Ctrl-C also ends the program that writes to the pipe, and so ends the pipe. The signal may
      // reach this process some milliseconds later, so this waits for it.
      if (signals.areHandled && !readStats(0)?.isFile())
        await new Promise((resolve) => setTimeout(resolve, 20))
    },
    openStream: () => process.stdin,
  }
}

const maxWaitingBytes = 1_048_576

export function createStandardOutput(fd: 1 | 2, signals: Signals): Output {
  /** The bytes in the queue of the stream, which Bun does not report for stderr. */
  let waitingBytes = 0
  let openedStream: NodeJS.WriteStream | undefined
  const openStream = () => {
    // Each write reports its own error, so the event is not needed.
    openedStream ??= process[fd === 1 ? 'stdout' : 'stderr'].on('error', () => undefined)
    return openedStream
  }
  const writeToStream = (bytes: Uint8Array) => {
    waitingBytes += bytes.length
    return new Promise<void>((resolve, reject) => {
      openStream().write(bytes, (error) => {
        waitingBytes -= bytes.length
        if (error) reject(error)
        else resolve()
      })
    })
  }
  /** Whether output may be written by `writeSync` now: the head of this file says when. */
  const mayWriteSync = () => {
    // The bytes that wait in the queue of the stream must be written first.
    if (waitingBytes > 0) return false
    // `fs.write` would print UTF-8 in the code page of the console of Windows.
    if (isWindows && isTerminal(fd)) return false
    return !signals.areHandled || readStats(fd)?.isFile() === true
  }
  return {
    get isTerminal() {
      return isTerminal(fd)
    },
    get columns() {
      return openStream().columns || 80
    },
    openStream,
    async write(text) {
      let remainder: Uint8Array = typeof text === 'string' ? Buffer.from(text) : text
      try {
        if (mayWriteSync())
          while (remainder.length > 0) remainder = remainder.subarray(writeSync(fd, remainder))
      } catch (error) {
        if (getSystemCode(error) !== 'EAGAIN') throw error
      }
      if (remainder.length > 0) await writeToStream(remainder)
    },
    async log(line) {
      const bytes = Buffer.from(line)
      if (waitingBytes + bytes.length > maxWaitingBytes) return
      await writeToStream(bytes).catch((error: unknown) => {
        if (getSystemCode(error) === undefined) throw error
      })
    },
  }
}

/**
 * Closes the descriptors of a terminal that has closed. Otherwise Node.js would try to restore the
 * mode of the terminal, and fail with SIGABRT.
 */
function closeLostTerminals(): void {
  for (const fd of [0, 1, 2])
    if (readStats(fd)?.isCharacterDevice() && !isTerminal(fd)) closeSync(fd)
}

function isTerminal(fd: number): boolean {
  const stats = readStats(fd)
  const isNull = () => stats?.rdev === ignoreSystemError(() => statSync(devNull))?.rdev
  // A start without a terminal does not load node:tty and with it node:net, which takes 5 ms.
  if (stats && (!stats.isCharacterDevice() || isNull())) return false
  return process.getBuiltinModule('node:tty').isatty(fd)
}

/** Returns undefined for a console of Windows. */
function readStats(fd: number): Stats | undefined {
  return ignoreSystemError(() => fstatSync(fd))
}

/** A terminal sends SIGHUP when it closes, and a console of Windows SIGBREAK for Ctrl-Break. */
const endingSignals: NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP']
if (isWindows) endingSignals.push('SIGBREAK')

/**
 * Whether `nohup` has started this process. It makes a program ignore SIGHUP, but Node.js resets
 * that. Shells set the variable `_` to the path of the program that they start.
 */
const isUnderNohup = /(?:^|\/)nohup$/.test(process.env['_'] ?? '')

/**
 * Handles the signals of the system from the first `listen` on. A second signal, and any signal
 * before `listen`, ends the process.
 */
export class Signals {
  areHandled = false
  #controller: AbortController | undefined
  #receivedAtSeconds = 0

  listen(): AbortSignal {
    if (!this.areHandled) for (const name of endingSignals) process.on(name, this.#receive)
    this.areHandled = true
    this.#controller ??= new AbortController() // It is created late, because it loads 29 modules.
    return this.#controller.signal
  }

  readonly #receive = (name: NodeJS.Signals): void => {
    if (name === 'SIGHUP' && isUnderNohup) return
    if (!this.#controller?.signal.aborted) {
      this.#receivedAtSeconds = process.uptime()
      this.#controller?.abort(
        name === 'SIGINT'
          ? new PlantsError('interrupted', 'Interrupted')
          : new PlantsError('terminated', 'Terminated'),
      )
    } else if (process.uptime() - this.#receivedAtSeconds >= 0.1) {
      // `timeout` and shells send one signal to the process and one to its group, so two within a
      // tenth of a second count as one.
      for (const signal of endingSignals) process.off(signal, this.#receive)
      // Windows can send only these two.
      process.kill(process.pid, name === 'SIGINT' ? name : 'SIGTERM')
    }
  }
}
