import * as zlib from 'node:zlib'
import { expect, test } from 'vitest'
import { type FailingImport, followHints } from '../../../helpers/hints.js'

const named = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => `Plant ${from + index}`)
const rows = (names: readonly string[]) => names.map((name) => `${name},common shade plant for borders\n`).join('')
const lines = (names: readonly string[]) => names.map((name) => `{"name":"${name}"}\n`).join('')

const late = Buffer.from(`name,tag\n${rows(named(1, 30_000))}Abelia \xd7 grandiflora,hybrid\n`, 'latin1')
const hybrids = [...named(1, 30_000), 'Abelia × grandiflora']
const many = named(1, 100_000)
const stopped = { files: { 'list.ndjson': lines(many) }, isStopped: true, names: many }

const four = named(1, 4)
const withBad = 'name,tag\nPlant 1,\n,wet\nPlant 2,\nPlant 3,\n'
const correct: FailingImport['correct'] = [',wet', 'Plant 4,wet']
const table = { files: { 'list.csv': withBad }, correct, names: four }
const piped = { stdin: withBad, correct, names: four }
const numberless = { files: { list: lines(four) }, names: four }
const other = (id: number) => `{"id":${id},"name":"Other"}\n`
const withIds: Omit<FailingImport, 'commands'> = {
  files: { 'list.csv': 'id,name\n1,Plant 1\nx,Plant 2\n3,Plant 3\n' },
  correct: [',x,', ',2,'],
  names: named(1, 3),
}

/** The same imports with `--match name`. */
function byName(imports: [string, FailingImport][]): [string, FailingImport][] {
  const matched = (command: string) => `${command} --match name`
  return imports.map(([what, all]) => {
    const [first, ...more] = all.commands
    return [`${what}, by name`, { ...all, commands: [matched(first), ...more.map(matched)] }]
  })
}

const changes = ['--encoding windows-1252', '--map tag=name', '--rejects bad.csv', '--id-from 5']

