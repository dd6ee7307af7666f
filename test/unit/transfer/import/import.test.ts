import * as zlib from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { Importer, plant } from '../../../helpers/imports.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

const [fern, moss, rose] = [plant(1, 'Fern', 'shade'), plant(2, 'Moss'), plant(3, 'Rose', '')]
const three = fern + moss + rose
const [many, spaces, blank] = ['\n'.repeat(10_000), ' '.repeat(2000), ' \t\r\n'.repeat(1000)]

test('reads many blank lines, also compressed in parts, from a file and from stdin', async () => {
  const parts = [`\ufeff${many}${fern}${blank}`, `${moss.trim()}${spaces}\n${rose}${spaces}\n\r`]
  expect(await user.import(user.write('plants', parts.join('')))).toEqual({ code: 0, created: 3, err: '' })
  expect([await user.list(), user.journals]).toEqual([three, []])
  user.write('packed', Buffer.concat(parts.map((part) => zlib.gzipSync(part))))
  for (const file of ['packed --restart --rejects bad', '-'])
    expect(await user.import(`${file} --if-exists same`, parts.join(''))).toEqual({ code: 0, skipped: 3, err: '' })
  expect(user.has('bad')).toBe(false)
})

test.runIf('zstdCompressSync' in zlib)('reads zstd (needs Node 22.15)', async () => {
  const { zstdCompressSync } = zlib as { zstdCompressSync?: (text: Buffer) => Uint8Array }
  const packed = zstdCompressSync?.(Buffer.from(three)) ?? ''
  expect(await user.import(user.write('plants.zst', packed))).toEqual({ code: 0, created: 3, err: '' })
  expect(await user.import('--if-exists skip', packed)).toEqual({ code: 0, skipped: 3, err: '' })
})

test.skipIf('zstdCompressSync' in zlib)('says what reads zstd (needs a Node without zstd)', async () => {
  const message = 'plants.zst is compressed with zstd, which this version of Node cannot decompress'
  const hint = 'Use Node 22.15 or newer, or import the output of: zstd -dc plants.zst'
  user.write('plants.zst', Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 0]))
  expect(await user.import('plants.zst')).toEqual({ code: 2, err: `plants: ${message}\n  ${hint}\n` })
})

test('warns of a byte order mark alone, and of nothing that is compressed', async () => {
  expect((await user.import('', '\ufeff')).err).toBe('plants: warning: stdin contains no records\n')
  expect((await user.import('', zlib.gzipSync(''))).err).toBe('plants: warning: stdin is empty\n')
})

test('creates plants over several chunks, whatever their order', async () => {
  const all = Array.from({ length: 60_000 }, (_, index) => plant(index * 3 - 60_000, `Plant ${index}`, `t${index % 7}`))
  expect(await user.import(user.write('plants', all.join('')))).toEqual({ code: 0, created: 60_000, err: '' })
  expect((await user.list()) === all.join('')).toBe(true)
  const shuffled = all.toSorted((one, other) => one.length - other.length || one.localeCompare(other)).join('')
  expect(await user.import('--if-exists same', shuffled)).toEqual({ code: 0, skipped: 60_000, err: '' })
})

describe('damaged gzip', () => {
  const packed = zlib.gzipSync(three)
  const wrongSum = Buffer.from(packed)
  wrongSum.writeUInt8(0x55, packed.length - 8)

  test.each([
    ['cut to its first bytes', packed.subarray(0, 2), 'unexpected end of file'],
    ['with a wrong checksum', wrongSum, 'incorrect data check'],
  ])('%s is rejected', async (_, content, why) => {
    user.write('plants.gz', content)
    for (const name of ['plants.gz', 'stdin']) {
      const err = `plants: ${name} is damaged: gzip reports "${why}"\n  Compress the original again\n`
      expect(await user.import(name.replace('stdin', '-'), content)).toEqual({ code: 2, err })
    }
    expect([user.has('data'), user.journals]).toEqual([false, []])
  })

  test('is imported up to there, and resumed when it is whole', async () => {
    const all = Array.from({ length: 100_000 }, (_, id) => plant(id, `Plant ${id * 7919}`)).join('')
    const whole = zlib.gzipSync(all)
    user.write('plants.gz', whole.subarray(0, whole.length * 0.9))
    expect(await user.import('plants.gz')).toMatchObject({ code: 2 })
    user.write('plants.gz', whole)
    expect(await user.import('plants.gz')).toMatchObject({ code: 0, created: 100_000 })
    expect((await user.list()) === all).toBe(true)
  })
})

test.each(['--store ./plants', '--rejects no/bad'])('leaves no journal if it could not begin: %s', async (flags) => {
  user.write('plants', fern)
  expect((await user.import(`plants ${flags}`)).code).not.toBe(0)
  expect([user.journals, await user.list()]).toEqual([[], ''])
})

test.each(['', `\n${moss}`])('a line of 1 MiB is not too large, and one of a byte more is: before %j', async (end) => {
  const line = (length: number) => `{"id":1,"name":"${'x'.repeat(length - 18)}"}${end}`
  const importOf = (stdin: string) => new Importer().import('--format ndjson -q', stdin)
  expect(await importOf(line(1_048_576))).toMatchObject({ code: 0, created: end ? 2 : 1 })
  expect(await importOf(line(1_048_577))).toMatchObject({ code: 6, rejected: { 413: 1 } })
})

test.each(['{"id":2,"name":"B"', '{"id":2,"name":"B'])('a carriage return is no part of %s', async (record) => {
  const ends = ['\n', '\r\n'].map((end) => new Importer().import('--format ndjson', record + end))
  const [unix, dos] = await Promise.all(ends)
  expect(dos).toEqual(unix)
})

test.each([
  ['--map', ['', 'name', 'name=', '=x', 'name=a,name=b', 'name=a,', 'Name=x']],
  ['--delimiter', ['', '"', '\n', '7', '\u00a7']],
  ['--encoding', ['', 'utf-32']],
])('%s rejects %j', async (flag, values) => {
  for (const value of values)
    expect(await user.import([`${flag}=${value}`], fern)).toEqual({
      code: 2,
      err: expect.stringMatching(`^plants: ${flag} must `),
    })
  expect(user.has('data')).toBe(false)
})

test('the summary is text on a terminal, and groups digits', async () => {
  const stdin = Array.from({ length: 12_345 }, (_, id) => `{"id":${id},"name":"x","f${id % 150}":1}\n`).join('')
  const { out, err } = await user.run('import', { stdin, terminals: ['stdout'] })
  expect(out).toMatch(/^Read 12,345 plants in \d+(\.\d)? s(?: \([\d,]+\/s\))?: 12,345 created\n$/)
  expect(err).toContain('ignored 130 more unknown fields\n')
})

test('rejected records after the first twenty are counted', async () => {
  const { err } = await user.import('', '{"id":2}\n'.repeat(21))
  expect(err.match(/stdin:/g)).toHaveLength(20)
  expect(err).toContain('plants: Rejected records that are not shown: 1\n')
})

test('a dry run shows the first twenty changes', async () => {
  const stdin = Array.from({ length: 25 }, (_, id) => plant(id)).join('')
  const { out, err } = await user.run('import --dry-run -o text', { stdin })
  expect(out.match(/Would create Plant/g)).toHaveLength(20)
  expect(err).toBe('plants: Changes that are not shown: 5. For all: --output ndjson\n')
})
