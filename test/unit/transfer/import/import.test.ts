import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import * as zlib from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { complaints, Importing, imported, summary } from '../../../helpers/importing.js'

let user: Importing

beforeEach(() => {
  user = new Importing()
})

const [fern, moss, rose] = [
  '{"id":1,"name":"Fern","tag":"shade"}',
  '{"id":2,"name":"Moss"}',
  '{"id":3,"name":"Rose","tag":""}',
]
const two = `${fern}\n${moss}\n`
const three = `${two}${rose}\n`

describe('an import reads', () => {
  test('a file, and forgets that it did', async () => {
    user.write('plants.ndjson', three)
    expect(await user.import(['plants.ndjson'])).toEqual(imported({ created: 3 }))
    expect(await user.list()).toBe(three)
    expect(user.journals()).toEqual([])
  })

  test('several files, in their order', async () => {
    user.write('one', `${rose}\n`)
    user.write('other', `{"id":3,"name":"Another"}\n${two}`)
    expect(await user.import(['one', 'other'])).toEqual({
      code: 6,
      summary: summary({ created: 3, rejected: 1, reasons: { 409: 1 } }),
      err: complaints(['other:1: A plant with id 3 already exists'], '1 plant was rejected'),
    })
    expect(await user.list()).toBe(three)
  })

  test.each([
    ['stdin, when nothing is named', []],
    ['stdin, as "-"', ['-']],
    ['stdin between files', ['first', '-', 'last']],
  ])('%s', async (_, files) => {
    user.write('first', '{"id":11,"name":"First"}')
    user.write('last', '{"id":12,"name":"Last"}')
    expect(await user.import(files, { stdin: three })).toEqual(imported({ created: files.length > 1 ? 5 : 3 }))
    expect((await user.list()).startsWith(three)).toBe(true)
  })

  test.each<[string, string | Uint8Array]>([
    ['with a line break at its end', three],
    ['without one', three.trimEnd()],
    ['with a byte order mark', `\ufeff${three}`],
    ['with CRLF', three.replaceAll('\n', '\r\n')],
    [
      'with CRLF and a byte order mark, without a break at its end',
      `\ufeff${three.trimEnd().replaceAll('\n', '\r\n')}`,
    ],
    ['with LF and CRLF', `${fern}\r\n${moss}\n${rose}`],
    [
      'with many blank lines',
      `${'\n'.repeat(10_000)}${fern}${' \t\r\n'.repeat(1000)}${moss}${' '.repeat(2000)}\n${rose}${' '.repeat(999)}\n\r`,
    ],
    ['with blank lines', `\n\r\n  \n${fern}\n\n\t\n${moss}\n \r\n${rose}\n\n\n`],
    ['with spaces around', ` ${fern} \n\t${moss}\t\n  ${rose}  `],
    ['packed with gzip', zlib.gzipSync(three)],
    ['packed with gzip, in parts', Buffer.concat([zlib.gzipSync(two), zlib.gzipSync(rose)])],
    ['packed with gzip, with a byte order mark', zlib.gzipSync(`\ufeff${three}`)],
  ])('a text %s, from a file and from stdin', async (_, content) => {
    user.write('plants', content)
    expect(await user.import(['plants'])).toEqual(imported({ created: 3 }))
    expect(await user.list()).toBe(three)
    expect(await user.import(['--if-exists', 'same'], { stdin: content })).toEqual(imported({ skipped: 3 }))
  })

  test.each<[string, string | Uint8Array]>([
    ['nothing', ''],
    ['a byte order mark', '\ufeff'],
    ['a line break', '\n'],
    ['blank lines', '\r\n \t \n\n  '],
    ['packed nothing', zlib.gzipSync('')],
  ])('%s, and creates nothing', async (name, content) => {
    user.write('empty', content)
    const what = name.endsWith('nothing') ? 'is empty' : 'contains no records'
    expect(await user.import(['empty'])).toEqual(imported({}, `plants: warning: empty ${what}\n`))
    expect(await user.import([], { stdin: content })).toEqual(imported({}, `plants: warning: stdin ${what}\n`))
    expect(await user.list()).toBe('')
  })

  test('plants over many portions, each in its place', async () => {
    const count = 60_000
    const all = Array.from(
      { length: count },
      (_, index) => `{"id":${index * 3 - count},"name":"Plant ${index}","tag":"t${index % 7}"}\n`,
    ).join('')
    user.write('plants', all)
    user.write(
      'shuffled',
      all
        .split('\n')
        .toSorted((one, other) => one.length - other.length || (one.at(-4) ?? '').localeCompare(other.at(-4) ?? ''))
        .join('\n'),
    )
    expect(await user.import(['plants'])).toEqual(imported({ created: count }))
    expect((await user.list()) === all).toBe(true)
    expect(await user.import(['shuffled', '--if-exists', 'same'])).toEqual(imported({ skipped: count }))
  })

  test.runIf('zstdCompressSync' in zlib)('a text packed with zstd (needs Node 22.15)', async () => {
    const packed =
      (zlib as { zstdCompressSync?: (text: Buffer) => Uint8Array }).zstdCompressSync?.(Buffer.from(three)) ?? ''
    user.write('plants.zst', packed)
    expect(await user.import(['plants.zst'])).toEqual(imported({ created: 3 }))
    expect(await user.import(['--if-exists', 'skip'], { stdin: packed })).toEqual(imported({ skipped: 3 }))
  })

  test.skipIf('zstdCompressSync' in zlib)(
    'nothing packed with zstd where Node cannot, and says what can (needs a Node without zstd)',
    async () => {
      user.write('plants.zst', Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0]))
      const { code, summary: told, err } = await user.import(['plants.zst'])
      expect({ code, told, err }).toEqual({
        code: 2,
        told: undefined,
        err: expect.stringContaining(
          'plants: plants.zst is compressed with zstd, which this version of Node cannot decompress\n  Use Node 22.15 or newer, or import the output of: zstd -dc plants.zst',
        ),
      })
    },
  )
})

