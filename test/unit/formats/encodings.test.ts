import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import iconv from 'iconv-lite'
import { expect, test } from 'vitest'
import { commonEncodings } from '../../../src/formats/common-encodings.js'
import { findEncoding, tryDecodeBytes } from '../../../src/formats/encoding.js'
import { EncodingError } from '../../../src/formats/encoding-error.js'
import { formatRecords, readRecords } from './records.js'

const latin1 = (text: string) => Buffer.from(text, 'latin1')

test.each([
  ['windows-1252', 'cp1252', '1252', 'latin1', 'l1', 'us-ascii'],
  ['windows-1250', 'cp1250', '1250'],
  ['windows-874', 'ISO-8859-11'],
  ['cp874', '874'],
  ['shift_jis', 'ms_kanji', 'Shift-JIS', 'x-sjis'],
  ['gbk', 'gb2312'],
  ['cp936', '936'],
  ['ibm866', '866', 'cp866'],
  ['cp850', '850'],
  ['utf-8', 'UTF8', 'unicode-1-1-utf-8'],
  ['utf-16le', 'ucs-2', 'utf-16'],
  ['maccenteuro', 'Mac-CentEuro'],
  ['iso-8859-8', 'csISO88598I', 'ISO-8859-8-I', 'logical'],
])('%s is also the encoding with the name %s', async (encoding, ...names) => {
  for (const name of [encoding, ...names]) expect(await findEncoding(name)).toBe(encoding)
})

test.each(['', 'utf-9', 'base64', 'rot13', 'utf-7', 'utf-32', 'cp037', 'hz', 'johab'])(
  '%j is not the name of an encoding',
  async (name) => {
    await expect(findEncoding(name)).rejects.toMatchObject({
      kind: 'usage',
      message: /^[a-z-]+$/.test(name)
        ? `The encoding ${name} is unknown`
        : 'The encoding is unknown',
    })
  },
)

test('each common encoding is found by its name, and decodes ASCII', async () => {
  const text = 'id,name\n1,a\n'
  for (const { name } of commonEncodings) {
    expect(await findEncoding(name)).toBe(name)
    expect(await tryDecodeBytes(Buffer.from(text), name)).toBe(text)
  }
})

test.each(['utf-16le', 'utf-16be'])(
  'an input in %s is read with a byte order mark, and with --encoding',
  async (name) => {
    const text = 'id,name\n1,Färn 🌿\n'
    const options = { encoding: name, cuts: [16, 17, 21, 30] }
    expect(formatRecords(await readRecords(iconv.encode(text, name), options))).toEqual([
      '2: 1 Färn 🌿',
    ])
    const marked = iconv.encode(`\ufeff${text}`, name)
    expect(formatRecords(await readRecords(marked))).toEqual(['2: 1 Färn 🌿'])
    const lone = name === 'utf-16le' ? [0x00, 0xd8] : [0xd8, 0x00]
    const wrong = Buffer.concat([marked, Buffer.from([...lone, ...lone])])
    await expect(readRecords(wrong)).rejects.toThrow(`stdin is not ${name} (line 3)`)
  },
)

test('the error for an input that is not UTF-8 shows its first foreign line in likely encodings', async () => {
  const input = iconv.encode('id,name\n1,Rose\n2,Żurawka wąskolistna\n3,Śliwa\n', 'windows-1250')
  const error = await readRecords(input, { name: 'a.csv' }).catch((error: unknown) => error)
  expect(error).toMatchObject({
    message: 'a.csv is not UTF-8 (line 3)',
    hint: 'Add --encoding with the name of the encoding in which that line reads right',
  })
  const { details = [], encodings = [] } = error as EncodingError
  expect(details[0]).toBe('line 3 in windows-1250: 2,Żurawka wąskolistna')
  expect(details).toHaveLength(3)
  expect(encodings[0]).toBe('windows-1250')
  expect(formatRecords(await readRecords(input, { encoding: 'windows-1250' }))).toContain(
    '4: 3 Śliwa',
  )
})

test('the error shows the first foreign line also if a later line is the first that is not UTF-8', async () => {
  const input = Buffer.concat([Buffer.from('id,name\n1,ü\n2,é\n'), latin1('3,\xe9\n')])
  await expect(readRecords(input)).rejects.toMatchObject({
    message: 'stdin is not UTF-8 (line 4)',
    details: expect.arrayContaining(['line 2 in windows-1252: 1,Ã¼']),
  })
})

test('the error shows a long line from where its first foreign letter is', async () => {
  const input = iconv.encode(`id,name\n1,${'a '.repeat(100)}Crème\n`, 'windows-1252')
  await expect(readRecords(input)).rejects.toMatchObject({
    details: expect.arrayContaining([
      expect.stringMatching(/^line 2 in windows-1252: ….*a Crème$/),
    ]),
  })
})

