import type { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import * as zlib from 'node:zlib'
import { type FormatName, formatNames } from '../../plant/records.js'
import { malformed } from '../../platform/errors.js'

export function formatOfName(path: string): FormatName {
  const extension = /[^/\\]\.(\w+)(?:\.(?:gz|zst))?$/i.exec(path)?.[1]?.toLowerCase()
  const format = formatNames.find((name) => name === extension)
  if (format || extension === undefined || /^(jsonl|gz|zst)$/.test(extension)) return format ?? 'ndjson'
  throw malformed(`.${extension} is not an export format`, `Choose one of ${formatNames.join(', ')}, for example: --output csv`)
}

/** The compression for the extension of a file. Throws `malformed` for one that this runtime does not support. */
export function compressionOf(path = ''): Transform | undefined {
  if (/\.gz$/i.test(path)) return zlib.createGzip()
  if (!/\.zst$/i.test(path)) return undefined
  const { createZstdCompress } = zlib as { createZstdCompress?: () => Transform } // since Node 22.15
  if (createZstdCompress !== undefined) return createZstdCompress()
  throw malformed('This version of Node cannot compress with zstd', 'Use Node 22.15 or newer, or a name that ends with .gz')
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
