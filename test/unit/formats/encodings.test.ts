import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import iconv from 'iconv-lite'
import { expect, test } from 'vitest'
import { createStrictDecoder, findEncoding } from '../../../src/formats/encoding.js'
import { encodingNames } from '../../../src/formats/encoding-aliases.js'
import { EncodingError } from '../../../src/formats/encoding-error.js'
import { formatRecords, readRecords } from './records.js'

const root = join(import.meta.dirname, '../../..')
const latin1 = (text: string) => Buffer.from(text, 'latin1')
const hasPython = spawnSync('python3', ['--version']).status === 0

test.each([
  ['windows-1252', 'cp1252', 'CP_1252', 'Windows 1252', 'latin_1', 'l1', 'ISO_8859-1:1987'],
  ['windows-1252', '1252 : Western European (Windows)', 'Western European (Windows)', 'us-ascii'],
  ['windows-1250', 'cp1250', 'windows_1250', 'Central European (Windows)'],
  ['windows-874', 'cp874', 'tis_620', 'Thai (Windows)', 'ISO-8859-11'],
  ['shift_jis', 'cp932', 'ms_kanji', 'Shift-JIS', 'x-sjis', 'Japanese (Shift-JIS)', '932'],
  ['gbk', 'gb2312', 'CP936', 'Chinese Simplified (GB2312)'],
  ['big5', 'big5_hkscs', 'cp950', 'Chinese Traditional (Big5)'],
  ['cp949', 'UHC', 'ms949'],
  ['euc-kr', 'ks_c-5601-1987', 'Korean'],
  ['utf-8', 'U8', 'utf_8_sig', 'UTF8', 'Unicode (UTF-8)', 'cp65001', 'unicode-1-1-utf-8'],
  ['utf-16le', 'utf_16_le', 'utf-16-le', 'UTF16', 'ucs-2', 'Unicode'],
  ['utf-16be', 'utf_16_be', 'UnicodeBigUnmarked', 'Unicode (Big endian)'],
  ['utf-32le', 'utf-32', 'U32', 'UTF_32_LE', 'Unicode (UTF-32)'],
  ['macintosh', 'mac_roman', 'MacRoman', 'Western European (Mac)'],
  ['maccenteuro', 'mac-latin2', 'Central European (Mac)'],
  ['rk1048', 'kz_1048', 'strk1048_2002'],
  ['iso-8859-8', 'csISO88598I', 'ISO-8859-8-I', 'logical', 'Hebrew (ISO-Logical)'],
])('%s is also the encoding with the name %s', async (encoding, ...names) => {
  for (const name of [encoding, ...names]) expect(await findEncoding(name)).toBe(encoding)
})

test.each(['', 'utf-9', 'base64', 'rot13', 'utf-7', 'cp037', 'hz', 'iso-2022-kr', 'johab'])(
  '%j is not the name of an encoding',
  async (name) => {
    await expect(findEncoding(name)).rejects.toMatchObject({
      kind: 'usage',
      message: /^[a-z-]+$/.test(name)
        ? `The encoding ${name} is unknown`
        : 'The encoding is unknown',
      hint: 'For UTF-8, leave out --encoding. For example: --encoding windows-1252. More names: plants import --help',
    })
  },
)

test('every name belongs to one encoding, which decodes ASCII', async () => {
  const names = encodingNames.flatMap(([, row]) => row.split(' '))
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([])
  for (const encoding of new Set(encodingNames.map(([name]) => name))) {
    expect(await findEncoding(encoding)).toBe(encoding)
    const bytes = Buffer.from('id,name\n1,a\n')
    const unit = /^utf-(16|32)/.exec(encoding)?.[1]
    if (unit) continue
    const decoder = await createStrictDecoder(encoding)
    expect(decoder.write(bytes) + decoder.end()).toBe('id,name\n1,a\n')
  }
})

test.runIf(hasPython)(
  'the table of encoding names is what its script builds from its sources',
  () => {
    const args = [join(root, 'bin/build-encodings.mjs'), '--check']
    expect(execFileSync(process.execPath, args, { encoding: 'utf8' })).toBe('')
  },
)

test.each(['utf-32le', 'utf-32be'])(
  'an input in %s is read with a byte order mark, and with --encoding',
  async (name) => {
    const text = 'id,name\n1,Färn 🌿\n'
    const options = { encoding: name, cuts: [16, 17, 21, 30] }
    expect(formatRecords(await readRecords(iconv.encode(text, name), options))).toEqual([
      '2: 1 Färn 🌿',
    ])
    const marked = iconv.encode(`\ufeff${text}`, name)
    expect(formatRecords(await readRecords(marked))).toEqual(['2: 1 Färn 🌿'])
    const wrong = Buffer.concat([marked, Buffer.from([0xff, 0xff, 0xff, 0xff])])
    await expect(readRecords(wrong)).rejects.toThrow(`stdin is not ${name} (line 3)`)
  },
)

