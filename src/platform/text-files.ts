import { createReadStream } from 'node:fs'
import {
  createInputError,
  describeSystemError,
  descriptorExplanations,
  fileHint,
  getSystemCode,
  PlantsError,
} from '../errors.js'
import { readSmallFile } from './files.js'
import type { Io } from './io.js'

export const maxDocumentBytes = 1_048_576

/**
 * Reads a file, or stdin if the path is `-`, as UTF-8 without its byte order mark.
 *
 * @throws {PlantsError} `tooLarge` above 1 MiB, and `input` if the file cannot be read, or is not
 * UTF-8
 */
export async function readText(path: string, io: Io, hint: string): Promise<string> {
  const isStdin = path === '-'
  const source = isStdin ? 'Stdin' : path
  const parts: Uint8Array[] = []
  let length = 0
  try {
    const chunks: AsyncIterable<Uint8Array> = isStdin
      ? io.stdin.readChunks()
      : createReadStream(io.resolvePath(path))
    for await (const chunk of chunks) {
      parts.push(chunk)
      length += chunk.length
      if (length <= maxDocumentBytes) continue
      const message = `${source} is larger than 1 MiB (${maxDocumentBytes} bytes)`
      throw new PlantsError('tooLarge', message, { hint })
    }
  } catch (error) {
    throw explainRead(path, error, hint)
  }
  return decodeUtf8(Buffer.concat(parts), source)
}

/** Reads a file as UTF-8, and replaces bytes that are not UTF-8 by U+FFFD. */
export function readTextFile(path: string, hint: string): string {
  try {
    return readSmallFile(path).bytes.toString()
  } catch (error) {
    throw explainRead(path, error, hint)
  }
}

/** Converts an error of the system to a `PlantsError` `input`. It returns any other error as is. */
export function explainRead(path: string, error: unknown, hint: string): unknown {
  const code = getSystemCode(error)
  if (code === undefined || code.startsWith('ERR_')) return error
  const source = path === '-' ? 'stdin' : path
  const message = `${source} could not be read: ${describeSystemError(error)}`
  const knownHint = descriptorExplanations[code]?.hint ?? readHints[code]
  return createInputError(message, knownHint ?? hint, error)
}

const readHints: Record<string, string> = {
  EACCES: 'Give this user permission to read the file, such as with chmod',
  EISDIR: fileHint,
}

/**
 * Decodes UTF-8, and removes a byte order mark at the start.
 *
 * @throws {PlantsError} `input` for bytes that are not UTF-8
 */
export function decodeUtf8(bytes: Uint8Array, source: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    if (getSystemCode(error) !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error
    const hint = 'Convert it to UTF-8, and run the command again'
    throw createInputError(`${source} is not UTF-8`, hint, error)
  }
}
