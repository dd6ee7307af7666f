import * as zlib from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import { Importer, plant } from '../../../helpers/imports.js'
import { query } from '../../../helpers/sqlite-file.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

const [fern, moss, rose] = [plant(1, 'Fern', 'shade'), plant(2, 'Moss'), plant(3, 'Rose', '')]
const three = fern + moss + rose

test.each<[string, string | Uint8Array]>([
  ['without a line break at its end', three.trimEnd()],
  [
    'with many blank lines',
    `${'\n'.repeat(10_000)}${fern}${' \t\r\n'.repeat(1000)}${moss.trim()}${' '.repeat(2000)}\n${rose}${' '.repeat(999)}\n\r`,
  ],
  ['compressed in parts', Buffer.concat([zlib.gzipSync(`\ufeff${fern}${moss}`), zlib.gzipSync(rose)])],
])('reads a text %s, from a file and from stdin', async (_, content) => {
  expect(await user.import(user.write('plants', content))).toEqual({ code: 0, created: 3, err: '' })
  expect([await user.list(), user.journals]).toEqual([three, []])
  for (const args of ['', '-', 'plants', 'plants --restart --rejects bad'])
    expect(await user.import(`${args} --if-exists same`, content)).toEqual({ code: 0, skipped: 3, err: '' })
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

test.each<[string, string | Uint8Array, string]>([
  ['a byte order mark', '\ufeff', 'contains no records'],
  ['blank lines', '\r\n \t \n\n  ', 'contains no records'],
  ['nothing that is compressed', zlib.gzipSync(''), 'is empty'],
])('warns of %s', async (_, content, what) => {
  expect(await user.import('', content)).toEqual({ code: 0, err: `plants: warning: stdin ${what}\n` })
  expect(await user.list()).toBe('')
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
    ['cut', packed.subarray(0, -10), 'unexpected end of file'],
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
    const many = Array.from({ length: 100_000 }, (_, id) => plant(id, `Plant ${id * 7919}`)).join('')
    const whole = zlib.gzipSync(many)
    user.write('plants.gz', whole.subarray(0, whole.length * 0.9))
    expect(await user.import('plants.gz')).toMatchObject({ code: 2 })
    user.write('plants.gz', whole)
    expect(await user.import('plants.gz')).toMatchObject({ code: 0, created: 100_000 })
    expect((await user.list()) === many).toBe(true)
  })
})

test.each<[string, string | Uint8Array]>([
  ['a program', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0x0a, 0xff, 0xfe, 0])],
  ['random bytes', Buffer.from(Array.from({ length: 5000 }, (_, index) => (index * 7919 + (index >> 3)) % 256))],
  ['a text', 'Dear reader,\n\nthere are no plants in here.\n'],
  ['HTML', '<!DOCTYPE html>\n<html><body>Not Found</body></html>\n'],
  ['an object of plants', `{"plants":[${fern}]}`],
])('rejects %s', async (_, content) => {
  user.write('input', content)
  expect(await user.import('input')).toEqual({ code: 2, err: expect.stringMatching(/^plants: /) })
  expect([user.has('data'), user.journals]).toEqual([false, []])
})

test('a line of 1 MiB is not too large', async () => {
  const limit = 1_048_576
  const line = (length: number) => `{"id":1,"name":"${'x'.repeat(length - 18)}"}`
  for (const end of ['\n', '', `\n${moss}`])
    for (const [length, created] of [[limit, 1] as const, [limit + 1, 0] as const]) {
      const all = created + (end.length > 1 ? 1 : 0)
      expect(await new Importer().import('--format ndjson -q', line(length) + end)).toMatchObject({
        ...(all > 0 && { created: all }),
        ...(created === 0 ? { code: 6, rejected: { 413: 1 } } : { code: 0 }),
      })
    }
})

test.each(['{"id":2,"name":"B"', '{"id":2,"name":"B'])('a carriage return is no part of %s', async (record) => {
  const [unix, dos] = await Promise.all(
    ['\n', '\r\n'].map((end) => new Importer().import('--format ndjson', record + end)),
  )
  expect(dos).toEqual(unix)
})

test.each(['--store ./plants', '--rejects no/bad'])('leaves no journal if it could not begin: %s', async (flags) => {
  user.write('plants', fern)
  expect((await user.import(`plants ${flags}`)).code).not.toBe(0)
  expect([user.journals, await user.list()]).toEqual([[], ''])
})

test.each([
  ['--map', ['', 'name', 'name=', '=x', 'name=a,name=b', 'name=a,', 'Name=x']],
  ['--delimiter', ['', '"', '\n', '7', '\u00a7']],
  ['--encoding', ['', 'utf-32']],
  ['--concurrency', ['0', '1.5']],
  ['--retry', ['', '-1', '2h']],
])('%s rejects %j', async (flag, values) => {
  for (const value of values) {
    const { code, err } = await user.import([`${flag}=${value}`], fern)
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(`^plants: ${flag} must `) })
  }
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

test('a checkpoint with nothing created does not bind the next import to its flags', async () => {
  const stop = new AbortController()
  stop.abort(new PlantsError('interrupted', 'Interrupted'))
  user.write('plants', fern)
  expect(await user.run('import plants --rejects bad', { signal: stop.signal })).toMatchObject({ code: 130 })
  expect(await user.import('plants --if-exists skip')).toEqual({ code: 0, created: 1, err: '' })
})

test.each(['--map tag=x', '--id-from 1', '--rejects bad', '--format json', '--encoding latin1'])(
  'an import does not resume with %s, but begins again',
  async (flag) => {
    user.write('plants', `${fern}{"id":2}\n${rose}`)
    await user.import('plants --max-errors 1')
    const err = `plants: This import was started without ${flag.split(' ')[0]}\n`
    expect(await user.import(`plants ${flag}`)).toMatchObject({ code: 2, err: expect.stringContaining(err) })
    const again = await user.import(`plants --restart --if-exists same`)
    expect(again).toMatchObject({ created: 1, skipped: 1, rejected: { 422: 1 } })
    expect(user.journals).toEqual([])
  },
)

test('--restart begins again although the checkpoint is damaged', async () => {
  user.write('plants', `${fern}{"id":2}\n${rose}`)
  await user.import('plants --max-errors 1')
  for (const state of ['{"version":1,', '{"version":2}', '']) {
    query(user.store, `UPDATE imports SET state = '${state}'`)
    const err = 'plants: The checkpoint of this import is damaged\n  Start again with --restart\n'
    expect(await user.import('plants --max-errors 1')).toEqual({ code: 2, err })
  }
  expect(await user.import('plants --restart --if-exists same')).toMatchObject({ created: 1, skipped: 1 })
  expect(query(user.store, 'SELECT * FROM imports')).toEqual([])
})
