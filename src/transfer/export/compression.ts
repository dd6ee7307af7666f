import type { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import * as zlib from 'node:zlib'
import { PlantsError, shellWord } from '../../platform/errors.js'

/** Makes what compresses a stream of bytes. */
export type Compression = () => Transform

/**
 * How the name of a file says that it is compressed.
 *
 * @throws {PlantsError} `malformed` for a way that this runtime does not have
 */
export function compressionOf(path: string): Compression | undefined {
  if (/\.gz$/i.test(path)) return () => zlib.createGzip()
  if (!/\.zst$/i.test(path)) return undefined
  const { createZstdCompress } = zlib as { createZstdCompress?: Compression } // since Node 22.15
  if (createZstdCompress !== undefined) return () => createZstdCompress()
  throw new PlantsError('malformed', 'This version of Node cannot compress with zstd', {
    hint: `Node 22.15 and newer can. Or: plants export | zstd > ${shellWord(path)}`,
  })
}

/** Takes bytes in turn, and resolves when it is ready for more. */
export type Put = (bytes: Uint8Array) => Promise<void>

/**
 * Compresses what `fill` writes. Throws what `fill` or `put` throws.
 *
 * @param put takes the compressed bytes
 */
export async function compress(compression: Compression, put: Put, fill: (put: Put) => Promise<void>): Promise<void> {
  const stream = compression()
  const done = pipeline(stream, async (source: AsyncIterable<Uint8Array>) => {
    for await (const bytes of source) await put(bytes)
  })
  done.catch(() => undefined) // each write tells it
  try {
    await fill((bytes) => Promise.race([written(stream, bytes), done]))
    stream.end()
    await done
  } finally {
    stream.destroy()
  }
}

/** Resolves when the stream is ready for more; never when it has failed. */
function written(stream: Transform, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    stream.write(bytes, (error) => {
      if (!error) resolve()
    })
  })
}
