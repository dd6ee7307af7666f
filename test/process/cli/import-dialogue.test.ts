import { execa } from 'execa'
import { expect, test } from 'vitest'
import { countPlants } from '../../helpers/sandbox/import-sandbox.js'
import { bin, withoutCache } from '../../helpers/sandbox/process.js'
import { isInstalled } from '../../helpers/sandbox/programs.js'
import { toJsonResult } from '../../helpers/sandbox/sandbox.js'
import { Screen } from '../../helpers/sandbox/screen.js'
import { openTerminal } from '../../helpers/sandbox/terminal.js'
import { buildRows, buildSheetWorkbook } from '../../helpers/sandbox/workbook.js'
import {
  columns,
  createSandboxWithFile,
  down,
  enter,
  latin1,
  noColor,
  storedPlants,
  table,
  up,
} from './import-dialogue-steps.js'

// The dialogue of an import, on a terminal.

/** The answers if a row has no integer in the column of the ids, which is then not proposed. */
const columnsByHand: typeof columns = columns.map(([question, key]) =>
  question === 'the id?' ? [question, `${up.repeat(2)}${key}`] : [question, key],
)

test.for(['bash', 'fish', 'zsh'])(
  'the command line that a dialogue prints does the same in %s (needs it)',
  async (shell, { skip }) => {
    skip(!isInstalled(shell))
    const header = 'Nr. $1,It\'s \\ a "name",الفصيلة; x'
    const user = createSandboxWithFile(
      `"${header.replaceAll('"', '""').replaceAll(',', '","')}"\n7,Rosa,وردية\n`,
    )
    const session = user.terminal(['import', 'list.csv', '--store', './a b.db'], noColor)
    await session.answer(...columns, ['Import 1 plant', enter])
    const { code, screen } = await session.ended
    expect(code).toBe(0)
    const [, line = ''] = /questions:\r\n {2}plants (.*?)\r\n/.exec(screen) ?? []
    const other = createSandboxWithFile(user.read('list.csv'))
    const env = { ...other.env, PATH: process.env['PATH'] }
    await execa(shell, ['-c', `${bin} ${line}`], { cwd: other.home, env, extendEnv: false })
    const plants = await other.run(['list', '--store', './a b.db'])
    expect(plants).toEqual(toJsonResult({ id: 7, name: 'Rosa', tag: 'وردية' }))
  },
)

test('the dialogue of an import fits into 40 columns', async () => {
  const user = createSandboxWithFile(latin1(table))
  const env = { ...withoutCache, ...user.env, ...noColor }
  const session = openTerminal(bin, ['import', 'list.csv'], user.home, env, { columns: 40 })
  await session.answer(['Is that right?', enter], ['the name?', enter])
  await session.waitForText('the id?')
  await session.waitForText('⏎')
  expect(new Screen(40, session.screen).lines).toMatchInlineSnapshot(`
    [
      "list.csv is not UTF-8. Read as windows-1",
      "252, it begins:",
      "  Nr.  Botanischer Name  Standort",
      "  31  Süßkirsche  Südbeet",
      "  32  Gänseblümchen  Böschung",
      "✔ Is that right? Yes",
      "✔ Which column is the name? Botanischer",
      "Name",
      "? Which column is the id?",
      "❯ Nr. (31, 32)",
      "  My list has no ids",
      "",
      "↑↓ navigate • ⏎ select",
    ]
  `)
  session.type('\x03')
  expect((await session.ended).code).toBe(130)
})

test('a list of choices leaves room for its question on a terminal of 12 lines', async () => {
  const names = Array.from({ length: 21 }, (_, index) => `c${index}`)
  const user = createSandboxWithFile(`${names.join()}\n${names.join()}\n`)
  const env = { ...withoutCache, ...user.env, ...noColor }
  const size = { columns: 40, rows: 12 }
  const session = openTerminal(bin, ['import', 'list.csv'], user.home, env, size)
  await session.answer(['the name?', down], ['⏎ select', down], ['⏎ select', ''])
  const { lines } = new Screen(40, session.screen)
  expect(lines.filter((line) => line.includes('the name?'))).toHaveLength(1)
  expect(lines.length).toBeLessThanOrEqual(12)
  session.type('\x03')
  expect((await session.ended).code).toBe(130)
})

