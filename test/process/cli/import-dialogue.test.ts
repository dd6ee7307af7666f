import { execa } from 'execa'
import { expect, test } from 'vitest'
import { buildPlantLine, countPlants, nextChunk } from '../../helpers/sandbox/import-sandbox.js'
import { isInstalled } from '../../helpers/sandbox/linux.js'
import { bin, withoutCache } from '../../helpers/sandbox/process.js'
import { Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'
import { Screen } from '../../helpers/sandbox/screen.js'
import { openTerminal } from '../../helpers/sandbox/terminal.js'
import { buildRows, buildWorkbook } from '../../helpers/sandbox/workbook.js'
import { getStorePath, serve, testToken } from '../../helpers/scripted-server/service.js'

// The dialogue of an import, on a terminal. Its columns are guessed in
// unit/cli/import-dialogue.test.ts.

const enter = '\r'
const down = '\x1b[B'
const up = '\x1b[A'
const plain = { NO_COLOR: '1' }

const table = 'Nr.;Botanischer Name;Standort\n31;Süßkirsche;Südbeet\n32;Gänseblümchen;Böschung\n'
const columns: [string, string][] = [
  ['the id?', enter],
  ['the name?', enter],
  ['the tag?', enter],
]
const stored = toJsonResult(
  { id: 31, name: 'Süßkirsche', tag: 'Südbeet' },
  { id: 32, name: 'Gänseblümchen', tag: 'Böschung' },
)

function withFile(content: string | Uint8Array, name = 'list.csv'): Sandbox {
  const user = new Sandbox()
  user.write(name, content)
  return user
}

const latin1 = (text: string) => Buffer.from(text, 'latin1')

test('an import asks for the encoding and the columns, and stores what Enter proposes', async () => {
  const user = withFile(latin1(table))
  const session = user.terminal('import list.csv', plain)
  await session.answer(['Is that right?', enter], ...columns, ['Import 2 plants?', enter])
  const { code, screen } = await session.ended
  expect(code).toBe(0)
  expect(screen).toContain('list.csv is not UTF-8. Read as windows-1252, it begins:')
  expect(screen).toMatch(/ {2}Nr\. {2}Botanischer Name {2}Standort\s+31 {3}Süßkirsche {8}Südbeet/)
  expect(screen).toContain('Nr. (31, 32)')
  expect(await user.run('list')).toEqual(stored)
})

test('the command line that a dialogue prints does the same in each shell', async () => {
  const header = 'Nr. $1,It\'s \\ a "name",الفصيلة; x'
  const user = withFile(`"${header.replaceAll('"', '""').replaceAll(',', '","')}"\n7,Rosa,وردية\n`)
  const session = user.terminal(['import', 'list.csv', '--store', './a b.db'], plain)
  const choices: [string, string][] = [
    ['the id?', enter],
    ['the name?', enter],
    ['the tag?', up + enter],
  ]
  await session.answer(...choices, ['Import 1 plant', enter])
  const { code, screen } = await session.ended
  expect(code).toBe(0)
  const [, line = ''] = /questions:\r\n {2}plants (.*?)\r\n/.exec(screen) ?? []
  for (const shell of ['bash', 'fish', 'zsh'].filter(isInstalled)) {
    const other = withFile(user.read('list.csv'))
    const env = { ...other.env, PATH: process.env['PATH'] }
    await execa(shell, ['-c', `${bin} ${line}`], { cwd: other.home, env, extendEnv: false })
    const plants = await other.run(['list', '--store', './a b.db'])
    expect([shell, plants]).toEqual([shell, toJsonResult({ id: 7, name: 'Rosa', tag: 'وردية' })])
  }
})

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
    `${Array.from({ length: 20 }, (_, index) => `c${index}`).join()}\n7${',x'.repeat(18)},Rosa\n`,
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
  const user = withFile(content)
  const session = user.terminal('import list.csv', plain)
  await session.answer(...turns, ['Import ', enter])
  expect((await session.ended).code).toBe(0)
  expect(await user.run('list')).toEqual(toJsonResult(...plants))
})

test('an import of JSON that is no list of plants ends without a question', async () => {
  const user = withFile('{"categories":["a"],"plants":[{"id":1,"name":"Fern"}]}', 'list.json')
  const { code, screen } = await user.terminal('import list.json', plain).ended
  expect(code).toBe(2)
  expect(screen).toContain("with - instead of list.json: jq -c '.plants[]' list.json")
})

