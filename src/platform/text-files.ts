import { closeSync, openSync } from 'node:fs'
import { PlantsError, systemCode } from './errors.js'
import type { Io } from './io.js'
import { readFrom } from './streams.js'

/** A request's body, a file and stdin may hold this many bytes. */
export const bodyLimit = 1_048_576

/**
 * Reads a text from a file, or from stdin when the path is `-`: UTF-8, at most 1 MiB, a byte order mark is skipped.
 *
 * @param hints what file is wanted, and what to do with one that is too large
 * @throws {PlantsError} `malformed` or `tooLarge`, naming the source
 */
export async function readText(path: string, io: Io, hints: { wanted: string; tooLarge?: string }): Promise<string> {
  const source = sourceName(path)
  try {
    const chunks = path === '-' ? io.stdin.chunks() : chunksOf(io.resolvePath(path))
    return decode(await collect(chunks, source, hints.tooLarge), source)
  } catch (error) {
    const code = systemCode(error)
    if (code === undefined || code.startsWith('ERR_')) throw error
    throw unreadable(source, error, hints.wanted)
  }
}

export function sourceName(path: string): string {
  return path === '-' ? 'stdin' : path
}

/**
 * Reads a whole text file that a flag has named.
 *
 * @param path absolute
 * @param hint what file the flag wants
 * @throws {PlantsError} `malformed`, naming the file
 */
export function readTextFile(path: string, hint: string): string {
  try {
    const counted = upTo(maxTextLength, () => new PlantsError('malformed', `${path} is larger than 16 MiB`, { hint }))
    return Buffer.concat(Array.from(chunksOf(path), counted)).toString()
  } catch (error) {
    throw systemCode(error) === undefined ? error : unreadable(path, error, hint)
  }
}

/** The error for an input that the system does not let be read. */
export function unreadable(source: string, cause: unknown, hint: string): PlantsError {
  return new PlantsError('malformed', `Could not read ${source}: ${reasonOf(systemCode(cause) ?? '')}`, { hint, cause })
}

/** bytes of a file that a flag has named; a device may have no end */
const maxTextLength = 16 * 1_048_576

function reasonOf(code: string): string {
  return reasons[code] ?? `the system says ${code}`
}

const reasons: Record<string, string> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'its links lead in a circle',
  ENAMETOOLONG: 'the path is too long',
  ENXIO: 'it is a device without a reader',
  EIO: 'the disk or the terminal failed',
  EINVAL: 'it cannot be read',
}

async function collect(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  source: string,
  hint: string | undefined,
): Promise<Uint8Array> {
  const counted = upTo(bodyLimit, () => tooLarge(source, hint))
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(counted(chunk))
  return Buffer.concat(parts)
}

/** Gives chunks back as they come, as long as all of them together have at most so many bytes. */
function upTo(limit: number, tooLong: () => PlantsError): (chunk: Uint8Array) => Uint8Array {
  let length = 0
  return (chunk) => {
    length += chunk.length
    if (length > limit) throw tooLong()
    return chunk
  }
}

function* chunksOf(path: string): Iterable<Uint8Array> {
  const fd = openSync(path, 'r')
  try {
    yield* readFrom(fd)
  } finally {
    closeSync(fd)
  }
}

function decode(bytes: Uint8Array, source: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    if (systemCode(error) !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error
    const encoding = /^(?:\xff\xfe|\xfe\xff)/.test(Buffer.from(bytes.subarray(0, 2)).toString('latin1')) ? 'UTF-16' : 'LATIN1'
    const hint = `Convert it first, from what it is in, for example: iconv -f ${encoding} -t UTF-8`
    throw new PlantsError('malformed', `${capital(source)} is not UTF-8`, { hint, cause: error })
  }
}

function tooLarge(source: string, hint: string | undefined): PlantsError {
  return new PlantsError('tooLarge', `${capital(source)} is larger than 1 MiB (${bodyLimit} bytes)`, { hint })
}

export function capital(source: string): string {
  return source === 'stdin' ? 'Stdin' : source
}
