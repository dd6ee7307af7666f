import { closeSync, openSync } from 'node:fs'
import { PlantsError, systemCode } from '../platform/errors.js'
import { readFrom } from '../platform/stdinput.js'
import type { Io } from '../platform/io.js'
import { parseJson, severalValues } from '../plant/json.js'

/** A request's body, a file and stdin may hold this many bytes. */
export const bodyLimit = 1_048_576

/**
 * Reads one JSON document from a file, or from stdin when the path is `-`: UTF-8, at most 1 MiB, a byte order mark is skipped.
 *
 * @returns what `parseJson` gives
 * @throws {PlantsError} `malformed` or `tooLarge`, naming the source
 */
export async function readDocument(path: string, io: Io): Promise<unknown> {
  return parse(await readText(path, io), nameOf(path))
}

/** Reads a text as `readDocument` does. */
export async function readText(path: string, io: Io): Promise<string> {
  if (path === '') throw new PlantsError('malformed', '--file needs a path', { hint: 'Or read stdin with: --file -' })
  const source = nameOf(path)
  try {
    const chunks = path === '-' ? io.stdin.chunks() : chunksOf(io.resolvePath(path))
    return decode(await collect(chunks, source), source)
  } catch (error) {
    const code = systemCode(error)
    if (code === undefined || code.startsWith('ERR_')) throw error
    throw unreadable(source, error, 'Give a file that holds one plant as JSON')
  }
}

function nameOf(path: string): string {
  return path === '-' ? 'stdin' : path
}

/** Hints for a document that is not what it should be. */
export const onePlant = 'plants create takes one plant. For many, use plants import'
export const example = 'A plant looks like this: {"id":1,"name":"Fern","tag":"shade"}'

/**
 * Reads a whole text file that a flag has named.
 *
 * @param path absolute
 * @param hint what file the flag wants
 * @throws {PlantsError} `malformed`, naming the file
 */
export function readTextFile(path: string, hint: string): string {
  try {
    const counted = upTo(longestText, () => new PlantsError('malformed', `${path} is larger than 16 MiB`, { hint }))
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
const longestText = 16 * 1_048_576

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

async function collect(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, source: string): Promise<Uint8Array> {
  const counted = upTo(bodyLimit, () => tooLarge(source))
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

function parse(text: string, source: string): unknown {
  if (text.trim() === '') throw nothing(source)
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    if (error.cause === severalValues)
      throw new PlantsError('malformed', `${capital(source)} holds ${error.message}`, { hint: onePlant, cause: error })
    throw new PlantsError('malformed', `${capital(source)} is not JSON: ${error.message}`, { hint: example, cause: error })
  }
}

function nothing(source: string): PlantsError {
  if (source !== 'stdin') return new PlantsError('malformed', `${source} is empty`, { hint: example })
  return new PlantsError('malformed', 'Nothing on stdin', { hint: 'Give the plant with flags: plants create --id 1 --name Fern' })
}

function tooLarge(source: string): PlantsError {
  return new PlantsError('tooLarge', `${capital(source)} is larger than 1 MiB (${bodyLimit} bytes)`, { hint: onePlant })
}

function capital(source: string): string {
  return source === 'stdin' ? 'Stdin' : source
}