test('an import asks for the keys of JSON', async () => {
  const user = withFile('[{"nr":4,"latin":"Rosa","bed":"north"}]', 'list.json')
  const session = user.terminal('import list.json', plain)
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
  const user = withFile(buildWorkbook({ sheets }), 'stock.xlsx')
  const session = user.terminal('import stock.xlsx', plain)
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

test('a column without a name, or with one that is twice there, is named by its number', async () => {
  const user = withFile('Nr;Name;;Name\n31;x;north;Rosa\n')
  const session = user.terminal('import list.csv', plain)
  await session.answer(['the id?', enter], ['the name?', down + down + enter])
  await session.answer(['the tag?', up + enter], ['Import 1 plant?', enter])
  const { code, screen } = await session.ended
  expect([code, screen.includes("--map 'id=Nr,name=4,tag=3'")]).toEqual([0, true])
  expect(await user.run('list')).toEqual(toJsonResult({ id: 31, name: 'Rosa', tag: 'north' }))
})

test('only what was not typed is asked for', async () => {
  const user = withFile('Nr;Kind;Bed\n4;Rosa;north\n')
  const session = user.terminal(['import', 'list.csv', '--map', 'name=Kind'], plain)
  await session.answer(['the id?', enter], ['the tag?', up + enter], ['Import 1 plant?', enter])
  const { code, screen } = await session.ended
  expect([code, screen.includes("--map name=Kind --map 'id=Nr,tag=Bed'")]).toEqual([0, true])
  expect(await user.run('list')).toEqual(toJsonResult({ id: 4, name: 'Rosa', tag: 'north' }))
})

test('the dialogue fits into 40 columns', async () => {
  const user = withFile(latin1(table))
  const env = { ...withoutCache, ...user.env, ...plain }
  const session = openTerminal(bin, ['import', 'list.csv'], user.home, env, 40)
  await session.answer(['Is that right?', enter])
  await session.waitForText('the id?')
  await session.waitForText('⏎')
  expect(new Screen(40, session.screen).lines).toMatchInlineSnapshot(`
    [
      "list.csv is not UTF-8. Read as windows-1",
      "252, it begins:",
      "  Nr.  Botanischer Name  Standort",
      "  31   Süßkirsche        Südbeet",
      "  32   Gänseblümchen     Böschung",
      "✔ Is that right? Yes",
      "? Which column is the id?",
      "❯ Nr. (31, 32)",
      "  Botanischer Name (Süßkirsche, Gänse…",
      "  Standort (Südbeet, Böschung)",
      "  No id: generate ids",
      "  No id: find plants by name, or",
      "generate ids",
      "  The first row is a plant already",
      "",
      "↑↓ navigate • ⏎ select",
    ]
  `)
  session.type('\x03')
  expect((await session.ended).code).toBe(130)
})

test('an import into a service asks, too, and is resumed with the answers', async () => {
  const service = await serve()
  const rest = `${nextChunk}{"nr":7,"latin":"Malus"}\n`
  const user = withFile(`{"nr":4,"latin":"Rosa"}\n{"nr":"x","latin":"Moss"}\n${rest}`, 'a.ndjson')
  const command = ['import', 'a.ndjson', '--store', service.address]
  const env = { ...plain, PLANTS_TOKEN: testToken }
  const session = user.terminal([...command, '--max-errors', '1'], env)
  await session.answer(['the id?', enter], ['the name?', enter])
  await session.answer(['Import 2 plants into ', enter])
  expect((await session.ended).code).toBe(6)
  const { code, screen } = await user.terminal(command, env).ended
  expect([code, screen.includes('?')]).toEqual([6, false])
  expect(screen).toContain('Resuming an interrupted import after 2 plants')
  const { out } = await user.run(['list', '--store', getStorePath(service)])
  expect(out).toBe(`${buildPlantLine(4, 'Rosa')}${buildPlantLine(7, 'Malus')}`)
})

test.each<[string, [string, string][]]>([
  ['Escape', [['the id?', '\x1b']]],
  ['Ctrl-C', [['the id?', '\x03']]],
  ['Ctrl-D', [['the id?', '\x04']]],
  ['Escape at the last question', [...columns, ['Import 2 plants?', '\x1b']]],
  ['Stop', [...columns, ['Import 2 plants?', `${down}${down}${enter}`]]],
])('after %s, an import has stored nothing, and ends with exit code 130', async (_, turns) => {
  const user = withFile(table)
  const session = user.terminal('import list.csv', plain)
  await session.answer(...turns)
  expect((await session.ended).code).toBe(130)
  expect([user.has(user.store), countPlants(user.store)]).toEqual([false, 0])
})

test('an import shows what would happen, and then asks again', async () => {
  const user = withFile(`${table}1.234;Malus;\n`)
  const session = user.terminal('import list.csv', plain)
  await session.answer(...columns)
  await session.waitForText('1 plant will be rejected:')
  await session.waitForText('list.csv:4: Invalid plant: the id must be an integer')
  await session.answer(['Import 2 plants?', down + enter], ['Would create Süßkirsche', ''])
  await session.answer(['Import 2 plants?', enter])
  expect((await session.ended).code).toBe(6)
  expect(await user.run('list')).toEqual(stored)
})

test('a rejected record that a dialogue shows is not shown again by its import', async () => {
  const user = withFile(`${table}1.234;Malus;\nx;Acer;\n31;Tilia;\n`)
  const session = user.terminal('import list.csv', plain)
  await session.answer(...columns, ['Import 3 plants?', enter])
  const { code, screen } = await session.ended
  expect(code).toBe(6)
  expect(screen.match(/list\.csv:\d: /g)).toEqual(['list.csv:4: ', 'list.csv:5: ', 'list.csv:6: '])
  expect(screen).toContain('Rejected 3 plants')
})

test('an import in one transaction asks before it begins', async () => {
  const user = withFile(table)
  const session = user.terminal('import list.csv --atomic', plain)
  await session.answer(...columns)
  await session.waitForText('Import 2 plants?')
  expect(user.has(user.store)).toBe(false)
  session.type(enter)
  expect((await session.ended).code).toBe(0)
  expect(await user.run('list')).toEqual(stored)
})

test('a dry run asks no last question', async () => {
  const user = withFile(table)
  const session = user.terminal('import list.csv --dry-run', plain)
  await session.answer(...columns)
  const { code, screen } = await session.ended
  expect([code, screen.includes('Import 2 plants')]).toEqual([0, false])
})

test.each([
  ['list.csv', { CI: '1' }],
  ['list.csv', { PLANTS_NO_INPUT: '1' }],
  ['list.csv --no-input', {}],
  ['list.csv --map tag=Bed', {}],
  ['list.csv -', {}],
])('import %s asks nothing with %j: exit code 2', async (args, env) => {
  const user = withFile(table)
  const { code, screen } = await user.terminal(`import ${args}`, { ...plain, ...env }).ended
  expect([code, screen.includes('?')]).toEqual([2, false])
})

test.each([
  '{"count":1,"plants":[{"nr":1,"latin":"Rosa"}]}',
  '{"rose":{"nr":1},"sage":{"nr":2}}',
  '{"type":"FeatureCollection","features":[{"type":"Feature","properties":{"id":1}}]}',
  '{"type":"Feature","properties":{"nr":1}}\n{"type":"Feature","properties":{"nr":2}}\n',
])('no keys are asked for of JSON that is no list of plants: %s', async (text) => {
  const { code, screen } = await withFile(text, 'a.json').terminal('import a.json', plain).ended
  expect([code, screen.includes('Which key')]).toEqual([2, false])
})

test('nothing is asked where only the tag was not found', async () => {
  const user = withFile('id;name;Standort\n1;Rosa;Beet\n')
  expect((await user.terminal('import list.csv', plain).ended).code).toBe(0)
})

test('several files are asked about once, and must have the columns', async () => {
  const user = withFile(table)
  user.write('more.csv', table.replaceAll('3', '4'))
  const session = user.terminal('import list.csv more.csv', plain)
  await session.answer(...columns, ['Import 4 plants?', enter])
  expect((await session.ended).code).toBe(0)

  user.write('other.csv', 'a;b\n1;2\n')
  const failing = user.terminal('import list.csv other.csv --restart', plain)
  await failing.answer(...columns)
  const { code, screen } = await failing.ended
  expect([code, screen.includes('other.csv has no column')]).toEqual([2, true])
})

test('no encoding is asked for where one line of UTF-8 is damaged', async () => {
  const damaged = Buffer.concat([Buffer.from(table), latin1('33;Löwe;x\n')])
  const { code, screen } = await withFile(damaged).terminal('import list.csv', plain).ended
  expect([code, screen.includes('?'), screen.includes('Correct the lines that are not')]).toEqual([
    2,
    false,
    true,
  ])
})

test('another encoding is chosen by what a line reads in it', async () => {
  const user = withFile(Buffer.from('Nr;Name\n1;\xaf\xf3\xbfa', 'latin1'))
  const session = user.terminal('import list.csv', plain)
  await session.answer(['Is that right?', down + enter], ['Which encoding?', 'windows-1250'])
  await session.answer(['❯ windows-1250', enter], ['Read as windows-1250', ''], ['right?', enter])
  await session.answer(['the id?', enter], ['Import 1 plant?', enter])
  expect((await session.ended).code).toBe(0)
  expect(await user.run('list')).toEqual(toJsonResult({ id: 1, name: 'Żóża' }))
})

test('an encoding is found by the name of its language', async () => {
  const user = withFile(Buffer.from('Nr;Name\n1;\xbd\x9d\xa2\x88ta', 'latin1'))
  const session = user.terminal('import list.csv', plain)
  await session.answer(['Is that right?', down + enter], ['Which encoding?', 'polish'])
  await session.answer(['cp852 (Central Europe, DOS): 1;ŻŁółta', '\x1b'])
  const { code, screen } = await session.ended
  expect([code, screen.includes('()')]).toEqual([130, false])
})

test('an encoding is not used for a file that is UTF-8', async () => {
  const user = withFile(latin1(table))
  user.write('more.csv', table)
  const session = user.terminal('import list.csv more.csv', plain)
  await session.answer(['Is that right?', enter])
  const { code, screen } = await session.ended
  expect([code, screen.includes('more.csv is UTF-8, and list.csv is not')]).toEqual([2, true])
})

test('an interrupted import is resumed with its answers', async () => {
  const big = '9007199254740993'
  const first = `{"nr":${big},"latin":"Rosa"}\n{"nr":"x","latin":"Moss"}\n`
  const user = withFile(`${first}${nextChunk}{"nr":7,"latin":"Malus"}\n`, 'list.ndjson')
  const session = user.terminal('import list.ndjson --max-errors 1', plain)
  await session.answer(['the id?', enter], ['the name?', enter], ['Import 2 plants?', enter])
  const interrupted = await session.ended
  expect([interrupted.code, interrupted.screen.includes(`nr (${big}, x, 7)`)]).toEqual([6, true])
  const { code, screen } = await user.terminal('import list.ndjson', plain).ended
  expect([code, screen.includes('?')]).toEqual([6, false])
  expect(screen).toContain('continues with the answers that you gave before')
  expect(screen).toContain('Resuming an interrupted import after 2 plants')
  expect((await user.run('list')).out).toBe(
    `${buildPlantLine(7, 'Malus')}${buildPlantLine(big, 'Rosa')}`,
  )
})

test('an interrupted import of a file that has changed since is rejected', async () => {
  const rest = `${nextChunk}{"nr":7,"latin":"Malus"}\n`
  const user = withFile(`{"nr":"x","latin":"Rosa"}\n${rest}`, 'list.ndjson')
  const session = user.terminal('import list.ndjson --max-errors 1', plain)
  await session.answer(['the id?', enter], ['the name?', enter], ['Import 1 plant?', enter])
  await session.ended
  user.write('list.ndjson', `{"nr":4,"latin":"Rosa"}\n${rest}`)
  const { code, screen } = await user.terminal('import list.ndjson', plain).ended
  expect([code, screen.includes('changed since')]).toEqual([2, true])
})

test('options that were typed are not taken from an interrupted import', async () => {
  const farRow = `${'\n'.repeat(1_000_000)}7;Malus\n` // in another chunk
  const rows = `Nr;Art\n1;Rosé\nx;Moss\n${farRow}`
  const user = withFile(latin1(rows))
  const typed = 'import list.csv --encoding windows-1252'
  const session = user.terminal(`${typed} --max-errors 1`, plain)
  await session.answer(['the id?', enter], ['the name?', enter], ['Import 2 plants?', enter])
  expect((await session.ended).code).toBe(6)
  const without = await user.terminal('import list.csv', plain).ended
  expect([without.code, without.screen.includes('not UTF-8')]).toEqual([2, true])
  expect((await user.terminal(typed, plain).ended).code).toBe(6)
  expect((await user.run('count')).out).toBe('2\n')
})

test('a finished import that has generated ids is found before anything is asked', async () => {
  const user = withFile('Common name,Family\nRosa,Rosaceae\n')
  const session = user.terminal('import list.csv', plain)
  await session.answer(['the id?', enter], ['the name?', enter], ['the tag?', enter])
  await session.answer(['Import 1 plant?', enter])
  expect((await session.ended).code).toBe(0)
  const { code, screen } = await user.terminal('import list.csv', plain).ended
  expect([code, screen.includes('?')]).toEqual([2, false])
  expect(screen).toContain('The same input was imported before')
})