describe('an import does not read', () => {
  const usual = 'Use files that contain plants, or "-" for stdin'
  test.each([
    ['a file that is not there', 'missing', 'there is no such file', usual],
    ['a folder', 'folder', 'it is a directory', usual],
    ['a path through a file', 'plants/ndjson', 'a part of its path is not a directory', usual],
    [
      'a URL',
      'https://a.example/x.csv',
      'there is no such file',
      'Download it first: curl -sSfLO https://a.example/x.csv',
    ],
  ])('%s', async (_, path, why, hint) => {
    user.write('plants', three)
    mkdirSync(join(user.folder, 'folder'))
    const { code, summary: told, err } = await user.import([path])
    expect({ code, told }).toEqual({ code: 2, told: undefined })
    expect(err).toContain(`plants: Could not read ${path}: ${why}\n  ${hint}\n`)
  })

  test('a list with a missing file: nothing is created from those before it', async () => {
    user.write('plants', three)
    expect(await user.import(['plants', 'missing'])).toMatchObject({ code: 2, summary: undefined })
    expect(await user.list()).toBe('')
  })

  test.each([
    ['a missing file', undefined],
    ['a web page', '<!doctype html>\n'],
    ['what holds its plants in an object', `{"plants":[{"id":1,"name":"Fern"}]}`],
    ['what is not decompressed', zlib.gzipSync(three).subarray(0, -10)],
  ])('%s, and leaves no store and no journal behind', async (_, content) => {
    if (content !== undefined) user.write('input', content)
    expect(await user.import(['input'])).toMatchObject({ code: 2 })
    expect({ hasStore: user.has('plants.db'), journals: user.journals() }).toEqual({ hasStore: false, journals: [] })
  })

  test.each<[string, Uint8Array, string]>([
    ['cut short', zlib.gzipSync(three).subarray(0, -10), 'unexpected end of file'],
    ['cut to its first bytes', zlib.gzipSync(three).subarray(0, 2), 'unexpected end of file'],
    ['with a wrong sum', damaged(zlib.gzipSync(three), -8), 'incorrect data check'],
    ['with a wrong length', damaged(zlib.gzipSync(three), -1), 'incorrect length check'],
    ['with a wrong head', damaged(zlib.gzipSync(three), 2), 'unknown compression method'],
  ])('gzip that is damaged: %s', async (_, content, why) => {
    user.write('plants.gz', content)
    for (const [argv, name] of [
      [['plants.gz'], 'plants.gz'],
      [['-'], 'stdin'],
    ] as const) {
      const { code, summary: told, err } = await user.import([...argv], { stdin: content })
      expect({ code, told }).toEqual({ code: 2, told: undefined })
      expect(err).toMatch(`plants: ${name} is damaged: gzip reports "${why}"\n  Compress the original again`)
    }
  })

  test('gzip that is cut short, and goes on when it is whole', async () => {
    const many = Array.from({ length: 100_000 }, (_, id) => `{"id":${id},"name":"Plant ${id * 7919}"}\n`).join('')
    const packed = zlib.gzipSync(many)
    user.write('plants.gz', packed.subarray(0, packed.length * 0.9))
    expect(await user.import(['plants.gz'])).toMatchObject({ code: 2 })
    user.write('plants.gz', packed)
    expect(await user.import(['plants.gz'])).toMatchObject({ code: 0, summary: summary({ created: 100_000 }) })
    expect((await user.list()) === many).toBe(true)
  })

  test.each([
    ['UTF-16LE', Buffer.from(three, 'utf16le')],
    ['UTF-16BE', Buffer.from(three, 'utf16le').swap16()],
  ])('%s without a mark, unless that is given', async (name, content) => {
    const flag = `--encoding ${name.toLowerCase()}`
    const { code, summary: told, err } = await user.import([], { stdin: content })
    expect({ code, told, err: err.includes(`Run it again with: ${flag}\n`) }).toEqual({
      code: 2,
      told: undefined,
      err: true,
    })
    expect(await user.import(flag.split(' '), { stdin: content })).toEqual(imported({ created: 3 }))
  })

  test.each<[string, string | Uint8Array]>([
    ['a program', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0x0a, 0xff, 0xfe, 0])],
    ['random bytes', Buffer.from(Array.from({ length: 5000 }, (_, index) => (index * 7919 + (index >> 3)) % 256))],
    ['a text', 'Dear reader,\n\nthere are no plants in here.\n'],
    ['HTML', '<!DOCTYPE html>\n<html><body>Not Found</body></html>\n'],
  ])('%s: that fails, and nothing is created', async (_, content) => {
    const { code, err } = await user.import([], { stdin: content })
    expect([2, 6]).toContain(code)
    expect(err).toMatch(/^plants: /)
    expect(await user.list()).toBe('')
  })
})

function damaged(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[at < 0 ? copy.length + at : at] = 0x55
  return copy
}
