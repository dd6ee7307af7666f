import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { createLineFormat } from '../../../../src/formats/lines.js'
import { largestId, smallestId } from '../../../../src/plant/fields.js'
import type { NewPlant } from '../../../../src/plant/plant.js'
import { formatCopyLines } from '../../../../src/stores/postgres/format-lines.js'
import { formatCopyRows } from '../../../../src/stores/postgres/write.js'
import type { LineFormat } from '../../../../src/stores/store.js'
import { check, fc, generateNewPlant } from '../../../helpers/expect/arbitraries.js'

const formats = (['ndjson', 'csv', 'tsv'] as const).map((name) => {
  const format: LineFormat | undefined = createLineFormat(name)
  if (!format) throw new Error(`${name} has no lines`)
  return format
})

/** What a server sends for plants: without the column of keys, which a store does not export. */
const copyText = (plants: readonly NewPlant[]) =>
  Buffer.from(formatCopyRows(plants.map((plant) => ({ plant }))).replaceAll('\t\\N\n', '\n'))

async function formatAll(bytes: Buffer, format: LineFormat, pieceBytes = bytes.length + 1) {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += pieceBytes)
    pieces.push(bytes.subarray(at, at + pieceBytes))
  let [text, length] = ['', 0]
  for await (const lines of formatCopyLines(Readable.from(pieces), format, 'h1')) {
    text += Buffer.from(lines.content).toString()
    length += lines.length
  }
  return { text, length }
}

async function expectLines(plants: readonly NewPlant[], pieceBytes?: number): Promise<void> {
  for (const format of formats)
    expect(await formatAll(copyText(plants), format, pieceBytes)).toEqual({
      text: plants.map((plant) => format.format(plant)).join(''),
      length: plants.length,
    })
}

test('each character is exported by PostgreSQL in the same lines as by another store', async () => {
  const codes = Array.from({ length: 0xffff }, (_, index) => index + 1)
  const characters = [...codes.map((code) => String.fromCharCode(code)), '🌿', '\u{10ffff}']
  const valid = characters.filter((character) => character.isWellFormed())
  const texts = valid.flatMap((character) => [character, `${character}a`, `a${character}`])
  await expectLines(
    [...texts, ...valid.map((character) => `a${character}a`)].flatMap((text) => [
      { id: 1n, name: text, tag: 'a' },
      { id: 1n, name: 'a', tag: text },
    ]),
  )
})

const oddTexts = ['', '#N/A', '#', '"', '""', ',', '"a",', '\\N', '\\', '\\N\n', 'x'.repeat(99_999)]

test('strings with a meaning in COPY or in a table are exported in the same lines as by another store', async () => {
  await expectLines(
    oddTexts.flatMap((text): NewPlant[] => [
      { id: smallestId, name: text, tag: text },
      { id: largestId, name: text },
      { id: -999_999_999_999_999_999n, name: 'a', tag: text },
      { id: 0n, name: text, tag: '"'.repeat(99_999) },
      { id: 1_000_000_000_000_000_000n, name: '",'.repeat(9999), tag: text },
    ]),
  )
})

test('any plants are exported in the same lines, however their rows are cut into chunks', () =>
  check(100, [fc.array(generateNewPlant()), fc.integer({ min: 1, max: 300 })], expectLines))

const broken: Record<string, string> = {
  'no id': 'x\tFern\t\\N\n',
  'an id with a zero': '01\tFern\t\\N\n',
  'a negative zero': '-0\tFern\t\\N\n',
  'an id without digits': '-\tFern\t\\N\n',
  'an empty id': '\tFern\t\\N\n',
  'an id above int64': '9223372036854775808\tFern\t\\N\n',
  'an id of 20 digits': '10000000000000000000\tFern\t\\N\n',
  'no name': '1\t\\N\t\\N\n',
  'one cell': '1\n',
  'two cells': '1\tFern\n',
  'a text with U+0000': '1\tFe\0rn\t\\N\n',
  'a text that is not UTF-8': '1\tFern \xff\t\\N\n',
}

test.each(Object.entries(broken))('an export ends at a row with %s', async (_, row) => {
  const bytes = Buffer.concat([copyText([{ id: 1n, name: 'Fern' }]), Buffer.from(row, 'latin1')])
  for (const format of formats)
    await expect(formatAll(bytes, format)).rejects.toMatchObject({
      kind: 'accessDenied',
      message: expect.stringMatching(/^h1 sent a (plant|text)/),
    })
})
