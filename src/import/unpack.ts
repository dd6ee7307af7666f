/*
 * Gathers the bytes of an input into blocks, and unpacks them if they are packed by gzip.
 */
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { createInputError, getSystemCode } from '../errors.js'
import { createEmptyFileError, peek } from '../formats/chunk.js'

export const blockBytes = 65_536

/**
 * Joins pieces into blocks. A pipe yields pieces of a few kilobytes, and the work for a block
 * hardly depends on its size.
 */
export async function* gatherBlocks(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  let gatheredPieces: Uint8Array[] = []
  let gatheredBytes = 0
  for await (const piece of pieces) {
    gatheredPieces.push(piece)
    gatheredBytes += piece.length
    if (gatheredBytes < blockBytes) continue
    yield joinPieces(gatheredPieces)
    gatheredPieces = []
    gatheredBytes = 0
  }
  if (gatheredBytes > 0) yield joinPieces(gatheredPieces)
}

/** Joins pieces into one buffer. A file yields whole blocks, which are not copied. */
function joinPieces(pieces: readonly Uint8Array[]): Buffer {
  const [first] = pieces
  return pieces.length === 1 && first instanceof Buffer ? first : Buffer.concat(pieces)
}

/**
 * Unpacks gzip, whose first two bytes are 1f 8b (RFC 1952). Other bytes are yielded as they are.
 */
export async function* unpack(
  blocks: AsyncGenerator<Buffer>,
  name: string,
): AsyncGenerator<Buffer> {
  const { first, all } = await peek(blocks)
  if (!first && /\.gz$/i.test(name)) throw createEmptyFileError(name, 'compress')
  if (first?.[0] !== 0x1f || first[1] !== 0x8b) return yield* all
  const stream = createGunzip({ chunkSize: blockBytes })
  // The loop below gets the errors from the stream, so nothing is left to do for them here.
  pipeline(all, stream, () => undefined)
  try {
    yield* stream as AsyncIterable<Buffer>
  } catch (error) {
    if (!getSystemCode(error)?.startsWith('Z')) throw error
    throw createInputError(
      `${name} is damaged or incomplete`,
      'Download or compress the file again',
      error,
    )
  }
}
