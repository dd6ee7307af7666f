import { Readable } from 'node:stream'
import { PlantsError, shellWord, systemCode } from '../../platform/errors.js'

/** Whether bytes begin as gzip (RFC 1952) or zstd (RFC 8878) does. */
export function isPacked(head: Uint8Array): boolean {
  return packings.some((packing) => packing.isAt(head))
}

/**
 * Gives the pieces of an input as they are, or unpacked where it is packed.
 *
 * @throws {PlantsError} `malformed` for what is damaged, or what this runtime cannot unpack
 */
export async function* unpacked(pieces: AsyncIterable<Uint8Array>, name: string): AsyncIterable<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]()
  let head = Buffer.alloc(0)
  while (head.length < 4) {
    const { value, done } = await iterator.next()
    if (done) break
    head = Buffer.concat([head, value])
  }
  const all = resumed(head, iterator)
  const packing = packings.find(({ isAt }) => isAt(head))
  yield* packing ? unpack(all, packing, name) : all
}

async function* resumed(head: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncIterable<Uint8Array> {
  if (head.length > 0) yield head
  yield* { [Symbol.asyncIterator]: () => rest }
}

interface Packing {
  name: string
  isAt(head: Uint8Array): boolean
  make(zlib: typeof import('node:zlib')): NodeJS.ReadWriteStream | undefined
  /** what unpacks it where this runtime cannot */
  program: string
}

const chunkSize = 262_144

const packings: Packing[] = [
  {
    ...{ name: 'gzip', program: 'gzip -dc' },
    isAt: ([first, second]) => first === 0x1f && second === 0x8b,
    make: (zlib) => zlib.createGunzip({ chunkSize }),
  },
  {
    ...{ name: 'zstd', program: 'zstd -dc' },
    isAt: (head) => Buffer.from([0x28, 0xb5, 0x2f, 0xfd]).equals(head.subarray(0, 4)),
    make: (zlib) => ('createZstdDecompress' in zlib ? (zlib as Zstd).createZstdDecompress({ chunkSize }) : undefined),
  },
]

/** Node has it from 22.15 on. */
interface Zstd {
  createZstdDecompress(options: object): NodeJS.ReadWriteStream
}

async function* unpack(pieces: AsyncIterable<Uint8Array>, packing: Packing, name: string): AsyncIterable<Uint8Array> {
  const stream = packing.make(await import('node:zlib'))
  if (!stream) {
    const file = name === 'stdin' ? '' : ` ${shellWord(name.startsWith('-') ? `./${name}` : name)}`
    const hint = `Use Node 22.15 or newer, or: ${packing.program}${file} | plants import`
    throw new PlantsError('malformed', `${name} is packed with ${packing.name}, which this version of Node cannot unpack`, { hint })
  }
  const input = Readable.from(pieces)
  input.on('error', (error) => Readable.prototype.destroy.call(stream, error)).pipe(stream)
  try {
    yield* stream as AsyncIterable<Buffer> // of which a stream of bytes consists
  } catch (error) {
    if (!systemCode(error)?.startsWith('Z')) throw error
    const what = error instanceof Error ? error.message : ''
    throw new PlantsError('malformed', `${name} is damaged: ${packing.name} says "${what}"`, {
      hint: 'Pack it again from its source',
      cause: error,
    })
  } finally {
    input.destroy()
  }
}
