import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { systemCode } from './errors.js'
import { isTerminal } from './terminal.js'

export interface Input {
  readonly isTerminal: boolean
  /** something may be waiting there: a pipe, a socket or a file, but not a terminal and not /dev/null */
  readonly isPiped: boolean
  chunks(): AsyncIterable<Uint8Array>
  stream(): NodeJS.ReadableStream
}

export class ProcessInput implements Input {
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
