import { chmodSync, readdirSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { Importer, plant } from '../../../helpers/imports.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

const stored = [plant(1, 'A', 'x'), plant(2, 'B'), plant(3, 'C', '')].join('')

describe('--if-exists', () => {
  const again = [
    plant(1, 'A', 'x'),
    plant(2, 'B', ''),
    plant(3, 'C'),
    plant(4, 'D'),
    plant(4, 'D'),
    plant(4, 'E'),
  ].join('')

  test.each([
    ['error', { created: 1, rejected: { 409: 5 } }, [1, 2, 3, 5, 6]],
    ['skip', { created: 1, skipped: 5 }, []],
    ['same', { created: 1, skipped: 2, rejected: { 409: 3 } }, [2, 3, 6]],
    ['update', { created: 1, updated: 2, skipped: 3 }, []],
  ])('%s', async (policy, counts, rejected) => {
    const code = rejected.length > 0 ? 6 : 0
    const all = policy === 'update' ? stored.replace('"B"', '"B","tag":""') + plant(4, 'E') : stored + plant(4, 'D')
    await user.import('', stored)
    const { err, ...check } = await user.import(`--if-exists ${policy} --dry-run`, again)
    expect(check).toEqual({ dryRun: true, code, ...counts })
    expect(Array.from(err.matchAll(/stdin:(\d+): /g), ([, line]) => Number(line))).toEqual(rejected)
    expect(await user.list()).toBe(stored)

    const { created, ...others } = counts
    const { err: _, ...atomic } = await user.import(`--if-exists ${policy} --atomic`, again)
    expect(atomic).toEqual({ code, ...(code === 0 && { created }), ...others })
    expect(await user.list()).toBe(code === 0 ? all : stored)
    if (code === 0) await user.run('delete 4 --yes')

    user = new Importer()
    await user.import('', stored)
    expect(await user.import(`--if-exists ${policy}`, again)).toMatchObject({ code, ...counts })
    expect(await user.list()).toBe(all)
  })

  test('update needs a name where a table has that column, and skip needs one at all', async () => {
    await user.import('', stored)
    expect(await user.import('--if-exists update', 'id,name,tag\n1,,x\n')).toMatchObject({ rejected: { 422: 1 } })
    expect(await user.import('--if-exists skip', '{"id":1,"tag":"x"}\n')).toMatchObject({ rejected: { 422: 1 } })
    for (const [policy, stdin] of [
      ['update', 'id,nmae\n1,x'],
      ['same', 'id,tag\n1,x'],
    ])
      expect(await user.import(`--if-exists ${policy}`, stdin)).toMatchObject({ code: 2 })
    expect(await user.list()).toBe(stored)
  })

  test.each(['error', 'skip', 'same', 'update'])('%s takes null for no tag', async (policy) => {
    const stdin = '{"id":1,"name":"A","tag":null}\n'
    expect(await user.import(`--if-exists ${policy}`, stdin)).toEqual({ code: 0, created: 1, err: '' })
    const again = policy === 'error' ? { rejected: { 409: 1 } } : { skipped: 1 }
    expect(await user.import(`--if-exists ${policy} --dry-run`, stdin)).toMatchObject(again)
    expect(await user.list()).toBe(plant(1, 'A'))
  })

  test('the first of several records with an id counts, also when ids are in no order', async () => {
    const some = [plant(5, 'first'), plant(3, 'x'), plant(5, 'second'), plant(-1, 'y'), plant(3, 'z'), plant(5)]
    const { err } = await user.import('', some.join(''))
    expect(Array.from(err.matchAll(/stdin:(\d): The id (\d) .* line (\d)$/gm), ([, ...all]) => all.join())).toEqual([
      '3,5,1',
      '5,3,2',
      '6,5,1',
    ])
    expect(await user.list()).toBe(plant(-1, 'y') + plant(3, 'x') + plant(5, 'first'))
  })
})

describe('all or nothing:', () => {
  test.each(['--dry-run', '--atomic'])('%s finds ids that are twice in several inputs', async (flag) => {
    user.write('one', plant(1) + plant(2))
    user.write('other', plant(3) + plant(2))
    const { err, ...counts } = await user.import(`one other ${flag}`)
    expect(counts).toMatchObject({ code: 6, rejected: { 409: 1 } })
    expect(err).toMatch(/^plants: other:2: [^\n]*\bid 2\b/)
    expect(err).toContain('\n  Of records with the same id, keep one. Fix ')
  })

  test('--dry-run creates nothing but the rejects file', async () => {
    user.write('plants', plant(1) + plant(2) + plant(1))
    const counts = { dryRun: true, created: 2, rejected: { 409: 1 } }
    expect(await user.import('plants --dry-run --rejects bad')).toMatchObject(counts)
    expect(readdirSync(user.home).toSorted()).toEqual(['bad', 'bad.reasons', 'plants'])
    expect(user.read('bad')).toBe(plant(1))
  })

  test('--atomic creates all', async () => {
    user.write('one', plant(1) + plant(2))
    expect(await user.import('one - --atomic', plant(3))).toEqual({ code: 0, created: 3, err: '' })
    expect(await user.list()).toBe(plant(1) + plant(2) + plant(3))
  })

  test.each([
    ['a record that is no plant', '{"id":9}\n'],
    ['an id that is taken', plant(7)],
    ['an id that is there twice', plant(1)],
  ])('--atomic creates none because of %s', async (_, last) => {
    await user.import('', plant(7))
    const { err, ...counts } = await user.import('--atomic', plant(1) + plant(2) + last)
    expect(counts).toEqual({ code: 6, rejected: { [last.includes('9') ? 422 : 409]: 1 } })
    expect(err).toMatch(/\nplants: 1 plant was rejected, so nothing was created\n {2}(?!.*nothing was created)/)
    expect(await user.list()).toBe(plant(7))
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
