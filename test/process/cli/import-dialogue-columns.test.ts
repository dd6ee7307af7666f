import { expect, test } from 'vitest'
import { toJsonResult } from '../../helpers/sandbox/sandbox.js'
import { buildRows, buildWorkbook } from '../../helpers/sandbox/workbook.js'
import { createSandboxWithFile, down, enter, noColor, up } from './import-dialogue-steps.js'

// The dialogue of an import asks for the columns, the keys or the sheet. Its columns are guessed in
// unit/cli/import-dialogue.test.ts.

test.each<[what: string, content: string, turns: [string, string][], plants: object[]]>([
  [
    'of a table without a header, whose first row is a plant',
    '31;x;Rosa;;Bed\n32;y;Salvia;;\n',
    [
      ['the name?', enter],
      ['The first row is already a plant', ''],
      ['the name?', down + enter],
      ['the id?', enter],
      ['the tag?', down.repeat(3) + enter],
    ],
    [
      { id: 31, name: 'Rosa', tag: 'Bed' },
      { id: 32, name: 'Salvia' },
    ],
  ],
  [
    'of a table without ids, which are generated',
    'Common name,Family\nRosa,Rosaceae\nSalvia,Lamiaceae\n',
    [
      ['the name?', enter],
      ['the id?', enter],
      ['the tag?', up + enter],
    ],
    [
      { id: 1, name: 'Rosa' },
      { id: 2, name: 'Salvia' },
    ],
  ],
  [
    'of a list of names, whose first row is not lost',
    'Fern\nMoss\nIvy\n',
    [
      ['the name?', enter],
      ['the id?', enter],
    ],
    [
      { id: 1, name: 'Fern' },
      { id: 2, name: 'Moss' },
      { id: 3, name: 'Ivy' },
    ],
  ],
  [
    'of a name in two columns',
    'Genus,Species,Cultivar,Family\nRosa,alba,Maxima,Rosaceae\nAcer,palmatum,,Sapindaceae\n',
    [
      ['the name?', enter],
      ['the rest of the name?', enter],
      ['the id?', enter],
      ['the tag?', enter],
    ],
    [
      { id: 1, name: 'Rosa alba', tag: 'Rosaceae' },
      { id: 2, name: 'Acer palmatum', tag: 'Sapindaceae' },
    ],
  ],
  [
    'of a genus without a rest of the name',
    'Genus,Bed\nRosa,North\n',
    [
      ['the name?', enter],
      ['the rest of the name?', enter],
      ['the id?', enter],
      ['the tag?', enter],
    ],
    [{ id: 1, name: 'Rosa', tag: 'North' }],
  ],
  [
    'by the letters of a choice',
    'Nr,Latin,Deutsch\n4,Rosa,Rose\n',
    [
      ['the name?', `deu${enter}`],
      ['the id?', enter],
      ['the tag?', `no tag${enter}`],
    ],
    [{ id: 4, name: 'Rose' }],
  ],
  [
    'of many columns, among which the first letters of one select it',
    `${Array.from({ length: 20 }, (_, index) => (index === 0 ? 'Nr' : `c${index}`)).join()}\n7${',x'.repeat(18)},Rosa\n`,
    [
      ['the name?', `c19`],
      ['c19 (Rosa)', enter],
      ['the id?', enter],
      ['the tag?', enter],
    ],
    [{ id: 7, name: 'Rosa' }],
  ],
  [
    'from one paste',
    'Nr,Latin,Bed\n4,Rosa,north\n',
    [['the name?', '\r\r\r']],
    [{ id: 4, name: 'Rosa', tag: 'north' }],
  ],
])('an import asks for the columns %s', async (_, content, turns, plants) => {
  const user = createSandboxWithFile(content)
  const session = user.terminal('import list.csv', noColor)
  await session.answer(...turns, ['Import ', enter])
  expect((await session.ended).code).toBe(0)
  expect(await user.run('list')).toEqual(toJsonResult(...plants))
})

