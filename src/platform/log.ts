import { constants, fstatSync, openSync, write, writeSync } from 'node:fs'
import { systemCode } from './errors.js'
import { isTerminal } from './terminal.js'

/** Writes lines to a file descriptor, all of a turn of the loop with one call, and holds nothing up when their reader falls behind. */
export class Log {
  readonly #fd: number
  readonly #open: () => void
  #lines = ''
  /** what of the lines before is still to be taken by the system */
  #rest: Uint8Array = new Uint8Array()
  #writing: Promise<void> | undefined
  /** what the system said when it took no more */
  #failure: Error | undefined
  #way: Way | undefined

  /** @param open makes the stream of the file descriptor, which a socket needs */
  constructor(fd: number, open: () => void) {
    this.#fd = fd
    this.#open = open
  }

  /** Whether something waits for its reader, who may never come. */
  get isStuck(): boolean {
    return this.#writing !== undefined
  }

  /** Whether a thread writes, with which nobody else may interfere. */
  get isInThread(): boolean {
    return this.#writing !== undefined && this.#way?.isInThread === true
  }

  /** Resolves when the line is written, or dropped: more than 1 MiB is not kept. */
  add(line: string): Promise<void> {
    if (this.#lines.length + line.length <= longestLog) this.#lines += line
    this.#writing ??= this.#write()
    return this.#writing
  }

  /** Writes a text of any length behind what is there, or the rest of one where nothing is; rejects with the system's error. */
  async put(text: string | Uint8Array): Promise<void> {
    this.#failure = undefined
    if (typeof text === 'string') this.#lines += text
    else this.#rest = text
    this.#writing ??= this.#write()
    await this.#writing
    if (this.#failure !== undefined) throw this.#failure
  }

  /** Hands over what no thread is writing, for whoever writes something that belongs behind it. */
  take(): Uint8Array {
    const rest = this.isInThread ? new Uint8Array() : this.#rest
    const taken = Buffer.concat([rest, Buffer.from(this.#lines)])
    if (!this.isInThread) this.#rest = new Uint8Array()
    this.#lines = ''
    return taken
  }

  async #write(): Promise<void> {
    await new Promise(setImmediate)
    this.#way ??= wayTo(this.#fd, this.#open)
    while (this.#rest.length > 0 || this.#lines !== '') {
      if (this.#rest.length === 0) {
        this.#rest = Buffer.from(this.#lines)
        this.#lines = ''
      }
      await this.#writeOnce(this.#way)
    }
    this.#writing = undefined
  }

  async #writeOnce({ fd, isInThread }: Way): Promise<void> {
    try {
      const written = isInThread ? await writeInThread(fd, this.#rest) : writeSync(fd, this.#rest)
      this.#rest = this.#rest.subarray(written)
    } catch (error) {
      if (!(error instanceof Error) || systemCode(error) === undefined) throw error
      if (systemCode(error) === 'EAGAIN') return pause()
      this.#rest = new Uint8Array()
      this.#failure = error // of a log, nobody can be told
    }
  }
}

/** It does not keep the process. */
function pause(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 10).unref()
  })
}

/** characters of a log that wait for their reader */
const longestLog = 1_048_576

interface Way {
  fd: number
  /** whether the call may have to wait, and so needs a thread */
  isInThread: boolean
}

/**
 * A file takes what it is given; a pipe is opened once more, so that it says when it is full. A socket cannot be, but says so
 * too once it has a stream. Others may make a call wait.
 */
function wayTo(fd: number, open: () => void): Way {
  const stats = fstatSync(fd)
  if (stats.isSocket()) open()
  if (stats.isSocket() || stats.isFile() || (stats.isCharacterDevice() && !isTerminal(fd))) return { fd, isInThread: false }
  if (!stats.isFIFO() || process.platform !== 'linux') return { fd, isInThread: true }
  try {
    return { fd: openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK), isInThread: false }
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return { fd, isInThread: true } // a pipe of another user, or without a reader
  }
}

function writeInThread(fd: number, bytes: Uint8Array): Promise<number> {
  return new Promise((resolve, reject) => {
    write(fd, bytes, 0, (error, count) => (error ? reject(error) : resolve(count)))
  })
}
