import { beforeEach, describe, expect, test } from 'vitest'
import { Importer, plant } from '../../../helpers/imports.js'

let user: Importer

beforeEach(() => {
  user = new Importer()
})

const largest = '9223372036854775807'

test('ids are exact, also of another field', async () => {
  const ids = ['-9223372036854775808', '9007199254740993', '922337203685477580.7e1']
  const stdin = ids.map((id) => `{"nr":${id},"name":"Fern"}\n`).join('')
  expect(await user.import('--map id=nr', stdin)).toEqual({ code: 0, created: 3, err: '' })
  expect(await user.list()).toBe([...ids.slice(0, 2), largest].map((id) => plant(id, 'Fern')).join(''))
})

test.each([
  [' name = CommonName , tag = Family ', '{"id":1,"CommonName":"Fern","Family":"x"}'],
  ['name=tag,tag=name', '{"id":1,"name":"x","tag":"Fern"}'],
  ['tag=a=b', '{"id":1,"name":"Fern","a=b":"x"}'],
  ['tag=__proto__', '{"id":1,"name":"Fern","__proto__":"x"}'],
  ['name=x,tag=x', '{"id":1,"x":"Fern"}', 'Fern'],
])('--map %s', async (map, record, tag = 'x') => {
  expect(await user.import(['--map', map], record)).toEqual({ code: 0, created: 1, err: '' })
  expect(await user.list()).toBe(plant(1, 'Fern', tag))
})

test('--map of a field that a record lacks', async () => {
  const stdin = '{"id":1,"name":"A"}'
  expect(await user.import('--map name=x', stdin)).toMatchObject({ rejected: { 422: 1 } })
  expect(await user.import('--map tag=x', stdin)).toEqual({ code: 0, created: 1, err: '' })
})

describe('--id-from', () => {
  test.each([
    ['-1', '-1', '0'],
    ['1e3', '1000', '1001'],
    ['9223372036854775806', '9223372036854775806', largest],
  ])('%s numbers plants', async (from, first, second) => {
    user.write('one', '{"name":"A"}\n\n')
    const stdin = '{"name":"B"}\n{"name":"C"}\n'.slice(0, second === largest ? undefined : 13)
    const rejected = second === largest ? { code: 6, rejected: { 422: 1 } } : { code: 0 }
    expect(await user.import(`one - --id-from=${from}`, stdin)).toMatchObject({ ...rejected, created: 2 })
    expect(await user.list()).toBe(plant(first, 'A') + plant(second, 'B'))
  })

  test('keeps ids of plants, and corrects no wrong ones', async () => {
    const stdin = '{"name":"A"}\n{"id":10,"name":"B"}\n{"name":"C"}\n{"id":null,"name":"D"}\n{"id":"5","name":"E"}\n'
    expect(await user.import('--id-from 1', stdin)).toMatchObject({ created: 3, rejected: { 422: 2 } })
    expect(await user.list()).toBe(plant(1, 'A') + plant(2, 'C') + plant(10, 'B'))
  })

  test('and --map id= number JSON, whatever its ids are', async () => {
    expect(await user.import('--map id= --id-from 7', '{"id":"A-1","name":"Fern"}\n')).toMatchObject({ created: 1 })
    expect(await user.list()).toBe(plant(7, 'Fern'))
  })
})

describe('--id-from next', () => {
  test.each(['', '--atomic', '--dry-run'])('is the greatest id of the store plus 1 %s', async (flag) => {
    const stdin = '{"name":"A"}\n{"id":3,"name":"B"}\n{"name":"C"}\n'
    await user.run('create --id 7 --name Z')
    const isDry = flag === '--dry-run'
    const err = `plants: Plants without an id ${isDry ? 'would get' : 'got'} 8 to 9\n`
    expect(await user.import(`--id-from next ${flag}`, stdin)).toMatchObject({ code: 0, created: 3, err })
    const all = [plant(3, 'B'), plant(7, 'Z'), plant(8, 'A'), plant(9, 'C')].join('')
    expect(await user.list()).toBe(isDry ? plant(7, 'Z') : all)
  })

  test('is 1 in a new store', async () => {
    expect((await user.import('--id-from next --atomic', '{"name":"A"}\n')).code).toBe(0)
    expect(await user.list()).toBe(plant(1, 'A'))
  })

  test('stays the same when the import is resumed, or begins again', async () => {
    user.write('plants', '{"name":"A"}\nx\n{"name":"B"}\n')
    const args = 'plants --id-from next --max-errors 1'
    await user.import(args)
    await user.run('create --id 9 --name Z')
    await user.import(`${args} --restart --if-exists same`)
    expect(await user.list()).toBe(plant(1, 'A') + plant(9, 'Z'))
    expect(await user.import(`${args} --if-exists same`)).toMatchObject({ created: 1, skipped: 1 })
    expect(await user.list()).toBe(plant(1, 'A') + plant(2, 'B') + plant(9, 'Z'))
  })

  test('is above all ids of the files, which keep theirs', async () => {
    user.write('plants.csv', 'id,name\n,A\n0007,B\n,C\n2,D\n')
    const { code, err } = await user.import('plants.csv --id-from next --if-exists skip')
    expect({ code, err }).toEqual({ code: 0, err: 'plants: Plants without an id got 8 to 9\n' })
    expect(await user.list()).toBe(plant(2, 'D') + plant(7, 'B') + plant(8, 'A') + plant(9, 'C'))
  })

  test('is none after the largest id', async () => {
    await user.run(`create --id ${largest} --name Z`)
    const message = `There is no id after ${largest}, which a plant has`
    const err = `plants: ${message}\n  Choose one with --id-from NUMBER\n`
    expect(await user.import('--id-from next', '{"name":"A"}\n')).toEqual({ code: 1, err })
  })
})
