import { expect, test } from 'vitest'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'

test('an import matches keys as it matches names of a header, and an exact key comes first', async () => {
  const user = new ImportSandbox()
  const lines = [
    '{"ID":9007199254740993,"Name":"Fern","TAG":"wet"}',
    '{"id":2,"ID":7,"Náme":"Moss"}',
    '{"Id":3,"iD":4,"name":"Ivy"}',
  ]
  const { code, created, rejected, err } = await user.import('', lines.join('\n'))
  expect({ code, created, rejected }).toEqual({ code: 6, created: 2, rejected: { 400: 1 } })
  expect(err).toContain('stdin:3: Several keys could be the id: "Id", "iD"')
  expect(err).toContain('ignored field "ID"')
  const plants = await user.list()
  expect(plants).toContain('{"id":9007199254740993,"name":"Fern","tag":"wet"}')
  expect(plants).toContain('{"id":2,"name":"Moss"}')
  const mapped = await user.import(
    ['--map', 'id=nr,name=common  name'],
    '{"NR":9007199254740995,"Common name":"Oak","name":"Quercus"}',
  )
  expect(mapped).toMatchObject({ created: 1, err: '' })
  expect(await user.list()).toContain('{"id":9007199254740995,"name":"Oak"}')
})

test('an exact key comes first, before several keys that match it', async () => {
  const user = new ImportSandbox()
  const result = await user.import('', '{"id":5,"ID":7,"Id":8,"name":"Oak"}')
  expect(result).toMatchObject({ code: 0, created: 1 })
  expect(await user.list()).toBe('{"id":5,"name":"Oak"}\n')
})

test('an import does not read a key that --map leaves out or replaces', async () => {
  const user = new ImportSandbox()
  const record = '{"id":7,"name":"Fern","tag":"wet","Kind":"Moss"}'
  const { out } = await user.run(['import', '--map', 'id=,tag=,name=kind', '--by-name'], {
    stdin: record,
  })
  expect(out).toContain('"created":1')
  expect(await user.list()).toBe('{"id":1,"name":"Moss"}\n')
  const { rejected } = await user.import('--map name=kind', `${record}\n{"id":8,"name":"Ivy"}`)
  expect(rejected).toEqual({ 422: 1 })
})

test('a create accepts exact keys only', async () => {
  const user = new ImportSandbox()
  const { code, err } = await user.run(['create'], { stdin: '{"ID":1,"name":"Fern"}' })
  expect(code).toBe(2)
  expect(err).toContain('the id is missing')
})

test('an import warns of the key of a record without a name', async () => {
  const records = '{"id":1,"name":"Fern"}\n{"id":2,"nmae":"Fern","":2}\n'
  const { err } = await new ImportSandbox().import('', records)
  expect(err).toContain('stdin:2: Invalid plant: the name is missing\n')
  expect(err).toContain('"nmae"')
})
