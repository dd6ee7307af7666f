import iconv from 'iconv-lite'
import { expect, test } from 'vitest'
import { tryDecodeBytes } from '../../../src/formats/encoding.js'
import { guessEncodings } from '../../../src/formats/guess-encoding.js'
import { listLanguages, writeList } from '../../helpers/sandbox/plant-lists.js'
import { shortLists } from '../../helpers/sandbox/short-lists.js'
import { readRecords } from './records.js'

// The encoding that is most likely is found by the letters of a language in lists of its plants.

/** Windows stores Vietnamese with combining tone marks, and the other letters whole. */
function encodeList(text: string, encoding: string): Buffer {
  const decomposed = text
    .normalize('NFD')
    .replace(/[aeo]\u0302|a\u0306|[ou]\u031b/gi, (letter) => letter.normalize('NFC'))
  const written = encoding === 'windows-1258' ? decomposed : text
  return iconv.encode(written, encoding.replace('x-mac-', 'mac'))
}

const writtenLists = listLanguages.flatMap((list) =>
  list.encodings.map((encoding) => ({ list, encoding })),
)

test('lists in every language are read with --encoding', async () => {
  for (const { list, encoding } of writtenLists) {
    const bytes = encodeList(writeList(list, { rows: 30 }), encoding)
    const columns = ['id', 'name', 'tag']
    await expect(readRecords(bytes, { encoding, columns, format: 'csv' })).resolves.toBeDefined()
  }
})

test('no list in another encoding is read without --encoding', async () => {
  for (const { list, encoding } of writtenLists)
    await expect(readRecords(encodeList(writeList(list, { rows: 3 }), encoding))).rejects.toThrow(
      /^stdin is not UTF-8 \(line \d\)$/,
    )
})

type Outcome = 'first' | 'among three' | 'missing'

/** Where the encodings that a person sees read the list as it was written. */
async function rankList(text: string, encoding: string): Promise<Outcome> {
  const bytes = encodeList(text, encoding)
  const encodings = (await guessEncodings(bytes)).slice(0, 3)
  const texts = await Promise.all(encodings.map((name) => tryDecodeBytes(bytes, name)))
  const rank = texts.map((reading) => reading?.normalize()).indexOf(text.normalize())
  if (rank === 0) return 'first'
  return rank === -1 ? 'missing' : 'among three'
}

/** `PLANTS_TEST_TABLE=1` prints the outcome of each list. */
async function countOutcomes(lists: readonly { text: string; encoding: string }[]) {
  const counts = { first: 0, 'among three': 0, missing: 0 }
  for (const { text, encoding } of lists) {
    const outcome = await rankList(text, encoding)
    counts[outcome] += 1
    const excerpt = text.split('\n').slice(1, 9).join(' ')
    if (process.env['PLANTS_TEST_TABLE'] && outcome !== 'first')
      process.stdout.write(`${encoding}: ${outcome}: ${excerpt}\n`)
  }
  return counts
}

function writeLists(isSparse: boolean) {
  return writtenLists.flatMap(({ list, encoding }) =>
    [3, 30, 300].map((rows) => ({ text: writeList(list, { rows, isSparse }), encoding })),
  )
}

test('the likely encodings of lists in 25 languages read them as they were written', async () => {
  expect(await countOutcomes(writeLists(false))).toEqual({
    first: 122,
    'among three': 4,
    missing: 0,
  })
})

test('the likely encodings of lists with few words of their language are mostly right', async () => {
  expect(await countOutcomes(writeLists(true))).toEqual({
    first: 100,
    'among three': 23,
    missing: 3,
  })
})

test('the likely encodings of short lists in 34 languages are mostly right', async () => {
  expect(await countOutcomes(shortLists)).toEqual({ first: 125, 'among three': 15, missing: 4 })
})

test.each([
  ['windows-1252', 'Nr.;Name;Ort', '31;Rosa × alba;Südbeet', '32;Acer campestre;Hof'],
  ['windows-1252', 'Nr.;Name', '31;Rosa × alba'],
  ['windows-1252', 'Nr.;Name', '31;Mentha × piperita', '32;Aesculus × carnea'],
  ['windows-1252', 'id;name;tag', '1;Weiße Lilie;Süd'],
  ['windows-1252', 'Nr;Name;Ort', '1;Königskerze;Süd', '2;Frauenmantel;Nord'],
  ['windows-1252', 'id,name', '1,Röschen'],
  ['windows-1252', 'id,name,tag', '1,Möhre,grün', '2,Kürbis,süß'],
  ['windows-1252', 'id,name', '1,Blåbär', '2,Rönn'],
  ['windows-1252', 'id;nom', '1;Hêtre', '2;Érable'],
  ['windows-1252', 'id,name', '1,Señorita'],
  ['windows-1252', 'id,name', '1,“Peace” rose', '2,O’Hara'],
  ['windows-1252', 'id,name,price', '1,Fern,€ 3'],
  ['windows-1252', 'id,name', '1,20 °C'],
  ['windows-1250', 'id;nazwa', '1;Żurawka', '2;Śliwa'],
])(
  'the likely encoding of a list of one or two plants is %s: %s %s',
  async (encoding, ...lines) => {
    const bytes = iconv.encode(lines.join('\r\n'), encoding)
    expect((await guessEncodings(bytes))[0]).toBe(encoding)
  },
)

test('one line that no other list has does not rule out an encoding', async () => {
  const lines = [...Array<string>(200).fill('葡萄,向日葵,红茶,玫瑰,紫藤'), '────', '']
  const encodings = await guessEncodings(encodeList(lines.join('\n'), 'gb18030'))
  expect(encodings[0]).toBe('gb18030')
})
