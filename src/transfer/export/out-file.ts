import { accessSync, closeSync, constants, fstatSync, openSync, type Stats, statSync, writeSync } from 'node:fs'
import { setImmediate, setTimeout } from 'node:timers/promises'
import { AtomicFile } from '../../platform/atomic-file.js'
import { PlantsError, systemCode } from '../../platform/errors.js'
import { targetOf } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import { unwritable } from '../unwritable.js'
import type { Put } from './document.js'

/**
 * Writes a file, which takes the place of an old one as a whole: until all is on the disk, and after whatever goes wrong, the old one is
 * there. A link stays, and the file that it leads to is replaced. Devices and pipes are written as they are.
 *
 * @param fill writes what is to be in the file
 * @throws {PlantsError} `unwritable`; `malformed` for a link of another user; the reason of the signal; what `fill` throws; or the EPIPE of a reader that has left
 */
export async function writeOut(path: string, io: Pick<Io, 'signal' | 'trusts'>, fill: (put: Put) => Promise<void>): Promise<void> {
  try {
    const target = targetOf(path, io)
    const old = statSync(path, { throwIfNoEntry: false })
    if (old && isWrittenInPlace(path, old)) await writeInPlace(path, old, io.signal, fill)
    else await replace({ path, target, old }, io.signal, fill)
  } catch (error) {
    throw explain(error, path)
  }
}

/** What is no file, and what is open already and is only called by the name of a descriptor. */
function isWrittenInPlace(path: string, old: Stats): boolean {
  return (!old.isFile() && !old.isDirectory()) || /^\/(dev|proc\/[^/]+\/fd)\//.test(path)
}

async function writeInPlace(path: string, old: Stats, signal: AbortSignal, fill: (put: Put) => Promise<void>): Promise<void> {
  const fd = await openInPlace(path, signal)
  try {
    const isReplaced = !old.isFile() && fstatSync(fd).isFile() // by somebody who would have us write at the end of that
    if (isReplaced) throw new PlantsError('malformed', `${path} was replaced by a file`, { hint: 'Run it again' })
    await fill((bytes) => putAll(fd, bytes, signal))
  } finally {
    closeSync(fd)
  }
}

/** Never waits in a system call for the reader of a pipe: such a wait would outlive Ctrl-C. */
async function openInPlace(path: string, signal: AbortSignal): Promise<number> {
  for (;;) {
    try {
      return openSync(path, constants.O_WRONLY | constants.O_APPEND | (constants.O_NONBLOCK ?? 0))
    } catch (error) {
      if (systemCode(error) !== 'ENXIO' || !statSync(path).isFIFO()) throw error
      await pause(signal)
    }
  }
}

interface Replaced {
  path: string
  /** the file that the path leads to */
  target: string
  old: Stats | undefined
}

async function replace({ path, target, old }: Replaced, signal: AbortSignal, fill: (put: Put) => Promise<void>): Promise<void> {
  if (old) accessSync(target, constants.W_OK) // to replace a file takes no right to write to it
  if (old?.isDirectory()) throw Object.assign(new Error('a folder'), { code: 'EISDIR' })
  const file = new AtomicFile(target)
  try {
    await fill((bytes) => putAll(file.fd, bytes, signal))
    await file.flush()
    signal.throwIfAborted()
    file.commit(old)
  } catch (error) {
    if (!(signal.aborted && error === signal.reason && error instanceof PlantsError)) throw error
    throw new PlantsError(error.kind, `${error.message}, ${path} stays as it was`, { cause: error })
  } finally {
    file.discard()
  }
}

/** Writes without a thread, which a file does not need and a pipe that is open here does not either, and then gives signals their turn. */
async function putAll(fd: number, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(fd, bytes, at)
    } catch (error) {
      if (systemCode(error) !== 'EAGAIN') throw error
      await pause(signal)
    }
  }
  await setImmediate()
  signal.throwIfAborted()
}

/** Waits for the other end of a pipe. Throws the reason of the signal. */
async function pause(signal: AbortSignal): Promise<void> {
  await setTimeout(1)
  signal.throwIfAborted()
}

function explain(error: unknown, path: string): unknown {
  const code = systemCode(error)
  if (code === 'EPIPE') return error
  const isFull = code === 'ENOSPC' || code === 'EDQUOT'
  return unwritable(
    path,
    error,
    isFull ? 'Free some space, or choose another place with --out FILE' : 'Choose another place with --out FILE',
  )
}