test.each<[what: string, content: string, questions: string[], plants: object[]]>([
  [
    'a table without a header, whose quantities are no ids',
    'Fern,shade,12\nMoss,shade,4\n',
    ['the name?', 'the name?', 'the id?', 'the tag?'],
    [
      { id: 1, name: 'Fern', tag: 'shade' },
      { id: 2, name: 'Moss', tag: 'shade' },
    ],
  ],
  [
    'a table without a header, but with decimal numbers',
    'Red Maple,Acer rubrum,40.5125,-75.7820\nOak,Quercus robur,40.5126,-75.7821\n',
    ['the name?', 'the name?', 'the id?', 'the tag?'],
    [
      { id: 1, name: 'Red Maple', tag: 'Acer rubrum' },
      { id: 2, name: 'Oak', tag: 'Quercus robur' },
    ],
  ],
  [
    'genera and species without a header',
    '7,Acer,rubrum,Sapindaceae\n8,Quercus,robur,Fagaceae\n',
    ['the name?', 'the name?', 'the rest of the name?', 'the id?', 'the tag?'],
    [
      { id: 7, name: 'Acer rubrum', tag: 'Sapindaceae' },
      { id: 8, name: 'Quercus robur', tag: 'Fagaceae' },
    ],
  ],
  [
    'a table with a column of numbers that is called a bed',
    'Nr,Name,Height,Bed\n4,Fern,1,7\n',
    ['the id?', 'the tag?'],
    [{ id: 4, name: 'Fern', tag: '7' }],
  ],
])('Enter at each question is right for %s', async (_, content, questions, plants) => {
  const user = createSandboxWithFile(content)
  const session = user.terminal('import list.csv', noColor)
  for (const question of [...questions, 'Import ']) await session.answer([question, enter])
  expect((await session.ended).code).toBe(0)
  expect(await user.run('list')).toEqual(toJsonResult(...plants))
})

test('an import of JSON that is no list of plants ends without a question', async () => {
  const user = createSandboxWithFile(
    '{"categories":["a"],"plants":[{"id":1,"name":"Fern"}]}',
    'list.json',
  )
  const { code, screen } = await user.terminal('import list.json', noColor).ended
  expect(code).toBe(2)
  expect(screen).toContain('Add --key with one of these keys')
})

test('an import asks which keys of JSON are the id, the name and the tag', async () => {
  const user = createSandboxWithFile('[{"nr":4,"latin":"Rosa","bed":"north"}]', 'list.json')
  const session = user.terminal('import list.json', noColor)
  await session.answer(['Which key is the name?', enter], ['the id?', enter], ['the tag?', enter])
  await session.answer(['Import 1 plant?', enter])
  expect((await session.ended).code).toBe(0)
  expect(await user.run('list')).toEqual(toJsonResult({ id: 4, name: 'Rosa', tag: 'north' }))
})

test('an import asks for the sheet of a workbook, and then for its columns', async () => {
  const sheets = {
    Notes: buildRows(['Read me']),
    Empty: '',
    Stock: buildRows(['Nr', 'Kind', 'Bed'], ['4', 'Rosa', 'north']),
    Prices: buildRows(['Nr', 'Price', 'Year', 'Month'], ['4', '10', '2026', '3']),
  }
  const user = createSandboxWithFile(buildWorkbook({ sheets }), 'stock.xlsx')
  const session = user.terminal('import stock.xlsx', noColor)
  await session.answer(['Which sheet has the plants?', `Stock${enter}`])
  await session.answer(['the name?', enter], ['the id?', enter], ['the tag?', enter])
  await session.answer(['Import 1 plant?', enter])
  const { code, screen } = await session.ended
  const command = "--sheet Stock --map 'id=Nr,name=Kind,tag=Bed'"
  expect([code, screen.includes(command), screen.includes('Empty')]).toEqual([0, true, false])
  expect(await user.run('list')).toEqual(toJsonResult({ id: 4, name: 'Rosa', tag: 'north' }))
})