test.each(['utf-16le', 'utf-16be', 'utf-32le', 'utf-32be'])(
  'an input in %s without a byte order mark is named in an error, and never read without --encoding',
  async (name) => {
    const input = iconv.encode('id,name\n1,Färn\n', name, { addBOM: false })
    for (const encoding of [undefined, 'latin1', name === 'utf-16le' ? 'utf-16be' : 'utf-16le']) {
      if (encoding === name) continue
      await expect(readRecords(input, { encoding })).rejects.toMatchObject({
        message: expect.stringMatching(`most likely ${name} without .*, and begins: id,name$`),
        hint: `Use --encoding ${name}`,
        encodings: [name],
      })
    }
    expect(formatRecords(await readRecords(input, { encoding: name }))).toEqual(['2: 1 Färn'])
  },
)

test('the error for an input that is not UTF-8 shows its likely encoding, and its hint reads it', async () => {
  const input = iconv.encode('id,name\n1,Rose\n2,Żurawka wąskolistna\n3,Śliwa\n', 'windows-1250')
  const error = await readRecords(input, { name: 'a.csv' }).catch((error: EncodingError) => error)
  expect(error).toMatchObject({
    message:
      'a.csv is not UTF-8 (line 3, byte 3). In windows-1250, the most likely encoding, ' +
      'line 3 reads: 2,Żurawka wąskolistna',
    hint: 'Use --encoding windows-1250',
  })
  expect(error instanceof EncodingError && error.encodings[0]).toBe('windows-1250')
  expect(formatRecords(await readRecords(input, { encoding: 'windows-1250' }))).toContain(
    '4: 3 Śliwa',
  )
})

test.each([
  ['windows-1252', '1,Rosé|2,Crème', 'line 2 reads: 1,Rosé. Line 3 reads: 2,Crème (in '],
  ['windows-1252', '1,Rosé|2,a|3,Möhre|4,Père', 'line 2 reads: 1,Rosé. Line 5 reads: 4,Père (in '],
  ['windows-1252', '1,Père|2,Crème', 'line 2 reads: 1,Père$'],
  ['shift_jis', '1,桜|2,松', 'line 2 reads: 1,桜$'],
])('the error for %s shows the lines by which its encodings differ: %s', async (...row) => {
  const [encoding, lines, expected] = row
  const input = iconv.encode(`id,name\n${lines.replaceAll('|', '\n')}\n`, encoding)
  const error = await readRecords(input).catch((error: EncodingError) => error)
  expect(error).toHaveProperty('message', expect.stringMatching(expected.replaceAll('(', '\\(')))
  expect(error).toHaveProperty('hint', `Use --encoding ${encoding}`)
})

test('the error shows a line from where its encodings differ', async () => {
  const words = 'é '.repeat(100)
  const input = iconv.encode(`id,name\n1,Rosé\n2,${words}Crème\n`, 'windows-1252')
  await expect(readRecords(input)).rejects.toThrow(/Line 3 reads: ….*Crème \(in .*: ….*Cr[^è]me\)$/)
})

test('the error for an input that is not in the named encoding shows its likely encoding', async () => {
  const input = iconv.encode('id,name\n1,玫瑰\n2,牡丹\n3,㐀菊花\n', 'gb18030')
  await expect(readRecords(input, { encoding: 'latin1' })).rejects.toMatchObject({
    message: expect.stringMatching(
      /windows-1252 \(line \d\)\. In gb18030, the most likely encoding, line/,
    ),
    hint: 'Import it with its own command and --encoding gb18030, or correct that line',
  })
})

test('the error suggests no encoding in which a later block has other letters', async () => {
  const lines = 'id,name\n1,Žluťucha\n2,Růže\n3,Třešeň\n4,Hvězdnice\n'
  const start = iconv.encode(lines, 'iso-8859-2')
  const filler = Buffer.from('5,a\n'.repeat(40_000))
  const input = Buffer.concat([start, filler, latin1('6,\x8aafr\xe1n\n')]) // of windows-1250
  const cuts = [start.length + filler.length]
  const error = await readRecords(input, { cuts }).catch((error: EncodingError) => error)
  const encodings = error instanceof EncodingError ? error.encodings : []
  expect(encodings).toContain('windows-1250')
  expect(encodings).not.toContain('iso-8859-2')
})

