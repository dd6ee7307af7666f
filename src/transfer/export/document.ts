import type { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import * as zlib from 'node:zlib'
import { malformed, shellWord } from '../../platform/errors.js'
import type { Block } from '../../stores/common/store.js'
import { type FormatName, type FormatWriter, formatNames } from '../formats/format.js'

export function formatOfName(path: string): FormatName {
  const extension = /[^/\\]\.(\w+)(?:\.(?:gz|zst))?$/i.exec(path)?.[1]?.toLowerCase()
  const format = formatNames.find((name) => name === extension)
  if (format || extension === undefined || /^(jsonl|gz|zst)$/.test(extension)) return format ?? 'ndjson'
  throw malformed(`.${extension} is not an export format`, `Choose one of ${formatNames.join(', ')}, for example: --format csv`)
}

/** Joins blocks to one document. A line feed in a block of JSON is always a separator; other formats have no other separator. */
export async function* toDocument(blocks: AsyncIterable<Block>, { head, between, foot }: FormatWriter): AsyncGenerator<Block> {
  let isEmpty = true
  if (head !== '') yield { text: head, plants: 0 }
  for await (const { text, plants } of blocks) {
    const joined = between === '\n' ? text : text.replaceAll('\n', between)
    yield { text: isEmpty ? joined : between + joined, plants }
    isEmpty = false
  }
  yield { text: isEmpty ? foot : `\n${foot}`, plants: 0 }
}

/**
 * The compression for the extension of a file. Throws `malformed` for one that this runtime does not support.
 *
 * @param command the command that writes the same to stdout, for the hint
 */
export function compressionOf(path: string, command: string): Transform | undefined {
  if (/\.gz$/i.test(path)) return zlib.createGzip()
  if (!/\.zst$/i.test(path)) return undefined
  const { createZstdCompress } = zlib as { createZstdCompress?: () => Transform } // since Node 22.15
  if (createZstdCompress !== undefined) return createZstdCompress()
  const hint = `Node 22.15 and newer can. Or: ${command} | zstd > ${shellWord(path)}`
  throw malformed('This version of Node cannot compress with zstd', hint)
}

export async function* compressed(bytes: AsyncIterable<Uint8Array>, stream: Transform | undefined): AsyncGenerator<Uint8Array> {
  if (stream === undefined) return yield* bytes
  const done = pipeline(bytes, stream).catch(() => undefined) // the stream emits the same error
  try {
    yield* stream
  } finally {
    stream.destroy()
    await done
  }
}