test('the error for an input that is not in the named encoding shows its likely encoding', async () => {
  const input = iconv.encode('id,name\n1,玫瑰\n2,牡丹\n3,㐀菊花\n', 'gb18030')
  await expect(readRecords(input, { encoding: 'latin1' })).rejects.toMatchObject({
    message: expect.stringMatching(/^stdin is not windows-1252 \(line \d\)$/),
    details: expect.arrayContaining(['line 2 in gb18030: 1,玫瑰']),
  })
})

test('the error suggests no encoding that cannot decode the letters of a later block', async () => {
  const lines = 'id,name\n1,Žluťucha\n2,Růže\n3,Třešeň\n4,Hvězdnice\n'
  const start = iconv.encode(lines, 'iso-8859-2')
  const filler = Buffer.from('5,a\n'.repeat(40_000))
  const input = Buffer.concat([start, filler, latin1('6,\x8aafr\xe1n\n')]) // of windows-1250
  const cuts = [start.length + filler.length]
  const error = await readRecords(input, { cuts }).catch((error: unknown) => error)
  const encodings = error instanceof EncodingError ? error.encodings : []
  expect(encodings).toContain('windows-1250')
  expect(encodings).not.toContain('iso-8859-2')
})

test('the error for a file of an old Mac names its line, also below a line feed in quotes', async () => {
  const input = latin1('id,name\r1,"a\nb"\r2,b\r3,Fr\x9fhling\r')
  await expect(readRecords(input)).rejects.toMatchObject({
    message: 'stdin is not UTF-8 (line 4)',
    details: expect.arrayContaining(['line 4 in macintosh: 3,Frühling']),
  })
})

test.each(['f06-mac-roman', 'f06b-mac-roman-without-the-ascii-line'])(
  'a line of ASCII does not decide the likely encoding of %s',
  async (name) => {
    const input = readFileSync(join(import.meta.dirname, `../../data/lists/${name}.csv`))
    await expect(readRecords(input)).rejects.toMatchObject({
      details: [
        expect.stringMatching(/^line 2 in macintosh: /),
        expect.anything(),
        expect.anything(),
      ],
    })
  },
)

test.each([
  { encoding: 'windows-1250', lines: '1,Łąka' },
  { encoding: 'windows-1252', lines: '1,a\n2,Łąka' },
  { encoding: 'cp850', lines: '1,Größe' },
  { encoding: 'koi8-r', lines: '1,Роза' },
  { encoding: 'gbk', lines: '1,玫瑰\n2,牡丹' },
  { encoding: '932', lines: '1,薔薇\n2,桜' },
])('a file of UTF-8 is not read in $encoding: $lines', async ({ encoding, lines }) => {
  for (const isReadOnce of [false, true])
    await expect(
      readRecords(`id,name\n${lines}\n`, { encoding, isReadOnce }),
    ).rejects.toMatchObject({
      message: expect.stringMatching(/^stdin is UTF-8, not \S+$/),
      hint: 'Import it without --encoding',
    })
})

test.each([
  { encoding: 'windows-1252', lines: '1,Mentha ×\u00a0piperita\n2,Größe' },
  { encoding: 'gbk', lines: '1,联通' },
  { encoding: 'windows-1252', lines: '1,a' },
])('a text in $encoding is read, although a line may be UTF-8: $lines', async (row) => {
  const input = iconv.encode(`id,name\n${row.lines}\n`, row.encoding)
  const { records } = await readRecords(input, { encoding: row.encoding })
  expect(records.map(({ plant }) => `${plant?.id},${plant?.name}`).join('\n')).toBe(row.lines)
})

test('the hint for an input that contradicts its byte order mark does not suggest --encoding', async () => {
  const input = Buffer.concat([Buffer.from('\ufeffid,name\n'), latin1('1,\xe4\n')])
  await expect(readRecords(input, { encoding: 'latin1' })).rejects.toMatchObject({
    message: 'stdin is not UTF-8 (line 2)',
    hint: 'Correct that line, or save the file as UTF-8',
  })
})

test.each([
  { byte: 0x80, isValid: false },
  { byte: 0x9f, isValid: false },
  { byte: 0xa4, isValid: true },
])('the byte $byte of ISO 8859-15 is valid: $isValid', async ({ byte, isValid }) => {
  const input = Buffer.concat([Buffer.from('id,name\n1,a'), Buffer.of(byte), Buffer.from('b\n')])
  const reading = readRecords(input, { encoding: 'iso-8859-15' })
  if (isValid) expect(formatRecords(await reading)).toEqual(['2: 1 a€b'])
  else await expect(reading).rejects.toMatchObject({ message: expect.stringContaining('is not') })
})