test('the error suggests no other encoding for a file of UTF-8 with a damaged line', async () => {
  const input = Buffer.concat([Buffer.from('id,name\n1,ü\n2,é\n'), latin1('3,\xe9\n')])
  await expect(readRecords(input)).rejects.toMatchObject({
    message: 'stdin is not UTF-8 (line 4, byte 3), but line 2 is',
    hint: 'Correct the lines that are not UTF-8. With --encoding, the other lines would be wrong',
  })
})

const mixedHint =
  'Correct the lines that are not UTF-8. With --encoding, the other lines would be wrong'

test.each([
  ['first', 'id,name\n1,Größe\n', '2,Größe\n3,Ähre\n4,Öl\n', '(line 3, byte 5), but line 2 is'],
  ['last', 'id,name\n1,a\n', '2,Größe\n3,Ähre\n', '(line 3, byte 5), but line 5 is', '4,Öl\n'],
])('the error suggests no encoding for a file whose %s line is UTF-8', async (...row) => {
  const [, start, middle, message, end = ''] = row
  const input = Buffer.concat([Buffer.from(start), latin1(middle), Buffer.from(end)])
  await expect(readRecords(input)).rejects.toMatchObject({
    message: `stdin is not UTF-8 ${message}`,
    hint: mixedHint,
    encodings: [],
  })
})

test.each([
  { encoding: 'shift_jis', utf8: '1,薔薇\n2,桜\n', other: '3,バラ\n4,松\n5,梅\n' },
  { encoding: 'gbk', utf8: '1,玫瑰\n', other: '3,牡丹\n4,菊花\n5,兰花\n' },
  { encoding: 'windows-1251', utf8: '1,Роза\n', other: '3,Дуб\n4,Ель\n' },
  { encoding: 'windows-1252', utf8: '1,O’Hara\n', other: '3,Süß\n4,Öl\n5,Ähre\n' },
  { encoding: 'macintosh', utf8: '1,Größe\n', other: '3,Süß\n4,Öl\n5,Ähre\n' },
])('the error suggests no encoding for lines of UTF-8 and of $encoding', async (row) => {
  const lines = [Buffer.from(`id,name\n${row.utf8}`), iconv.encode(row.other, row.encoding)]
  await expect(readRecords(Buffer.concat(lines))).rejects.toMatchObject({
    message: expect.stringMatching(/^stdin is not UTF-8 \(line \d, byte \d\), but line 2 is$/),
    hint: mixedHint,
    encodings: [],
  })
})

test('the error suggests no encoding for a line of UTF-8 and of Windows-1252', async () => {
  const line = Buffer.concat([Buffer.from('1,Größe,'), latin1('Süd\n2,Öl,\n')])
  await expect(readRecords(Buffer.concat([latin1('id,name,tag\n'), line]))).rejects.toMatchObject({
    message: 'stdin is not UTF-8 (line 2, byte 12), but other letters of line 2 are',
    hint: mixedHint,
    encodings: [],
  })
})

test.each([
  { line: '1,Fr\xfchling S\xc3\xbcd', position: 5 },
  { line: '1,S\xc3\xbcdbeet,Stra\xdfe', position: 16 },
  { line: '1,Caf\xc3\xa9,S\xfcd', position: 10 },
  { line: '1,S\xfcd,\xc3\x96sterreich', position: 4 },
])('the error suggests no encoding for the only line beyond ASCII: $line', async (example) => {
  const { line, position } = example
  await expect(readRecords(latin1(`id,name,tag\n${line}\n2,Fern\n`))).rejects.toMatchObject({
    message: `stdin is not UTF-8 (line 2, byte ${position}), but other letters of line 2 are`,
    hint: mixedHint,
    encodings: [],
  })
})

test('the error suggests a Polish encoding for a word that begins with two Polish letters', async () => {
  const input = iconv.encode('id,name\n1,łąka\n', 'windows-1250')
  await expect(readRecords(input)).rejects.toMatchObject({
    message: expect.stringContaining('In windows-1250, the most likely encoding'),
  })
})

test('the error for a long line of UTF-8 with one other letter gives the position of the letter', async () => {
  const line = Buffer.from(`{"id":1,"name":"Größe${'é'.repeat(99_991)}`)
  const blocks = { cuts: [20_000, 65_537, 131_074] }
  const input = Buffer.concat([line, latin1('ü"}\n')])
  await expect(readRecords(input, blocks)).rejects.toMatchObject({
    message: `stdin is not UTF-8 (line 1, byte ${line.length + 1}), but other letters of line 1 are`,
    hint: mixedHint,
  })
})