test('an import asks for no sheet if one has the columns, also if a column occurs twice', async () => {
  const sheets = {
    Twice: buildRows(['id', 'name', 'name'], ['1', 'Rosa', 'Rose']),
    Stock: buildRows(['id', 'name'], ['4', 'Salvia']),
  }
  const user = createSandboxWithFile(buildWorkbook({ sheets }), 'stock.xlsx')
  const session = user.terminal('import stock.xlsx', noColor)
  await session.answer(['the name?', down + enter], ['the tag?', `no tag${enter}`])
  await session.answer(['Import 1 plant?', enter])
  const { code, screen } = await session.ended
  expect([code, screen.includes('plants import stock.xlsx --map name=3')]).toEqual([0, true])
  expect(await user.run('list')).toEqual(toJsonResult({ id: 1, name: 'Rose' }))
})

test('a dialogue names a column by its number if its name is empty, or occurs twice', async () => {
  const user = createSandboxWithFile('Nr;Name;;Name\n31;x;north;Rosa\n')
  const session = user.terminal('import list.csv', noColor)
  await session.answer(['the name?', down + down + enter], ['the id?', enter])
  await session.answer(['the tag?', down + down + enter], ['Import 1 plant?', enter])
  const { code, screen } = await session.ended
  expect([code, screen.includes("--map 'id=Nr,name=4,tag=3'")]).toEqual([0, true])
  expect(await user.run('list')).toEqual(toJsonResult({ id: 31, name: 'Rosa', tag: 'north' }))
})

const week = 'Plant,Bed\nFern,1\nMoss,2\n'

test('a dialogue proposes that a list without integers has no ids', async () => {
  const user = createSandboxWithFile(week)
  const session = user.terminal('import list.csv', noColor)
  await session.answer(['the name?', enter], ['❯ My list has no ids', enter])
  await session.answer(['the tag?', enter], ['Import 2 plants?', enter])
  expect((await session.ended).code).toBe(0)
})

test('a dialogue imports the plants of a list without ids that are not stored', async () => {
  const user = createSandboxWithFile(`${week}Ivy,3\n`)
  await user.run('create --id 7 --name Fern')
  await user.run('create --id 8 --name Moss')
  const session = user.terminal('import list.csv', noColor)
  await session.answer(['the name?', enter], ['❯ My list has no ids', enter])
  await session.answer(['the tag?', `no tag${enter}`])
  await session.answer(['Import 1 of 3 plants (1 new)?', enter])
  expect((await session.ended).code).toBe(0)
  expect(await user.run('get 9')).toEqual(toJsonResult({ id: 9, name: 'Ivy' }))
})

test('a dialogue proposes neither first names nor codes that no id can be', async () => {
  const user = createSandboxWithFile('Code,First name,Donated plant\nA-1,Ada,Rosa alba\n')
  const session = user.terminal('import list.csv', noColor)
  await session.answer(['❯ Donated plant', enter], ['❯ My list has no ids', enter])
  await session.answer(['❯ No tag', enter], ['Import 1 plant?', enter])
  expect((await session.ended).code).toBe(0)
  expect(await user.run('list')).toEqual(toJsonResult({ id: 1, name: 'Rosa alba' }))
})

test.each([
  { name: 'list.csv', what: 'codes', content: 'id,name,Bed\nFLO-0012,Rosa,north\n12.3,Salvia,\n' },
  { name: 'list.csv', what: 'empty cells', content: 'ID,name,Bed\n,Rosa,north\n,Salvia,\n' },
  {
    name: 'list.json',
    what: 'codes',
    content: '[{"id":"A-1","name":"Rosa","Bed":"north"},{"id":1.5,"name":"Salvia"}]',
  },
  {
    name: 'list.ndjson',
    what: 'null',
    content: '{"id":"A-1","name":"Rosa","Bed":"north"}\n{"id":null,"name":"Salvia"}\n',
  },
  {
    name: 'list.xlsx',
    what: 'codes and another sheet',
    content: buildWorkbook({
      sheets: {
        Plants: buildRows(['id', 'name', 'Bed'], ['A-1', 'Rosa', 'north'], ['A-2', 'Salvia', '']),
        Notes: buildRows(['Read', 'me']),
      },
    }),
  },
])(
  'an import of $name asks for the id if its "id" has no integers, as with $what',
  async ({ name, content }) => {
    const user = createSandboxWithFile(content, name)
    const session = user.terminal(`import ${name}`, noColor)
    await session.answer(['❯ My list has no ids', enter])
    await session.answer(['the tag?', `Bed${enter}`], ['Import 2 plants?', enter])
    const { code, screen } = await session.ended
    const command = `plants import ${name} --map 'id=,tag=Bed' --by-name`
    expect([code, screen.includes(command), screen.includes('sheet')]).toEqual([0, true, false])
    expect(await user.run('list')).toEqual(
      toJsonResult({ id: 1, name: 'Rosa', tag: 'north' }, { id: 2, name: 'Salvia' }),
    )
    const repeated = await user.run(['import', name, '--map', 'id=,tag=Bed', '--by-name'])
    expect(repeated.out).toContain('"skipped":2')
  },
)

