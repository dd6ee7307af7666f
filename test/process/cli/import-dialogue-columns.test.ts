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
      ['the id?', enter],
      ['The first row is a plant already', ''],
      ['the id?', enter],
      ['the name?', down + enter],
      ['the tag?', up + enter],
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
      ['the id?', enter],
      ['the name?', enter],
      ['the tag?', down + enter],
    ],
    [
      { id: 1, name: 'Rosa' },
      { id: 2, name: 'Salvia' },
    ],
  ],
  [
    'by the letters of a choice',
    'Nr,Latin,Deutsch\n4,Rosa,Rose\n',
    [
      ['the id?', enter],
      ['the name?', `deu${enter}`],
      ['the tag?', `no tag${enter}`],
    ],
    [{ id: 4, name: 'Rose' }],
  ],
  [
    'of many columns, filtered by what is typed',
    `${Array.from({ length: 20 }, (_, index) => (index === 0 ? 'Nr' : `c${index}`)).join()}\n7${',x'.repeat(18)},Rosa\n`,
    [
      ['the id?', enter],
      ['the name?', `c19`],
      ['c19 (Rosa)', enter],
      ['the tag?', enter],
    ],
    [{ id: 7, name: 'Rosa' }],
  ],
  [
    'from one paste',
    'Nr,Latin,Bed\n4,Rosa,north\n',
    [['the id?', '\r\r\r']],
    [{ id: 4, name: 'Rosa', tag: 'north' }],
  ],
])('an import asks for the columns %s', async (_, content, turns, plants) => {
  const user = createSandboxWithFile(content)
  const session = user.terminal('import list.csv', noColor)
  await session.answer(...turns, ['Import ', enter])
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
  await session.answer(['Which key is the id?', enter], ['the name?', enter], ['the tag?', enter])
  await session.answer(['Import 1 plant?', enter])
  expect((await session.ended).code).toBe(0)
  expect(await user.run('list')).toEqual(toJsonResult({ id: 4, name: 'Rosa', tag: 'north' }))
})

test('an import asks for the sheet of a workbook, and then for its columns', async () => {
  const sheets = {
    Notes: buildRows(['Read me']),
    Stock: buildRows(['Nr', 'Kind', 'Bed'], ['4', 'Rosa', 'north']),
    Prices: buildRows(['Nr', 'Price', 'Year', 'Month'], ['4', '10', '2026', '3']),
  }
  const user = createSandboxWithFile(buildWorkbook({ sheets }), 'stock.xlsx')
  const session = user.terminal('import stock.xlsx', noColor)
  await session.answer(['Which sheet has the plants?', `Stock${enter}`])
  await session.answer(['the id?', enter], ['the name?', enter], ['the tag?', up + enter])
  await session.answer(['Import 1 plant?', enter])
  const { code, screen } = await session.ended
  expect([code, screen.includes("--sheet Stock --map 'id=Nr,name=Kind,tag=Bed'")]).toEqual([
    0,
    true,
  ])
  expect(await user.run('list')).toEqual(toJsonResult({ id: 4, name: 'Rosa', tag: 'north' }))
})

test('an import that asks for columns asks for the sheet first if several have rows', async () => {
  const sheets = {
    Twice: buildRows(['id', 'name', 'name'], ['1', 'Rosa', 'Rose']),
    Empty: '',
    Stock: buildRows(['id', 'name'], ['4', 'Salvia']),
  }
  const user = createSandboxWithFile(buildWorkbook({ sheets }), 'stock.xlsx')
  const session = user.terminal('import stock.xlsx', noColor)
  await session.answer(['Which sheet has the plants?', down + enter], ['Import 1 plant?', enter])
  const { code, screen } = await session.ended
  expect([code, screen.includes('plants import stock.xlsx --sheet Stock')]).toEqual([0, true])
  expect(screen).not.toContain('Empty')
  expect(await user.run('list')).toEqual(toJsonResult({ id: 4, name: 'Salvia' }))
})

test('a dialogue names a column by its number if its name is empty, or occurs twice', async () => {
  const user = createSandboxWithFile('Nr;Name;;Name\n31;x;north;Rosa\n')
  const session = user.terminal('import list.csv', noColor)
  await session.answer(['the id?', enter], ['the name?', down + down + enter])
  await session.answer(['the tag?', up + enter], ['Import 1 plant?', enter])
  const { code, screen } = await session.ended
  expect([code, screen.includes("--map 'id=Nr,name=4,tag=3'")]).toEqual([0, true])
  expect(await user.run('list')).toEqual(toJsonResult({ id: 31, name: 'Rosa', tag: 'north' }))
})

test('an import asks only for what its command line does not say', async () => {
  const user = createSandboxWithFile('Nr;Kind;Bed\n4;Rosa;north\n')
  const session = user.terminal(['import', 'list.csv', '--map', 'name=Kind'], noColor)
  await session.answer(['the id?', enter], ['the tag?', up + enter], ['Import 1 plant?', enter])
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

test('an import asks nothing if only the tag was not found', async () => {
  const user = createSandboxWithFile('id;name;Standort\n1;Rosa;Beet\n')
  expect((await user.terminal('import list.csv', noColor).ended).code).toBe(0)
})