const cases: [string, FailingImport][] = [
  ['a late byte that is not UTF-8', { files: { late }, commands: ['late --id-from 1'], names: hybrids }],
  ['a rejected record', { ...table, commands: ['list.csv --id-from next'] }],
  ['a rejected record on stdin', { ...piped, commands: ['--id-from next'] }],
  ['a rejected record at a service', { ...table, isService: true, commands: ['list.csv --id-from next'] }],
  ['a rejected record, numbers from 7', { ...table, commands: ['list.csv --id-from 7'] }],
  ['a rejects file', { ...table, commands: ['list.csv --id-from 7 --rejects bad.csv'] }],
  ['a number that another plant has', { ...numberless, others: other(2), commands: ['list --id-from 1'] }],
  ['the same, and a rejects file', { ...numberless, others: other(2), commands: ['list --id-from 1 --rejects bad'] }],
  [
    'numbers that other plants have',
    { ...numberless, others: [1, 2, 3, 4].map(other).join(''), commands: ['list --id-from 1'] },
  ],
  ['a repeated import', { ...numberless, commands: ['list --id-from 1', 'list --id-from 1'] }],
  [
    'a repeated import, and a rejects file',
    { ...numberless, commands: ['list --id-from 1', 'list --id-from 1 --rejects bad'] },
  ],
  ['a repeat with --atomic', { ...numberless, commands: ['list --id-from 1', 'list --id-from 1 --atomic'] }],
  ['a repeat with --dry-run', { ...numberless, commands: ['list --id-from 1', 'list --id-from 1 --dry-run'] }],
  ['--atomic', { ...table, commands: ['list.csv --id-from next --atomic', 'list.csv --id-from next'] }],
  ['--max-errors', { ...table, commands: ['list.csv --id-from next --max-errors 1'] }],
  ['--max-errors on stdin', { ...piped, commands: ['--id-from next --max-errors 1'] }],
  ...changes.map((option): [string, FailingImport] => {
    const again = option.startsWith('--id-from') ? option : `--id-from next ${option}`
    return [
      `${option} after a stop`,
      { ...table, commands: ['list.csv --id-from next --max-errors 1', `list.csv ${again}`] },
    ]
  }),
  [
    'another option after a stop at a service',
    {
      ...table,
      isService: true,
      commands: ['list.csv --id-from next --max-errors 1', 'list.csv --id-from next --map tag=name'],
    },
  ],
  [
    'another column of ids after a stop',
    {
      files: { 'list.csv': 'id,nr,name\n1,11,Plant 1\nx,x,Plant 2\n3,13,Plant 3\n' },
      commands: ['list.csv --max-errors 1', 'list.csv --map id=nr'],
      correct: [',x,x,', ',2,2,'],
      names: named(1, 3),
    },
  ],
  [
    'a file that is corrected where it is',
    {
      files: { 'list.csv': 'name,tag\n,wet\nPlant 1,\nPlant 2,\n,dry\nPlant 3,\n' },
      commands: ['list.csv --id-from next --max-errors 2', 'list.csv --id-from next'],
      edited: `name,tag\n${rows(named(1, 5))}`,
      names: named(1, 5),
    },
  ],
  [
    'damaged gzip',
    {
      files: { 'list.gz': zlib.gzipSync(`name,tag\n${rows(many)}`).subarray(0, -100) },
      commands: ['list.gz --id-from next', 'list.gz --id-from next'],
      edited: `name,tag\n${rows(many)}`,
      names: many,
    },
  ],
  [
    'a quote that is not closed',
    {
      files: { 'list.csv': `name,tag\n${rows(named(1, 30_000))}"Plant 30001,\nPlant 30002,\n` },
      commands: ['list.csv --id-from 5', 'list.csv --id-from 5'],
      edited: `name,tag\n${rows(named(1, 30_002))}`,
      names: named(1, 30_002),
    },
  ],
  ['a signal', { ...stopped, commands: ['list.ndjson --id-from next'] }],
  [
    'a signal, then other numbers',
    { ...stopped, commands: ['list.ndjson --id-from next', 'list.ndjson --id-from 200000'] },
  ],
  [
    'a second list without ids',
    {
      files: { 'one.csv': 'id,name\n1,Plant 1\n2,Plant 2\n', 'other.csv': 'name\nPlant 3\nPlant 4\n' },
      commands: ['one.csv other.csv'],
      names: four,
    },
  ],
  [
    'an id above the numbers on stdin',
    {
      stdin: '{"name":"Plant 1"}\n{"id":9,"name":"Plant 2"}\n{"name":"Plant 3"}\n',
      commands: ['--id-from next'],
      names: named(1, 3),
    },
  ],
  ...byName([
    ['a rejected record', { ...table, commands: ['list.csv --id-from next'] }],
    ['a rejected record on stdin', { ...piped, commands: ['--id-from next'] }],
    ['a rejected record at a service', { ...table, isService: true, commands: ['list.csv --id-from next'] }],
    ['a rejects file', { ...table, commands: ['list.csv --id-from 7 --rejects bad.csv'] }],
    ['a number that another plant has', { ...numberless, others: other(2), commands: ['list --id-from 1'] }],
    ['a repeated import', { ...numberless, commands: ['list --id-from 1', 'list --id-from 1'] }],
    ['another option after a stop', { ...table, commands: ['list.csv --id-from next --max-errors 1', 'list.csv'] }],
    ['a signal', { ...stopped, commands: ['list.ndjson --id-from next'] }],
  ]),
  ...[false, true].map((isService): [string, FailingImport] => [
    `--match name after a stop${isService ? ' at a service' : ''}`,
    {
      ...table,
      isService,
      commands: ['list.csv --id-from next --max-errors 1', 'list.csv --id-from next --match name'],
    },
  ]),
  ...['', ' --if-exists same', ' --rejects bad.csv'].map((options): [string, FailingImport] => [
    `a repeated import of ids${options && `,${options}`}`,
    { ...withIds, commands: ['list.csv', `list.csv${options}`] },
  ]),
]

test.each(cases)('no chain of hints stores a plant twice, and one stores all: %s', async (_, all) => {
  const ends: unknown[] = []
  const waiting: number[][] = [[]]
  for (let choices = waiting.shift(); choices; choices = waiting.shift()) {
    const taken = choices
    const { trail, ways, names, isDone } = await followHints(all, taken)
    const twice = names.filter((name, index) => name === names[index - 1]).slice(0, 3)
    expect({ trail, twice }).toEqual({ trail, twice: [] })
    expect(ends.length).toBeLessThan(20) // they end
    ends.push({ isDone, names: names.join() })
    const branches = ways.flatMap((count, index) =>
      index < taken.length
        ? []
        : Array.from({ length: count - 1 }, (_, way) => [
            ...ways.map((_, at) => taken[at] ?? 0).slice(0, index),
            way + 1,
          ]),
    )
    waiting.push(...branches)
  }
  expect(ends).toContainEqual({ isDone: true, names: all.names.toSorted().join() })
})