test.each([
  { what: 'a typed --map', args: 'list --map id=id', content: 'id,name\nA-1,Rosa\n' },
  { what: 'one id that is an integer', args: 'list', content: 'id,name\nA-1,Rosa\n7,Salvia\n' },
  { what: 'ids in quotes', args: 'list', content: '{"id":"1","name":"Rosa"}\n' },
  { what: 'lines that are not JSON', args: 'list --format ndjson', content: '{"id":1,\n' },
  { what: 'names for the columns', args: 'list --columns id,name', content: 'A-1,Rosa\n' },
])('an import with $what does not ask for the id', async ({ args, content }) => {
  const user = createSandboxWithFile(content, 'list')
  const { code, screen } = await user.terminal(`import ${args}`, noColor).ended
  expect([code, screen.includes('Which')]).toEqual([6, false])
})

test('a dialogue does not propose a column of codes as the tag', async () => {
  const user = createSandboxWithFile('id,name\nA-1,Rosa\n')
  const session = user.terminal('import list.csv', noColor)
  await session.answer(['❯ My list has no ids', enter], ['❯ No tag', down + enter])
  await session.answer(['Import 1 plant?', enter])
  expect((await session.ended).screen).toContain("--map 'id=,tag=id' --by-name")
  expect(await user.run('list')).toEqual(toJsonResult({ id: 1, name: 'Rosa', tag: 'A-1' }))
})

test('an import asks only for what its command line does not say', async () => {
  const user = createSandboxWithFile('Nr;Kind;Bed\n4;Rosa;north\n')
  const session = user.terminal(['import', 'list.csv', '--map', 'name=Kind'], noColor)
  await session.answer(['the id?', enter], ['the tag?', enter], ['Import 1 plant?', enter])
  const { code, screen } = await session.ended
  expect([code, screen.includes("--map name=Kind --map 'id=Nr,tag=Bed'")]).toEqual([0, true])
  expect(await user.run('list')).toEqual(toJsonResult({ id: 4, name: 'Rosa', tag: 'north' }))
})

test.each(['{"count":1,"plants":[{"nr":1,"latin":"Rosa"}]}', '{"rose":{"nr":1},"sage":{"nr":2}}'])(
  'an import does not ask for the keys of JSON that is no list of plants: %s',
  async (text) => {
    const { code, screen } = await createSandboxWithFile(text, 'a.json').terminal(
      'import a.json',
      noColor,
    ).ended
    expect([code, screen.includes('Which key')]).toEqual([2, false])
  },
)

test.each([
  { name: 'list.json', content: '[{"id":1},{"id":2}]' },
  { name: 'list.csv', content: 'id\n1\n2\n' },
])('an import of $name asks nothing if no column is left for the name', async (example) => {
  const user = createSandboxWithFile(example.content, example.name)
  const { code, screen } = await user.terminal(`import ${example.name}`, noColor).ended
  expect([code, screen.includes('Which')]).toEqual([2, false])
})

test('a dialogue does not offer that a header with the name of a field is a plant', async () => {
  const user = createSandboxWithFile('id,Plant,Kind\n1,Fern,x\n')
  const session = user.terminal('import list.csv', noColor)
  await session.answer(['the name?', ''], ['⏎', '\x1b'])
  expect((await session.ended).screen).not.toContain('The first row')
})

test('an import asks nothing if only the tag was not found', async () => {
  const user = createSandboxWithFile('id;name;Standort\n1;Rosa;Beet\n')
  expect((await user.terminal('import list.csv', noColor).ended).code).toBe(0)
})
