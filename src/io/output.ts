import { constants, fstatSync, openSync, write, writeSync } from 'node:fs'
import { systemCode } from '../errors.js'
import type { Output } from '../io.js'
import type { Signals } from './signals.js'
import { isTerminal } from './terminal.js'

/**
 * Writes with plain system calls, because Node's own stream costs 2 ms to make, and for a file drops what a full disk did
 * not take. A reader that stalls stops the process in such a call, so signals are let through to end it. Only a pipe
 * that somebody made non-blocking goes through the stream, which waits for it.
 */
export class ProcessOutput implements Output {
  #unwritten = 0
  readonly #fd: 1 | 2
  readonly #open: () => NodeJS.WriteStream
  readonly #signals: Signals
  #stream: NodeJS.WriteStream | undefined
  #isSlow = false
  #log = ''
  #patient: number | undefined
  #logging: Promise<void> | undefined

  constructor(fd: 1 | 2, open: () => NodeJS.WriteStream, signals: Signals) {
    this.#fd = fd
    this.#open = open
    this.#signals = signals
  }

  get isTerminal(): boolean {
    return isTerminal(this.#fd)
  }

  /** Whether something waits for its reader, which may never come. */
  get isStuck(): boolean {
    return this.#unwritten > 0 || (this.#logging !== undefined && this.#patient === this.#fd)
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
      await writeInThread(this.#logFd(), bytes).catch((error: unknown) => {
        if (systemCode(error) === undefined) throw error // nobody can be told that the log is gone
      })
    }
    this.#logging = undefined
  }

  /** A pipe is opened once more, without waiting for its reader: a thread that waits would keep the process from ending. */
  #logFd(): number {
    this.#patient ??= process.platform === 'linux' && fstatSync(this.#fd).isFIFO() ? openPatient(this.#fd) : this.#fd
    return this.#patient
  }

  #writeLater(bytes: Uint8Array): Promise<void> {
    const signal = this.#signals.listen()
    this.#unwritten += 1
    return new Promise((resolve, reject) => {
      const abort = () => reject(signal.reason)
      if (signal.aborted) setImmediate(resolve) // why the program ends is told, but not waited for
      signal.addEventListener('abort', abort)
      this.stream().write(bytes, (error) => {
        signal.removeEventListener('abort', abort)
        this.#unwritten -= 1
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

function openPatient(fd: number): number {
  try {
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return fd // a pipe of another user, or without a reader
  }
}

/** characters of a log that wait for their reader */
const longestLog = 1_048_576

async function writeInThread(fd: number, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length; ) {
    written += await new Promise<number>((resolve, reject) => {
      write(fd, bytes, written, (error, count) => {
        if (!error) resolve(count)
        else if (systemCode(error) === 'EAGAIN') setTimeout(resolve, 10, 0).unref()
        else reject(error)
      })
    })
  }
}
