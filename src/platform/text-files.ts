import { closeSync, openSync } from 'node:fs'
import { inputError, PlantsError, systemCode, systemReason } from './errors.js'
import type { Io } from './io.js'
import { readFrom } from './streams.js'

export const maxDocumentBytes = 1_048_576

interface TextHints {
  wanted: string
  tooLarge: string
  onWaiting(): void
}

/** UTF-8, at most 1 MiB, of a file or `-` for stdin. Removes a byte order mark. */
export async function readText(path: string, io: Io, hints: TextHints): Promise<string> {
  const source = path === '-' ? 'Stdin' : path
  const parts: Uint8Array[] = []
  let length = 0
  try {
    const isStdin = path === '-'
    const chunks = isStdin
      ? readStdin(io, hints.onWaiting)
      : chunksOf(io.resolvePath(path), maxDocumentBytes)
    for await (const chunk of chunks) {
      parts.push(chunk)
      length += chunk.length
      if (length <= maxDocumentBytes) continue
      const message = `${source} is larger than 1 MiB (${maxDocumentBytes} bytes)`
      throw new PlantsError('tooLarge', message, { hint: hints.tooLarge })
    }
    return decoderOf(source)(Buffer.concat(parts))
  } catch (error) {
    throw explainRead(path, error, hints.wanted)
  }
}

/** @param onWaiting called once if stdin is open, but silent, so that a person at a terminal may wonder */
export async function* readStdin(
  { stdin, stderr }: Io,
  onWaiting: () => void,
): AsyncGenerator<Uint8Array> {
  const timer =
    stdin.isPiped && stderr.isTerminal ? setTimeout(onWaiting, silence).unref() : undefined
  try {
    for await (const chunk of stdin.chunks()) {
      clearTimeout(timer)
      yield chunk
    }
  } finally {
    clearTimeout(timer)
  }
}

/** In milliseconds. */
const silence = 5000

/** Turns a system error of reading a file, or stdin for `-`, into `input` with the hint. */
export function explainRead(path: string, error: unknown, hint: string): unknown {
  const code = systemCode(error)
  return code === undefined || code.startsWith('ERR_')
    ? error
    : unreadable(path === '-' ? 'stdin' : path, error, hint)
}

/** At most 16 MiB: a device may be endless. */
export function readTextFile(path: string, hint: string): string {
  const limit = 16 * 1_048_576
  try {
    const bytes = Buffer.concat([...chunksOf(path, limit)])
    if (bytes.length > limit) throw inputError(`${path} is larger than 16 MiB`, hint)
    return bytes.toString()
  } catch (error) {
    throw systemCode(error) === undefined ? error : unreadable(path, error, hint)
  }
}

function unreadable(source: string, cause: unknown, hint: string): PlantsError {
  return inputError(`Could not read ${source}: ${systemReason(cause) ?? cause}`, hint, cause)
}

function* chunksOf(path: string, limit: number): Iterable<Uint8Array> {
  const fd = openSync(path, 'r')
  try {
    yield* readFrom(fd, limit)
  } finally {
    closeSync(fd)
  }
}

/** Returns a function that decodes UTF-8, without a byte order mark at the start. Throws `input`. */
export function decoderOf(source: string): (bytes: Uint8Array, isLast?: boolean) => string {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  return (bytes, isLast = true) => {
    try {
      return decoder.decode(bytes, { stream: !isLast })
    } catch (error) {
      if (systemCode(error) !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error
      const isUtf16 = ['fffe', 'feff'].includes(Buffer.from(bytes.subarray(0, 2)).toString('hex'))
      const hint = `Convert it from ${isUtf16 ? 'UTF-16' : 'its encoding'} to UTF-8 first`
      throw inputError(`${source} is not UTF-8`, hint, error)
    }
  }
}