test.each<[string, [string, string][]]>([
  ['Escape', [['the name?', '\x1b']]],
  ['Ctrl-C', [['the name?', '\x03']]],
  ['Ctrl-D', [['the name?', '\x04']]],
  ['Escape at the last question', [...columns, ['Import 2 plants?', '\x1b']]],
  ['No', [...columns, ['Import 2 plants?', `${down}${enter}`]]],
  ['a typed no', [...columns, ['Import 2 plants?', `no${enter}`]]],
])('after %s, an import has stored nothing, and ends with exit code 130', async (_, turns) => {
  const user = createSandboxWithFile(table)
  const session = user.terminal('import list.csv', noColor)
  await session.answer(...turns)
  expect((await session.ended).code).toBe(130)
  expect([user.has(user.store), countPlants(user.store)]).toEqual([false, 0])
})

test('a dialogue shows what an import would do, and then asks', async () => {
  const user = createSandboxWithFile(`${table}1.234;Malus;\n`)
  const session = user.terminal('import list.csv', noColor)
  await session.answer(...columnsByHand)
  await session.waitForText('list.csv:4: Invalid plant: the id ')
  await session.answer(['Would create Süßkirsche', ''])
  await session.answer(['Import 2 of 3 plants (2 new; 1 rejected: the id ', enter])
  expect((await session.ended).code).toBe(6)
  expect(await user.run('list')).toEqual(storedPlants)
})

test('the last question counts what the store would accept, and rejects an id that occurs twice', async () => {
  const user = createSandboxWithFile('No,Plant\n1,Rosa alba\n1,Acer\n2,Salix\n')
  const session = user.terminal(['import', 'list.csv', '--map', 'id=No'], noColor)
  await session.answer(['the name?', enter], ['The id 1 also occurs in line 2', ''])
  await session.answer(['Import 2 of 3 plants (2 new; 1 rejected: The id 1 also', enter])
  const { code, screen } = await session.ended
  expect([code, screen.match(/list.csv:3: The id 1 also occurs/g)?.length]).toEqual([6, 1])
})

test('a dialogue asks no last question if there is nothing to import', async () => {
  const user = createSandboxWithFile(table)
  const first = user.terminal('import list.csv', noColor)
  await first.answer(...columns, ['Import 2 plants?', enter])
  await first.ended
  const session = user.terminal('import list.csv', noColor)
  await session.answer(...columns)
  const { code, screen } = await session.ended
  expect([code, screen.includes('Import ')]).toEqual([0, false])
  expect(screen).toContain('Read 2 plants: 0 created, 2 skipped')
})

test('an import does not show a rejected record again that its dialogue has shown', async () => {
  const user = createSandboxWithFile(`${table}1.234;Malus;\nx;Acer;\n31;Tilia;\n`)
  const session = user.terminal('import list.csv', noColor)
  await session.answer(...columnsByHand, ['Import 2 of 5 plants (2 new; 3 rejected: ', enter])
  const { code, screen } = await session.ended
  expect(code).toBe(6)
  expect(screen.match(/list\.csv:\d: /g)).toEqual(['list.csv:4: ', 'list.csv:5: ', 'list.csv:6: '])
  expect(screen).toContain('Rejected 3 plants')
})

test('a dialogue says once, before its last question, that rows above the header are not read', async () => {
  const user = createSandboxWithFile(`Stock;2026\n${table}`)
  const session = user.terminal('import list.csv', noColor)
  await session.answer(...columns)
  await session.waitForText('The header is in line 2 of list.csv. Not read above it: 1 row.')
  await session.answer(['Import 2 plants?', enter])
  const { code, screen } = await session.ended
  expect([code, screen.match(/The header is in line/g)]).toEqual([0, ['The header is in line']])
  const quiet = createSandboxWithFile(`Stock;2026\n${table}`)
  const quietSession = quiet.terminal('import list.csv --quiet', noColor)
  await quietSession.answer(...columns, ['Import 2 plants?', enter])
  expect((await quietSession.ended).screen).not.toContain('The header is in line')
})

