import { execa } from 'execa'
import { expect, test } from 'vitest'
import { buildCommandLine } from '../../../src/cli/import-dialogue/answers.js'
import { assertDefined } from '../../../src/errors.js'
import {
  columnWords,
  guessIdColumn,
  guessIsHeaderless,
  guessNameColumn,
  guessRestOfName,
  guessTagColumn,
  mayBeIds,
} from '../../../src/fields/guess-columns.js'
import { describeColumns } from '../../../src/fields/sample.js'
import { quoteForShell } from '../../../src/platform/shell.js'
import { isInstalled } from '../../helpers/sandbox/programs.js'

function columnsOf(...rows: string[]) {
  return describeColumns(
    rows.map((row) => row.split(';')),
    0,
  )
}

test.each([
  { header: 'Nr.;Botanischer Name;Standort', row: '31;Rosa × alba;Beet', fields: 'id name tag' },
  { header: 'Anzahl;Nr.;Pflanzenname', row: '3;31;Rosa', fields: '- id name' },
  { header: 'Espèce;Famille;N°', row: 'Rosa;Rosaceae;7', fields: 'name tag id' },
  { header: 'Numero;Nombre común;Ubicación', row: '1;Rosal;Patio', fields: 'id name tag' },
  { header: '番号;名前;科', row: '1;薔薇;バラ科', fields: 'id name tag' },
  { header: '編號;名稱;位置', row: '1;玫瑰;北', fields: 'id name tag' },
  { header: '번호;이름;위치', row: '1;장미;북', fields: 'id name tag' },
  { header: '№;Название;Место', row: '1;Роза;Сад', fields: 'id name tag' },
  { header: 'Název;Čeleď;Číslo', row: 'Růže;Rosaceae;12', fields: 'name tag id' },
  { header: 'Nazwa;Rodzina', row: 'Róża;Rosaceae', fields: 'name tag' },
  { header: 'a;b;c', row: 'x;4;Rosa', fields: 'name - -' },
  { header: 'Genus;Species;Family', row: 'Rosa;alba;Rosaceae', fields: 'name - tag' },
  { header: 'First name;Last name;Donated plant', row: 'Ada;Alba;Rosa', fields: '- - name' },
  { header: 'Supplier name;Plant;Pot', row: 'North Ltd;Rosa;P9', fields: '- name -' },
  { header: 'plant_id;common_name;plant_family', row: '1;Rose;Rosaceae', fields: 'id name tag' },
  { header: 'Species;Lat;Lon', row: 'Rosa alba;-1205;7705', fields: 'name - -' },
  { header: 'Accession no;Plant', row: 'A-1;Rosa alba', fields: '- name' },
  { header: 'id;Sorta', row: 'rosa-alba;Rosa alba', fields: '- name' },
  { header: 'Nr;Name;Bed', row: '1;Rosa;4', fields: 'id name tag' },
  { header: 'plantId;plantFamily;plantName', row: '1;Rosaceae;Rosa', fields: 'id tag name' },
  { header: 'Code;Scientific;Common', row: 'ROAL;Rosa alba;Rose', fields: '- name -' },
  { header: 'Standort;Sorte', row: 'Beet;Rosa', fields: 'tag name' },
  { header: 'Genus;Species', row: 'Rosa;Rosa alba', fields: '- name' },
  { header: 'ID_notes;Plant', row: 'see bed 4;Rosa alba', fields: '- name' },
])(
  'the columns of the header $header above the row $row are: $fields',
  ({ header, row, fields }) => {
    const columns = columnsOf(header, row)
    const id = guessIdColumn(columns)
    const others = columns.filter((column) => column !== id)
    const guesses = { id, name: guessNameColumn(others), tag: guessTagColumn(others) }
    const columnOf = (field: string) => columns[fields.split(' ').indexOf(field)]
    expect(guesses).toEqual({ id: columnOf('id'), name: columnOf('name'), tag: columnOf('tag') })
  },
)

test('a column is the id if its name says so, and each row has a different integer', () => {
  expect(guessIdColumn(columnsOf('Nr', '1', '2'))?.number).toBe(1)
  expect(guessIdColumn(columnsOf('Anzahl;Nr', '1;1.234', '2;1.235'))).toBeUndefined()
  expect(guessIdColumn(columnsOf('Nr', '1', '1'))).toBeUndefined()
  expect(guessIdColumn(columnsOf('a', '1', '2'))).toBeUndefined()
  expect(guessIdColumn(columnsOf(';a', '1;x', '2;y'))).toBeUndefined()
})

test('a column whose values repeat is not the name before one whose values differ', () => {
  const rows = ['Tree;Acer;1', 'Tree;Ulmus;2', 'Tree;Tilia;3']
  expect(guessNameColumn(columnsOf('Plant type;Botanical name;Name 2', ...rows))?.number).toBe(2)
  const trees = ['Acer;Main St', 'Acer;Oak St', 'Acer;Elm St']
  expect(guessNameColumn(columnsOf('Species;Road name', ...trees))?.number).toBe(1)
  expect(guessNameColumn(columnsOf('山名;花', 'x;a', 'y;b'))?.number).toBe(2)
  expect(guessNameColumn(columnsOf('Plant type;Height', 'Tree;5', 'Tree;6'))?.number).toBe(1)
  const notes = [
    'Fern;It likes shade and '.padEnd(120, 'a'),
    'Fern;It likes sun and '.padEnd(120, 'b'),
  ]
  expect(guessNameColumn(columnsOf('X;Text', ...notes))?.number).toBe(1)
})

