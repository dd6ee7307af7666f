import { execa } from 'execa'
import { expect, test } from 'vitest'
import {
  buildCommandLine,
  quoteForShell,
  replaceStore,
} from '../../../src/cli/import-dialogue/command-line.js'
import {
  columnWords,
  guessIdColumn,
  guessIsHeaderless,
  guessNameColumn,
  guessTagColumn,
} from '../../../src/cli/import-dialogue/guess-columns.js'
import { isInstalled } from '../../helpers/sandbox/linux.js'

function columnsOf(header: string, ...rows: string[]) {
  const cells = rows.map((row) => row.split(';'))
  return header.split(';').map((name, index) => {
    const values = cells.map((row) => row[index] ?? '').filter(Boolean)
    return { index, name, values, isFilled: values.length === rows.length }
  })
}

test.each([
  ['Nr.;Botanischer Name;Standort', '31;Rosa × alba;Beet', [0, 1, 2]],
  ['Anzahl;Nr.;Pflanzenname', '3;31;Rosa', [1, 2, undefined]],
  ['Espèce;Famille;N°', 'Rosa;Rosaceae;7', [2, 0, 1]],
  ['Numero;Nombre común;Ubicación', '1;Rosal;Patio', [0, 1, 2]],
  ['番号;名前;科', '1;薔薇;バラ科', [0, 1, 2]],
  ['編號;名稱;位置', '1;玫瑰;北', [0, 1, 2]],
  ['번호;이름;위치', '1;장미;북', [0, 1, 2]],
  ['№;Название;Место', '1;Роза;Сад', [0, 1, 2]],
  ['Název;Čeleď;Číslo', 'Růže;Rosaceae;12', [2, 0, 1]],
  ['Nazwa;Rodzina', 'Róża;Rosaceae', [undefined, 0, 1]],
  ['a;b;c', 'x;4;Rosa', [1, 0, undefined]],
])('the columns of %s are guessed', (header, row, expected) => {
  const columns = columnsOf(header, row)
  const id = guessIdColumn(columns)
  const others = columns.filter(({ index }) => index !== id)
  expect([id, guessNameColumn(others), guessTagColumn(others)]).toEqual(expected)
})

test('a column is the id if each row has a different integer, or else by its name', () => {
  expect(guessIdColumn(columnsOf('Anzahl;Nr', '1;1.234', '1;1.235'))).toBe(1)
  expect(guessIdColumn(columnsOf('a;b', '1;1', ';2'))).toBe(1)
  expect(guessIdColumn(columnsOf('a;b', '1;x', '1;y'))).toBeUndefined()
})

test.each([
  ['Beet', ['Nord', 'Süd'], 0],
  ['Menge', ['3', '12'], undefined],
  ['Bemerkung', ['Im Herbst zurückschneiden und vor Frost schützen', ''], undefined],
  ['leer', ['', ''], undefined],
])('the only remaining column is the tag if its cells are short: %s', (name, cells, expected) => {
  expect(guessTagColumn(columnsOf(name, ...cells))).toBe(expected)
  expect(guessTagColumn(columnsOf(`${name};b`, 'x;y', 'z;w'))).toBeUndefined()
})

test('a first row is a plant if it has an integer above other integers', () => {
  const isHeaderless = (first: string) =>
    guessIsHeaderless(first.split(';'), columnsOf(first, '2;Moss', '3;Oak'))
  expect([isHeaderless('1;Fern'), isHeaderless('Nr;Name')]).toEqual([true, false])
})

test('at most 60 names of columns are known', () => {
  expect(Object.values(columnWords).flat().length).toBeLessThanOrEqual(60)
})

const answers = {
  encoding: 'windows-1252',
  sheet: "Bob's",
  delimiter: '\t',
  columns: ['id', '', 'name'],
  map: { id: 'Nr.', name: 'Height, cm' },
  idFrom: 'next' as const,
  match: 'name' as const,
}

test('the command line has the typed options, and one for each answer', () => {
  const words = ['import', '--atomic', '--', 'my list.csv']
  expect(buildCommandLine(words, answers, { isWindows: false })).toBe(
    "plants import --atomic --encoding windows-1252 --sheet 'Bob'\\''s' --delimiter tab " +
      "--columns 'id,,name' --map 'id=Nr.,name=Height, cm' --match name --id-from next " +
      "-- 'my list.csv'",
  )
  expect(buildCommandLine(['import', 'a.csv'], { sheet: "Bob's" }, { isWindows: true })).toBe(
    "plants import a.csv --sheet 'Bob''s'",
  )
  expect(buildCommandLine(['import', 'a.csv'], { map: {}, idFrom: 'next' })).toBe(
    'plants import a.csv --id-from next',
  )
})

test('the command line has no password', () => {
  const typed = 'postgres://ann:s3cret@db/garden'
  const safe = 'postgres://ann@db/garden'
  const words = (store: string) => ['--store', store, 'import', `--store=${store}`, 'a.csv']
  expect(replaceStore(words(typed), typed, safe)).toEqual(words(safe))
})

const difficult = [
  'plain',
  'two words',
  "it's",
  '$HOME `id` $(id)',
  'back\\slash',
  'end\\',
  "\\'",
  '"double"',
  'a,b;c|d&e',
  '*?[x]{a,b}',
  '!history',
  '~',
  '=cmd',
  '%self',
  '#no',
  'الاسم',
  '',
]

test.each(['bash', 'fish', 'zsh', 'sh'])('%s reads a quoted word as it is', async (shell) => {
  if (!isInstalled(shell)) return
  const line = difficult.map((word) => quoteForShell(word, { isWindows: false })).join(' ')
  const { stdout } = await execa(shell, ['-c', `printf '%s\\n' ${line}`])
  expect(stdout.split('\n')).toEqual(difficult)
})
