import { writeSync } from 'node:fs'
import { systemCode } from '../errors.js'
import type { Output } from '../io.js'
import { Log } from './log.js'
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
  readonly #log: Log
  #stream: NodeJS.WriteStream | undefined
  #isSlow = false

  constructor(fd: 1 | 2, open: () => NodeJS.WriteStream, signals: Signals) {
    this.#fd = fd
    this.#open = open
    this.#signals = signals
    this.#log = new Log(fd)
  }

  get isTerminal(): boolean {
    return isTerminal(this.#fd)
  }

  /** Whether something waits for its reader, which may never come. */
  get isStuck(): boolean {
    return this.#unwritten > 0 || this.#log.isStuck
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
    if (this.#log.isStuck && !(await this.#waitForLog())) return
    const bytes = Buffer.concat([this.#log.take(), Buffer.from(text)])
    let written = 0
    if (!this.#isSlow) {
      this.#signals.release()
      written = writeNow(this.#fd, bytes)
      this.#isSlow = written < bytes.length
    }
    if (this.#isSlow) await this.#writeLater(bytes.subarray(written))
  }

  log(line: string): Promise<void> {
    return this.#log.add(line)
  }

  /** What is on its way comes first. False when its reader stalls, and the program was told to go. */
  async #waitForLog(): Promise<boolean> {
    const signal = this.#signals.listen()
    const keepAlive = setInterval(() => undefined, 1000)
    let leave: (() => void) | undefined
    const told = new Promise<boolean>((resolve) => {
      leave = () => setTimeout(() => resolve(false), 200).unref()
      if (signal.aborted) leave()
      signal.addEventListener('abort', leave, { once: true })
    })
    const isWritten = await Promise.race([told, this.#log.add('').then(() => true)])
    if (leave) signal.removeEventListener('abort', leave)
    clearInterval(keepAlive)
    return isWritten
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