test('without a header, only the first column is proposed as the id', () => {
  expect(guessIdColumn(columnsOf('1;Rosa', '2;Malus'), true)?.number).toBe(1)
  expect(guessIdColumn(columnsOf('Rosa;5.0', 'Malus;10.0').slice(1), true)).toBeUndefined()
})

test('a column may be chosen as the id if half of its values are integers, as an import reads them', () => {
  const columns = columnsOf('Code;Nr;Alt;Excel;leer', 'A-1;31;7.0;="007";', 'A-2;1.033;8.0;="008";')
  expect(mayBeIds(assertDefined(columnsOf('Nr', '1', 'x', 'y')[0]))).toBe(false)
  expect(columns.filter(mayBeIds).map(({ name }) => name)).toEqual(['Nr', 'Alt', 'Excel'])
  expect(guessIdColumn(columnsOf('Nr', '7.0', '="08"'))?.number).toBe(1)
  expect(guessIdColumn(columnsOf('Nr', '7.0', '7'))).toBeUndefined()
})

test.each([
  { name: 'Ecke', cells: ['Nord', 'Süd'], verdict: 'is the tag', tagColumn: 1 },
  { name: 'Menge', cells: ['3', '12'], verdict: 'is no tag' },
  {
    name: 'Bemerkung',
    cells: ['Im Herbst zurückschneiden und vor Frost schützen', ''],
    verdict: 'is no tag',
  },
  { name: 'leer', cells: ['', ''], verdict: 'is no tag' },
])(
  'the only remaining column, $name with the cells $cells, $verdict',
  ({ name, cells, tagColumn }) => {
    expect(guessTagColumn(columnsOf(name, ...cells))?.number).toBe(tagColumn)
    expect(guessTagColumn(columnsOf(`${name};b`, 'x;y', 'z;w'))).toBeUndefined()
  },
)

test.each([
  { header: '1;Fern', rows: ['2;Moss', '3;Oak'], isHeaderless: true },
  { header: 'Nr;Name', rows: ['2;Moss', '3;Oak'], isHeaderless: false },
  { header: 'Fern', rows: ['Moss', 'Ivy'], isHeaderless: true },
  { header: 'Gewächs', rows: ['Moos', 'Efeu'], isHeaderless: true },
  { header: 'Acer;40.5', rows: ['Elm;40.5'], isHeaderless: true },
  { header: 'Acer;4;4', rows: ['Elm;4;4'], isHeaderless: true },
  { header: 'Tree;2025;2026', rows: ['Elm;1;2'], isHeaderless: false },
  { header: 'Acer;2025;2025', rows: ['Elm;2026;2026'], isHeaderless: true },
  { header: 'Plant', rows: ['Moss', 'Ivy'], isHeaderless: false },
])(
  'the first row $header above $rows is a plant: $isHeaderless',
  ({ header, rows, ...verdict }) => {
    expect(guessIsHeaderless(columnsOf(header, ...rows))).toBe(verdict.isHeaderless)
  },
)

test('the rest of a name is in the column of the epithets, which begin with small letters', () => {
  const columns = columnsOf('Family;Cultivar;Art', 'Rosaceae;Maxima;alba', ';;× hybrida')
  expect(guessRestOfName(columns)?.number).toBe(3)
  expect(guessRestOfName(columns.slice(0, 2))).toBeUndefined()
  const trees = columnsOf(
    'Genus;Type;Image;Species',
    'Acer;small tree;a/b.jpg;rubrum',
    'Ilex;;;Ilex',
  )
  expect(guessRestOfName(trees)?.number).toBe(4)
  expect(guessRestOfName(trees.slice(0, 3))).toBeUndefined()
})

test('the dialogue knows at most 86 names of columns', () => {
  expect(Object.values(columnWords).flat().length).toBeLessThanOrEqual(86)
})

const answers = {
  encoding: 'windows-1252',
  sheet: "Bob's",
  columns: ['id', '', 'name'],
  map: { id: ['Nr.'], name: ['Height, cm', 'Species'], tag: [] },
}

test('the command line of a dialogue has the typed options, and one option for each answer', () => {
  const words = ['import', '--atomic', '--', 'my list.csv']
  expect(buildCommandLine(words, answers, { isWindows: false })).toBe(
    "plants import --atomic --encoding windows-1252 --sheet 'Bob'\\''s' " +
      "--columns 'id,,name' --map 'id=Nr.,name=Height, cm,name=Species,tag=' " +
      "-- 'my list.csv'",
  )
  expect(buildCommandLine(['import', 'a.csv'], { sheet: "Bob's" }, { isWindows: true })).toBe(
    "plants import a.csv --sheet 'Bob''s'",
  )
  expect(buildCommandLine(['import', 'a.csv'], { map: {}, byName: true })).toBe(
    'plants import a.csv --by-name',
  )
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

test.for(['bash', 'fish', 'zsh', 'sh'])(
  '%s reads each quoted word of a command line unchanged (needs it)',
  async (shell, { skip }) => {
    skip(!isInstalled(shell))
    const line = difficult.map((word) => quoteForShell(word, { isWindows: false })).join(' ')
    const { stdout } = await execa(shell, ['-c', `printf '%s\\n' ${line}`])
    expect(stdout.split('\n')).toEqual(difficult)
  },
)
