import { expect, test } from 'vitest'
import { wholeLines } from '../../../src/platform/lines.js'
import { check, fc } from '../../helpers/fast-check.js'

async function* piecesOf(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function blocksOf(
  bytes: Buffer,
  size: number,
  max: number,
  tooLong?: () => Error,
): Promise<Buffer[]> {
  const blocks: Buffer[] = []
  for await (const block of wholeLines(piecesOf(bytes, size), { max, tooLong })) blocks.push(block)
  return blocks
}

test('blocks of lines are the same bytes, and all but the last end with a line, whatever the pieces are', async () => {
  const texts = fc.array(fc.constantFrom('a', 'ü', '\n', '\r\n', 'word'), { maxLength: 40 })
  await check(200, [texts, fc.integer({ min: 1, max: 20 })], async (words, size) => {
    const bytes = Buffer.from(words.join(''))
    const blocks = await blocksOf(bytes, size, 1000)
    expect(Buffer.concat(blocks)).toEqual(bytes)
    for (const block of blocks.slice(0, -1)) expect(block.at(-1)).toBe(0x0a)
    expect(blocks.every(({ length }) => length > 0)).toBe(true)
  })
})

test.each([1, 3])(
  'a line that is not complete is an error if it is too long, or is cut, in pieces of %i',
  async (size) => {
    const bytes = Buffer.from(`first\n${'x'.repeat(50)}\nlast`)
    await expect(blocksOf(bytes, size, 10, () => new RangeError('too long'))).rejects.toThrow(
      'too long',
    )
    const [first, line = '', last] = Buffer.concat(await blocksOf(bytes, size, 10))
      .toString()
      .split('\n')
    expect([first, last]).toEqual(['first', 'last'])
    expect(line).toMatch(/^x{11,13}$/)
  },
)
