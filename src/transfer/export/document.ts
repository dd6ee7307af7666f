import type { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import * as zlib from 'node:zlib'
import { malformed, shellWord } from '../../platform/errors.js'
import type { Block } from '../../stores/store.js'
import { type FormatName, type FormatWriter, formatNames } from '../formats/format.js'

/** The format of a file by its name, also of a compressed one; NDJSON when that says nothing. Throws `malformed` for another extension. */
export function formatOfName(path: string): FormatName {
  const extension = /[^/\\]\.(\w+)(?:\.(?:gz|zst))?$/i.exec(path)?.[1]?.toLowerCase()
  const format = formatNames.find((name) => name === extension)
  if (format || extension === undefined || /^(jsonl|gz|zst)$/.test(extension)) return format ?? 'ndjson'
  throw malformed(`.${extension} is no format of an export`, `Choose one, for example: --format csv. There are ${formatNames.join(', ')}`)
}

/** Joins blocks to one document. No record of JSON has a line feed in it; records of other formats have nothing else between them. */
export async function* toDocument(blocks: AsyncIterable<Block>, { record, head, between, foot }: FormatWriter): AsyncGenerator<Block> {
  const join = record === 'json' && between !== '\n' ? (text: string) => text.replaceAll('\n', between) : (text: string) => text
  let isEmpty = true
  if (head !== '') yield { text: head, plants: 0 }
  for await (const { text, plants } of blocks) {
    yield { text: isEmpty ? join(text) : between + join(text), plants }
    isEmpty = false
  }
  yield { text: isEmpty ? foot : `\n${foot}`, plants: 0 }
}

export type Compression = () => Transform

/**
 * How a file is compressed, by its name. Throws `malformed` for what this runtime does not have.
 *
 * @param command what writes the same to stdout
 */
export function compressionOf(path: string, command: string): Compression | undefined {
  if (/\.gz$/i.test(path)) return () => zlib.createGzip()
  if (!/\.zst$/i.test(path)) return undefined
  const { createZstdCompress } = zlib as { createZstdCompress?: Compression } // since Node 22.15
  if (createZstdCompress !== undefined) return () => createZstdCompress()
  const hint = `Node 22.15 and newer can. Or: ${command} | zstd > ${shellWord(path)}`
  throw malformed('This version of Node cannot compress with zstd', hint)
}

export async function* compressed(bytes: AsyncIterable<Uint8Array>, compression: Compression | undefined): AsyncGenerator<Uint8Array> {
  if (compression === undefined) return yield* bytes
  const stream = compression()
  const done = pipeline(bytes, stream).catch(() => undefined) // its error comes out of the stream
  try {
    yield* stream
  } finally {
    stream.destroy()
    await done
  }
}
