import { accessSync, closeSync, constants, fstatSync, openSync, type Stats, statSync, writeSync } from 'node:fs'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { AtomicFile, unwritable } from '../../platform/atomic-file.js'
import { malformed, PlantsError, systemCode } from '../../platform/errors.js'
import { targetOf } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'

/**
 * Writes a file, which takes the place of an old one as a whole: until all is on the disk, and after whatever goes wrong, the old one is
 * there. A link stays, and the file that it leads to is replaced. Devices and pipes are written as they are. Gives how many bytes were
 * written. Throws `unwritable`, `malformed` for a link of another user, the reason of the signal, what the bytes throw, or EPIPE.
 */
export async function writeOut(path: string, io: Pick<Io, 'signal' | 'trusts'>, bytes: AsyncIterable<Uint8Array>): Promise<number> {
  let isInPlace = false
  try {
    const target = targetOf(path, io)
    const old = statSync(path, { throwIfNoEntry: false })
    // What is open already may only be called by the name of a descriptor.
    isInPlace = old !== undefined && ((!old.isFile() && !old.isDirectory()) || /^\/(dev|proc\/[^/]+\/fd)\//.test(path))
    return await (isInPlace && old ? writeInPlace(path, old, io.signal, bytes) : replace(target, old, io.signal, bytes))
  } catch (error) {
    if (!isInPlace && error === io.signal.reason && error instanceof PlantsError)
      throw new PlantsError(error.kind, `${error.message}, ${path} stays as it was`, { cause: error })
    const code = systemCode(error)
    if (code === 'EPIPE') throw error
    const isFull = code === 'ENOSPC' || code === 'EDQUOT'
    throw unwritable(path, error, `${isFull ? 'Free some space, or choose' : 'Choose'} another place with --out FILE`)
  }
}

async function writeInPlace(path: string, old: Stats, signal: AbortSignal, bytes: AsyncIterable<Uint8Array>): Promise<number> {
  let fd: number | undefined
  while (fd === undefined) {
    try {
      // A wait in the system call for the reader of a pipe would outlive Ctrl-C.
      fd = openSync(path, constants.O_WRONLY | constants.O_APPEND | (constants.O_NONBLOCK ?? 0))
    } catch (error) {
      if (systemCode(error) !== 'ENXIO' || !statSync(path).isFIFO()) throw error
      await pause(signal)
    }
  }
  try {
    const isReplaced = !old.isFile() && fstatSync(fd).isFile() // by somebody who would have us write at the end of that
    if (isReplaced) throw malformed(`${path} was replaced by a file`, 'Run it again')
    return await writeAll(fd, bytes, signal)
  } finally {
    closeSync(fd)
  }
}

async function replace(target: string, old: Stats | undefined, signal: AbortSignal, bytes: AsyncIterable<Uint8Array>): Promise<number> {
  if (old) accessSync(target, constants.W_OK) // to replace a file takes no right to write to it
  if (old?.isDirectory()) throw Object.assign(new Error('a folder'), { code: 'EISDIR' })
  const file = new AtomicFile(target)
  try {
    const length = await writeAll(file.fd, bytes, signal)
    await file.flush()
    signal.throwIfAborted()
    file.commit(old)
    return length
  } finally {
    file.discard()
  }
}

/** Writes without a thread, which a file does not need and a pipe that is open here does not either, and gives signals their turn. */
async function writeAll(fd: number, pieces: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number> {
  let length = 0
  for await (const bytes of pieces) {
    for (let at = 0; at < bytes.length; ) {
      try {
        at += writeSync(fd, bytes, at)
      } catch (error) {
        if (systemCode(error) !== 'EAGAIN') throw error
        await pause(signal)
      }
    }
    length += bytes.length
    await setImmediate()
    signal.throwIfAborted()
  }
  return length
}

/** Waits for the other end of a pipe. Throws the reason of the signal. */
async function pause(signal: AbortSignal): Promise<void> {
  await setTimeout(1)
  signal.throwIfAborted()
}