test('a dialogue names the merged cells of a workbook once, before its last question', async () => {
  const rows = buildRows(['Nr.', 'Pflanze', 'Beet'], ['1', 'Rosa', 'Süd'], ['2', 'Malus', ''])
  const merged = '<mergeCells><mergeCell ref="C2:C3"/></mergeCells>'
  const sheet = Buffer.from(`<worksheet><sheetData>${rows}</sheetData>${merged}</worksheet>`)
  const user = createSandboxWithFile(buildSheetWorkbook(sheet), 'list.xlsx')
  const session = user.terminal('import list.xlsx', noColor)
  await session.answer(...columns)
  await session.waitForText('list.xlsx has merged cells, such as C2:C3')
  await session.answer(['Import 2 plants?', enter])
  const { code, screen } = await session.ended
  expect([code, screen.match(/has merged cells/g)]).toEqual([0, ['has merged cells']])
})

test('the preview of a dialogue shows some rows of each kind, and how many more there are', async () => {
  const buildRows = (from: number, count: number, suffix = '') =>
    Array.from({ length: count }, (_, index) => `${from + index};Rosa ${from + index}${suffix};\n`)
  const header = 'Nr.;Botanischer Name;Standort\n'
  const user = createSandboxWithFile(header + buildRows(1, 12).join(''))
  await user.run(['import', 'list.csv', '--map', 'id=Nr.,name=Botanischer Name'])
  const rejected = buildRows(51, 8).map((row) => `x${row}`)
  const rows = [...buildRows(101, 20), ...buildRows(1, 12, 'a'), ...rejected]
  user.write('list.csv', header + rows.join(''))
  const args = ['import', 'list.csv', '--if-exists', 'update', '-o', 'ndjson']
  const session = user.terminal(args, noColor)
  await session.answer(...columnsByHand)
  await session.waitForText('Import 32 of 40 plants (20 new, 12 changed; 8 rejected: ')
  const preview = session.screen
  const count = (pattern: RegExp) => preview.match(pattern)?.length
  expect([count(/Would update/g), count(/Would create/g), count(/\\"x5\d/g)]).toEqual([5, 5, 5])
  expect(preview).toMatch(/3 more.*Would update.*7 more.*Would create.*15 more/s)
  session.type(enter)
  const { code, screen } = await session.ended
  expect([code, screen.match(/"(?:dryRun|change)"/g), screen.match(/\\"x5\d/g)?.length]).toEqual([
    6,
    null,
    8,
  ])
})

test('an import with --atomic asks before its transaction begins', async () => {
  const user = createSandboxWithFile(table)
  const session = user.terminal('import list.csv --atomic', noColor)
  await session.answer(...columns)
  await session.waitForText('Import 2 plants?')
  expect(user.has(user.store)).toBe(false)
  session.type(enter)
  expect((await session.ended).code).toBe(0)
  expect(await user.run('list')).toEqual(storedPlants)
})

test('an import with --dry-run does not ask the last question', async () => {
  const user = createSandboxWithFile(table)
  const session = user.terminal('import list.csv --dry-run', noColor)
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
])('plants import %s asks nothing with the environment %j, and exits with 2', async (args, env) => {
  const user = createSandboxWithFile(table)
  const { code, screen } = await user.terminal(`import ${args}`, { ...noColor, ...env }).ended
  expect([code, screen.includes('?')]).toEqual([2, false])
})

test('an import asks once about several files, and rejects one that lacks the columns', async () => {
  const user = createSandboxWithFile(table)
  user.write('more.csv', table.replaceAll('3', '4'))
  const session = user.terminal('import list.csv more.csv', noColor)
  await session.answer(...columns, ['Import 4 plants?', enter])
  expect((await session.ended).code).toBe(0)

  user.write('other.csv', 'a;b\n1;2\n')
  const failing = user.terminal('import list.csv other.csv', noColor)
  await failing.answer(...columns)
  const { code, screen } = await failing.ended
  expect([code, screen.includes('other.csv has no column')]).toEqual([2, true])
})