test('the error suggests an encoding if a few lines are valid UTF-8 by chance', async () => {
  const names = ['械', '玫瑰', '牡丹', '菊花', '兰花', '荷花', '桃花']
  const input = iconv.encode(`id,name\n1,${names.join('\n1,')}\n`, 'gbk')
  await expect(readRecords(input)).rejects.toMatchObject({ hint: 'Use --encoding gb18030' })
})

test('the error suggests no encoding for a block that follows letters of UTF-8', async () => {
  const start = Buffer.from('id,name\n1,Größe\n')
  const input = Buffer.concat([start, latin1('2,Größe\n3,Ähre\n4,Öl\n')])
  await expect(readRecords(input, { cuts: [start.length] })).rejects.toMatchObject({
    message: 'stdin is not UTF-8 (line 3, byte 5), but line 2 is',
    hint: mixedHint,
  })
})

test.each([
  { encoding: 'windows-1250', lines: '1,Łąka', name: 'Łąka' },
  { encoding: 'windows-1252', lines: '1,a\n2,Łąka', name: 'Łąka' },
  { encoding: 'windows-1252', lines: '1,Վարդ', name: 'Վարդ' },
  { encoding: 'cp850', lines: '1,Größe', name: 'Größe' },
  { encoding: 'iso-8859-2', lines: '1,Größe', name: 'Größe' },
  { encoding: 'koi8-r', lines: '1,Роза', name: 'Роза' },
  { encoding: 'windows-1255', lines: '1,שלום', name: 'שלום' },
  { encoding: 'gbk', lines: '1,玫瑰', name: '玫瑰' },
  { encoding: 'shift_jis', lines: '1,薔薇', name: '薔薇' },
])('a file of UTF-8 is not read in $encoding: $name', async ({ encoding, lines, name }) => {
  const line = lines.split('\n').length + 1
  await expect(readRecords(`id,name\n${lines}\n`, { encoding })).rejects.toMatchObject({
    message: `stdin is UTF-8, not ${encoding}. In UTF-8, line ${line} reads: ${line - 1},${name}`,
    hint: 'Import it without --encoding, with its own command if other files need that option',
  })
})

test.each([[[]], [[30]]])(
  'a file with a line of UTF-8 is not read in another encoding, with blocks that end at %j',
  async (cuts) => {
    const start = latin1('id,name\n1,Größe\n2,Ähre\n')
    const input = Buffer.concat([start, Buffer.from('3,a\n4,Öl\n'), latin1('5,é\n')])
    await expect(readRecords(input, { encoding: 'latin1', cuts })).rejects.toMatchObject({
      message: 'stdin is only partly in windows-1252. In UTF-8, line 5 reads: 4,Öl',
      hint: 'Correct the file so that all its lines are UTF-8, and leave out --encoding',
    })
  },
)

test.each([
  { encoding: 'windows-1252', name: 'Mentha ×\u00a0piperita' },
  { encoding: 'windows-1252', name: 'CAFÉ»' },
  { encoding: 'windows-1252', name: 'Õ±' },
  { encoding: 'windows-874', name: 'สน' },
  { encoding: 'macintosh', name: 'L’île' },
  { encoding: 'gbk', name: '联通' },
  { encoding: 'gbk', name: '械' },
  { encoding: 'koi8-r', name: 'ещё' },
])(
  'a name whose bytes in $encoding happen to be UTF-8 is read: $name',
  async ({ encoding, name }) => {
    const input = iconv.encode(`id,name\n1,${name}\n`, encoding)
    const { records } = await readRecords(input, { encoding })
    expect(records.map(({ plant }) => plant?.name)).toEqual([name])
  },
)

test('the error for an input with U+FFFD and C1 controls in UTF-8 names the first byte that is not UTF-8', async () => {
  const input = Buffer.concat([Buffer.from('id,name\n1,\ufffd\u0085\n'), latin1('2,\xe4\n')])
  await expect(readRecords(input)).rejects.toThrow('(line 3, byte 3)')
})

test('the hint for an input that contradicts its byte order mark does not suggest --encoding', async () => {
  const input = Buffer.concat([Buffer.from('\ufeffid,name\n'), latin1('1,\xe4\n')])
  await expect(readRecords(input, { encoding: 'latin1' })).rejects.toMatchObject({
    message: 'stdin is not UTF-8 (line 2, byte 3)',
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
