import { writeSync } from 'node:fs'
import { systemCode } from './errors.js'
import { Log } from './log.js'
import type { Signals } from './signals.js'
import { isTerminal } from './terminal.js'

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

/**
 * Writes with plain system calls, because Node's own stream costs 2 ms to make, and for a file drops what a full disk did
 * not take. A reader that stalls stops the process in such a call, which any signal ends; where signals are listened to,
 * and where a pipe was made non-blocking, the log writes, which waits for nobody.
 */
export class ProcessOutput implements Output {
  readonly #fd: 1 | 2
  readonly #open: () => NodeJS.WriteStream
  readonly #signals: Signals
  readonly #log: Log
  #stream: NodeJS.WriteStream | undefined

  constructor(fd: 1 | 2, open: () => NodeJS.WriteStream, signals: Signals) {
    this.#fd = fd
    this.#open = open
    this.#signals = signals
    this.#log = new Log(fd, () => this.stream())
  }

  get isTerminal(): boolean {
    return isTerminal(this.#fd)
  }

  /** Whether something waits for its reader, which may never come. */
  get isStuck(): boolean {
    return this.#log.isStuck
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
    if (this.#signals.received !== undefined) return this.#writeLeaving(text)
    if (this.#signals.isListening || this.#log.isInThread) return this.#writeListening(text)
    const bytes = Buffer.concat([this.#log.take(), Buffer.from(text)])
    const written = writeNow(this.#fd, bytes)
    if (written < bytes.length) await this.#writeListening(bytes.subarray(written))
  }

  log(line: string): Promise<void> {
    return this.#log.add(line)
  }

  /** Writes so that a signal is heard meanwhile. To stop listening would not do: what has come by then, and was not heard yet, would be lost. */
  async #writeListening(text: string | Uint8Array): Promise<void> {
    const signal = this.#signals.listen()
    const keepAlive = setInterval(() => undefined, 1000)
    let leave = () => {}
    const told = new Promise<'told'>((resolve) => {
      leave = () => resolve('told')
      signal.addEventListener('abort', leave)
    })
    try {
      const writing = this.#log.put(text)
      if ((await Promise.race([told, writing])) !== 'told') return
      writing.catch(() => undefined) // what it says comes too late
      if (!(await this.#isWritten())) throw signal.reason
    } finally {
      clearInterval(keepAlive)
      signal.removeEventListener('abort', leave)
    }
  }

  /** Whether all is written by now; what is not, and no thread is writing, is never written. */
  async #isWritten(): Promise<boolean> {
    if (this.#log.isInThread) await this.#writeLeaving('')
    return this.#log.take().length === 0 && !this.#log.isInThread
  }

  /** Why the program ends is told, but a reader who stalls is not waited for: no second signal may come to end that. */
  async #writeLeaving(text: string): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, 200)
    })
    await Promise.race([this.#log.add(text), patience])
    clearTimeout(timer)
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
