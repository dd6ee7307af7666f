import { chmodSync, chownSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { Importer, plant } from '../../../helpers/imports.js'
import { objectsOf } from '../../../helpers/json-lines.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

const limit = 1_048_576

test('records are rejected in their order', async () => {
  await user.run('create --id 99 --name First')
  const large = `{"id":40,"name":"${'x'.repeat(limit)}"}\r\n`
  const bad = ['x\r\n', plant(1, 'Twice'), '{"id":1.5}\n', large, plant(99, 'Taken'), '[]\r\n', '"\xff"\n']
  const all = bad.flatMap((record, index) => [Buffer.from(plant(index + 1)), Buffer.from(record, 'latin1')])
  user.write('mixed', Buffer.concat([Buffer.from('\ufeff'), ...all, Buffer.from('{}')]))
  const errors = [400, 409, 422, 413, 409, 422, 400, 422]
  const expected = errors.map((error, index) => ({ error, line: index === 7 ? 15 : 2 * index + 2 }))
  const counts = { code: 6, created: 7, rejected: { 400: 2, 409: 2, 413: 1, 422: 3 } }
  const result = await user.import('mixed --rejects bad --output json')
  expect(result).toMatchObject({ ...counts, rejects: join(user.home, 'bad') })
  const hint = expect.stringContaining(' (1 larger than 1 MiB is not in it), ')
  const end = { error: 422, message: '8 plants were rejected', hint }
  expect(objectsOf(result.err)).toEqual([...user.reasons('bad'), end])
  expect(user.reasons('bad')).toMatchObject(expected)
  expect(user.reasons('bad')[1]?.message).toBe('The id 1 is in the input twice, also in line 1')
  const kept = bad.filter((record) => record !== large).join('')
  expect(user.bytes('bad').toString('latin1')).toBe(`\xef\xbb\xbf${kept}{}`)
})

describe('a rejects file', () => {
  const input = `${plant(1, 'A')}{"id":2}\n`

  test('of several inputs has a line for each record', async () => {
    user.write('one', '{"id":1}')
    user.write('other', '{"id":2}\n')
    await user.import('one other - --rejects bad', '{"id":3}')
    expect(user.read('bad')).toBe('{"id":1}\n{"id":2}\n{"id":3}')
    expect(user.reasons('bad').map(({ file, line }) => `${file}:${line}`)).toEqual(['one:1', 'other:1', 'stdin:1'])
  })

  test('has nothing if all records are too large', async () => {
    const { err, ...result } = await user.import('--rejects bad', `{"id":1,"name":"${'x'.repeat(limit)}"}\n`)
    expect(result).toEqual({ code: 6, rejected: { 413: 1 } })
    expect(err).toContain('\n  Records larger than 1 MiB are not in the rejects file: correct the input\n')
    expect(user.has('bad')).toBe(false)
  })

  test.each(['bad', 'bad.reasons'])('does not overwrite %s', async (name) => {
    user.write(name, 'mine\n')
    const err = expect.stringContaining(`${join(user.home, name)} already exists, and would be overwritten`)
    expect(await user.import('--rejects bad', input)).toEqual({ code: 2, err })
    expect([user.read(name), await user.list()]).toEqual(['mine\n', ''])
  })

  test('is replaced by the next import, or removed', async () => {
    user.write('plants', input)
    const args = 'plants --if-exists same --rejects bad'
    expect(await user.import(args)).toMatchObject({ code: 6, created: 1 })
    const [records, reasons] = [user.read('bad'), user.read('bad.reasons')]
    expect(await user.import(args)).toMatchObject({ code: 6, skipped: 1 })
    expect([user.read('bad'), user.read('bad.reasons')]).toEqual([records, reasons])
    user.write('plants', plant(2))
    expect(await user.import(args)).toMatchObject({ code: 0 })
    expect([user.has('bad'), user.has('bad.reasons')]).toEqual([false, false])
  })

  test.runIf(process.getuid?.() === 0).each(['bad', 'bad.reasons'])(
    'of another user is rejected: %s (needs root)',
    async (name) => {
      user.write(name, '')
      chownSync(join(user.home, name), 65_534, 65_534)
      const message = `${join(user.home, name)} belongs to another user (uid 65534)`
      const err = expect.stringContaining(`${message}\n  Choose another file with --`)
      expect(await user.import('--rejects bad', input)).toEqual({ code: 2, err })
      expect(['bad', 'bad.reasons'].filter((one) => user.has(one))).toEqual([name])
      expect(user.read(name)).toBe('')
    },
  )

  test('can have another name after a wrong one, also of an empty file', async () => {
    user.write('plants', input)
    user.write('bad', '')
    expect(await user.import('plants --rejects no/bad')).toMatchObject({ code: 74 })
    expect(await user.import('plants --rejects bad')).toMatchObject({ code: 6, created: 1, rejected: { 422: 1 } })
    expect(user.read('bad')).toBe('{"id":2}\n')
  })

  test('is no device', async () => {
    symlinkSync('/dev/null', join(user.home, 'null'))
    const err = expect.stringContaining('null is not a regular file\n')
    expect(await user.import('--rejects null', input)).toEqual({ code: 2, err })
  })
})

test.each(['update', 'same'])('a table for --if-exists %s needs the columns', async (policy) => {
  const stdin = policy === 'update' ? 'id,nmae\n1,x' : 'id,tag\n1,x'
  expect(await user.import(`--if-exists ${policy}`, stdin)).toMatchObject({ code: 2 })
})

describe('all or nothing:', () => {
  test.each(['--dry-run', '--atomic'])('%s finds an id that is twice in several inputs', async (flag) => {
    user.write('one', plant(1) + plant(2))
    user.write('other', plant(3) + plant(2))
    const { err, ...counts } = await user.import(`one other ${flag} --rejects bad`)
    expect(counts).toMatchObject({ code: 6, rejected: { 409: 1 } })
    expect(err).toMatch(/^plants: other:2: [^\n]*\bid 2\b/)
    expect(err).toContain('\n  Of records with the same id, the first one counts: delete the others. Fix ')
    expect(readdirSync(user.home).toSorted()).toEqual(['bad', 'bad.reasons', 'one', 'other'])
    expect(user.read('bad')).toBe(plant(2))
  })

  test('--atomic creates all of several inputs', async () => {
    user.write('one', plant(1) + plant(2))
    expect(await user.import('one - --atomic', plant(3))).toEqual({ code: 0, created: 3, err: '' })
    expect(await user.list()).toBe(plant(1) + plant(2) + plant(3))
  })

  test.runIf(process.getuid?.() !== 0)(
    '--atomic reports at once that a store cannot be written (needs a user that is not root)',
    async () => {
      await user.import('', plant(7))
      chmodSync(user.store, 0o400)
      expect(await user.import('--atomic', '{"id":1}\n')).toMatchObject({ code: 4 })
    },
  )
})
