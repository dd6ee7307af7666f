import iconv from 'iconv-lite'
import { expect, test } from 'vitest'
import { detectEncodings } from '../../../src/formats/detect-encoding.js'
import { createStrictDecoder } from '../../../src/formats/encoding.js'
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
      /^stdin is not UTF-8 \(line \d, byte \d+\)\. In [^ ]+, the most likely encoding, /,
    )
})

type Outcome = 'right' | 'second' | 'wrong'

/** Whether the likely encoding, or the one after it, reads the list as it was written. */
async function detectList(text: string, encoding: string): Promise<Outcome> {
  const bytes = encodeList(text, encoding)
  const decoded = (await detectEncodings(bytes)).map(async (name) => {
    const decoder = await createStrictDecoder(name)
    return decoder.write(bytes) + decoder.end()
  })
  const texts = (await Promise.all(decoded)).map((reading) => reading.normalize())
  const rank = texts.indexOf(text.normalize())
  if (rank === 0) return 'right'
  return rank === 1 ? 'second' : 'wrong'
}

/** `PLANTS_TEST_TABLE=1` prints the outcome of each list. */
async function countOutcomes(lengths: number[], isSparse = false) {
  const counts = { right: 0, second: 0, wrong: 0 }
  for (const { list, encoding } of writtenLists)
    for (const rows of lengths) {
      const outcome = await detectList(writeList(list, { rows, isSparse }), encoding)
      counts[outcome] += 1
      if (process.env['PLANTS_TEST_TABLE'])
        process.stdout.write(`${list.language}, ${encoding}, ${rows} rows: ${outcome}\n`)
    }
  return counts
}

test('the likely encoding of lists in 25 languages reads them as they were written', async () => {
  expect(await countOutcomes([3, 30, 300])).toEqual({ right: 126, second: 0, wrong: 0 })
})

test('the likely encoding of lists with few words of their language is mostly right', async () => {
  expect(await countOutcomes([3, 30, 300], true)).toEqual({ right: 120, second: 4, wrong: 2 })
})

test('the likely encoding of short lists in 34 languages reads nearly all as they were written', async () => {
  const failures: string[] = []
  for (const { language, encoding, text } of shortLists)
    if ((await detectList(text, encoding)) !== 'right')
      failures.push(`${language}, ${encoding}: ${text.split('\n').slice(1).join(' ').trim()}`)
  // In each of these, the few letters are as frequent in a word of another language.
  expect(failures).toEqual([
    'French, windows-1252: 1;Maïs 2;Olivier',
    'Portuguese, windows-1252: 1;Romã',
    'Russian, windows-1251: 1,РОЗА 2,ДУБ 3,ЕЛЬ',
    'Japanese, euc-jp: 1,紫陽花 2,向日葵 3,朝顔',
    'Korean, cp949: 1,뚝지 2,쑥부쟁이 3,뷁꽃',
  ])
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
    expect((await detectEncodings(bytes))[0]).toBe(encoding)
  },
)
