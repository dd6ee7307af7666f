import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { buildRows, buildWorkbook } from '../../helpers/sandbox/workbook.js'

const list = join(import.meta.dirname, '../../data/lists/f07-genus-and-species.csv')
const mapOption = ['--map', 'name=Genus,name=Species']

test.each([
  ['a table', 'list.csv', readFileSync(list)],
  [
    'a workbook',
    'list.xlsx',
    buildWorkbook({
      sheets: {
        Plants: buildRows(['Genus', 'Species'], ['Rosa', 'alba'], ['Acer', 'palmatum']),
      },
    }),
  ],
  [
    'JSON',
    'list.json',
    '[{"Species":"alba","Genus":"Rosa"},{"Species":"palmatum","genus":"Acer"}]',
  ],
])('the columns or keys of %s are joined to the name', async (_, name, content) => {
  const user = new ImportSandbox()
  user.write(name, content)
  await user.import([name, ...mapOption, '--by-name'])
  expect(await user.list()).toBe('{"id":1,"name":"Rosa alba"}\n{"id":2,"name":"Acer palmatum"}\n')
})

test('a joined name leaves out what is empty, and rejects what is no text', async () => {
  const user = new ImportSandbox()
  const lines = [
    '{"id":1,"Genus":"Rosa","Species":null}',
    '{"id":2,"Genus":"","Species":"alba"}',
    '{"id":3,"Genus":"Acer"}',
    '{"id":4,"Genus":null,"Species":""}',
    '{"id":5,"Genus":"Acer","Species":7}',
  ]
  const { created, rejected, err } = await user.import(mapOption, lines.join('\n'))
  expect({ created, rejected }).toEqual({ created: 3, rejected: { 422: 2 } })
  expect(err).toContain('stdin:4: Invalid plant: the name is missing\n')
  expect(err).toContain('stdin:5: Invalid plant: the name must be a string, but was a number\n')
  user.write('errors.csv', 'id,Genus,Species\n6,Rosa,#N/A\n7,,\n8,Ilex,\n')
  const table = await user.import(['errors.csv', ...mapOption])
  expect(table).toMatchObject({ created: 1, rejected: { 422: 2 } })
  expect(table.err).toContain('errors.csv:2: Invalid plant: the name is the error value #N/A\n')
  expect(await user.list()).toBe(
    ['Rosa', 'alba', 'Acer']
      .map((name, index) => `{"id":${index + 1},"name":"${name}"}\n`)
      .concat('{"id":8,"name":"Ilex"}\n')
      .join(''),
  )
})

test('an update keeps a joined name of which a column is missing', async () => {
  const user = new ImportSandbox()
  await user.import('', '{"id":1,"name":"Rosa alba"}\n{"id":2,"name":"Acer rubrum"}')
  user.write('list.csv', 'id,tag,Genus,Species\n1,wet,Rosa\n2,dry,Acer,palmatum\n')
  const options = [...mapOption, '--if-exists', 'update']
  expect(await user.import(['list.csv', ...options])).toMatchObject({ updated: 2 })
  const lines = '{"id":2,"Genus":"Ilex","tag":"red"}\n{"id":3,"Genus":"Ilex","Species":"crenata"}'
  expect(await user.import(options, lines)).toMatchObject({ updated: 1, created: 1 })
  expect(await user.list()).toBe(
    '{"id":1,"name":"Rosa alba","tag":"wet"}\n{"id":2,"name":"Acer palmatum","tag":"red"}\n' +
      '{"id":3,"name":"Ilex crenata"}\n',
  )
})

test('an update from a table without a name changes only tags', async () => {
  const user = new ImportSandbox()
  await user.import('', '{"id":1,"name":"Rosa"}\n{"id":2,"name":"Acer","tag":"dry"}')
  user.write('tags.csv', 'id,tag\n1,wet\n2,\n')
  expect(await user.import('tags.csv --if-exists update')).toMatchObject({ updated: 2 })
  expect(await user.list()).toBe('{"id":1,"name":"Rosa","tag":"wet"}\n{"id":2,"name":"Acer"}\n')
})

test.each([
  ['name=Genus,name=genus', '--map names one column twice for the name'],
  ['name=Genus,name=1', 'One column of list.csv is named twice for the name'],
  ['id=Genus,id=Species', '--map names two columns for the id'],
  ['name=Genus,name=', '--map names two columns for the name'],
  ['name=Genus,name=Sort', 'list.csv has no column "Sort"'],
])('the option --map %s is an error', async (pairs, message) => {
  const user = new ImportSandbox()
  user.write('list.csv', readFileSync(list))
  const { code, err } = await user.import(['list.csv', '--map', pairs, '--by-name'])
  expect([code, err]).toEqual([2, expect.stringContaining(`plants: ${message}\n`)])
})
