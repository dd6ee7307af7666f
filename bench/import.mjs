// Imports and exports beside the loaders of SQLite and PostgreSQL, and what texts of several
// scripts take: npm run bench:import [-- FLAG...]
//   --rows 500000  --rounds 3  --only sqlite,postgres,texts,postgres-texts
//   --against DIR   another checkout, which is built, in turn with this one
//   --record        writes bench/README.md
// Each is a whole process with its start. They take turns, so that a machine that slows down slows
// all of them. After each import it is checked that the plants are there. The processor time is
// that of the process, without that of a server.
import { execFileSync, spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { drawBarChart } from './charts.mjs'
import {
  createEnvironment,
  createTemporaryFolder,
  end,
  listCheckouts,
  parseFlags,
  removeFiles,
  run,
} from './common.mjs'
import { buildPsqlCommand, startPostgres } from './postgres-server.mjs'
import {
  createReporter,
  findMedian,
  formatGoal,
  formatNumber,
  formatRatio,
  formatSpread,
} from './report.mjs'
import { scripts, writeNames, writeRows } from './rows.mjs'

const parts = {
  sqlite: measureSqlite,
  postgres: measurePostgres,
  texts: measureTexts,
  'postgres-texts': measurePostgresTexts,
}
const { rows, rounds, only, against, record } = parseFlags({
  rows: 500_000,
  rounds: 3,
  only: Object.keys(parts),
  against: '',
  record: false,
})
if (!only.every((name) => Object.hasOwn(parts, name)))
  end(2, `--only must be some of ${Object.keys(parts).join()}`)

const folder = createTemporaryFolder()
const env = createEnvironment(folder)
const checkouts = listCheckouts(against)
const [{ plants }] = checkouts
const input = {
  ndjson: join(folder, 'plants.ndjson'),
  csv: join(folder, 'plants.csv'),
  shuffledNdjson: join(folder, 'shuffled.ndjson'),
  shuffledCsv: join(folder, 'shuffled.csv'),
}
for (const format of ['ndjson', 'csv']) {
  await writeRows(input[format], rows, format)
  await writeRows(join(folder, `shuffled.${format}`), rows, format, { isShuffled: true })
}

/** A command takes at most so many times the time of English texts. */
const mostOfTexts = {
  'list, a table': { umlauts: 1.3, Cyrillic: 1.3, Chinese: 2, emoji: 4 },
  'list --sort name': { umlauts: 1.6, Cyrillic: 1.6, Chinese: 1.6, emoji: 1.6 },
  'list --search': { umlauts: 1.5, Cyrillic: 1.5, Chinese: 1.5, emoji: 1.5 },
}

const searches = {
  'list --sort name': ['list', '--sort', 'name'],
  'list --search': ['list', '--search', 'xyz'],
}
const columns = ['--columns', 'id,name,tag']
const count = rows.toLocaleString('en-US')
const how = `${count} plants; medians of ${rounds} rounds in turn`
const report = createReporter(folder, how, record)
for (const name of only) await parts[name]()

async function measureSqlite() {
  const [store, other] = ['store.db', 'other.db'].map((name) => join(folder, name))
  const makeStore = () => removeFiles(store)
  const schema = [
    'PRAGMA journal_mode=WAL',
    'CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT) STRICT',
  ]
  const ask = (file, ...statements) =>
    execFileSync('sqlite3', [file, ...statements], { encoding: 'utf8' })
  const count = (file) => ask(file, 'SELECT count(*) FROM plants')
  const load = (title, file) => ({
    title,
    beside: title,
    argv: () => ['sqlite3', store, ...schema, '.mode csv', `.import "${file}" plants`],
  })
  const loaders = [
    load('sqlite3 .import, CSV', input.csv),
    load('sqlite3 .import, shuffled CSV', input.shuffledCsv),
  ]
  const query = 'SELECT id, name, tag FROM plants ORDER BY id'
  const dumper = {
    title: 'sqlite3 .output, CSV',
    argv: (_, out) => ['sqlite3', '-csv', store, `.output ${out}`, query],
  }
  const sqliteUtils = {
    title: 'sqlite-utils, NDJSON',
    argv: (file) => ['sqlite-utils', 'insert', file, 'plants', input.ndjson, '--nl'],
    makeStore: () => {
      ask(removeFiles(other), ...schema)
      return other
    },
  }
  const shuffled = { goal: { least: 0.7 }, beside: loaders[1].title }
  const importers = [
    ...loaders,
    ...(isInstalled('sqlite-utils') ? [sqliteUtils] : []),
    ...listImports('NDJSON', [input.ndjson], { goal: { least: 0.55 }, mostBusy: 3.5 }),
    ...listImports('CSV', [input.csv, ...columns], { goal: { least: 0.65 }, mostBusy: 2.8 }),
    ...listImports('shuffled NDJSON', [input.shuffledNdjson], shuffled),
    ...listImports('shuffled CSV', [input.shuffledCsv, ...columns], shuffled),
    ...listImports('workbook', [await exportWorkbook(store)]),
  ]
  const exporters = [dumper, ...listExports({ least: 0.4 }), ...listExports(undefined, ['xlsx'])]
  await measure('sqlite', 'into a new file', { makeStore, count, importers, exporters })
}

function isInstalled(program) {
  return spawnSync(program, ['--version']).error === undefined
}

/** Exports a workbook of all plants. */
async function exportWorkbook(store) {
  const path = join(folder, 'plants.xlsx')
  for (const args of [
    ['import', input.ndjson],
    ['export', path],
  ])
    await run([process.execPath, plants, ...args, '--store', store], env)
  return path
}

async function measurePostgres() {
  const server = await startPostgres(folder, env)
  const query = 'SELECT id, name, tag FROM plant_store.plants ORDER BY id'
  const copyFrom = `\\copy plant_store.plants (id, name, tag) from '${input.csv}' csv`
  const copyTo = (out) => `\\copy (${query}) to '${out}' csv`
  const loader = {
    title: 'psql \\copy from, CSV',
    argv: (store) => buildPsqlCommand(store, copyFrom),
  }
  const dumper = {
    title: 'psql \\copy to, CSV',
    argv: (store, out) => buildPsqlCommand(store, copyTo(out)),
  }
  const count = (store) => server.ask(store, 'SELECT count(*) FROM plant_store.plants')
  try {
    const title = `into an empty database of PostgreSQL ${server.version}`
    const { makeStore } = server
    const importers = [
      loader,
      ...listImports('NDJSON', [input.ndjson], { goal: { least: 0.45 } }),
      ...listImports('CSV', [input.csv, ...columns], { goal: { least: 0.45 } }),
    ]
    const exporters = [dumper, ...listExports({ least: 0.45 })]
    await measure('postgres', title, { makeStore, count, importers, exporters })
  } finally {
    await server.remove()
  }
}

async function measureTexts() {
  const commands = { 'list, a table': ['list', '--output', 'text'], ...searches }
  await compareScripts('texts', commands, (script) => join(folder, `${script}.db`))
}

async function measurePostgresTexts() {
  const server = await startPostgres(folder, env)
  try {
    const makeStore = (script) => server.makeStore(script.toLowerCase())
    await compareScripts('postgres-texts', searches, makeStore)
  } finally {
    await server.remove()
  }
}

/** Runs each command on as many plants with English names and with ones of other scripts. */
async function compareScripts(section, commands, makeStore) {
  const names = Object.keys(scripts)
  const stores = {}
  for (const script of names) {
    const file = join(folder, `${script}.ndjson`)
    await writeNames(file, rows, script)
    stores[script] = makeStore(script)
    await run([process.execPath, plants, 'import', file, '--store', stores[script]], env)
  }
  const measured = Object.entries(commands).map(([title, command]) => ({
    title,
    argv: [process.execPath, plants, ...command, '--store'],
    times: {},
    busyTimes: {},
  }))
  for (let round = 0; round < rounds; round += 1)
    for (const { argv, times, busyTimes } of measured)
      for (const script of names) {
        const { seconds, busy } = await run([...argv, stores[script]], env)
        times[script] = [...(times[script] ?? []), seconds]
        busyTimes[script] = [...(busyTimes[script] ?? []), busy]
      }
  const [first, ...others] = names
  const columns = [`${first}, s`, ...others.map((script) => `${script}, × ${first}`)]
  const buildRows = (field) =>
    measured.map((command) => [
      command.title,
      formatSpread(command[field][first]),
      ...others.map((script) => formatScript(command, field, script, first)),
    ])
  report(section, [
    [['plants', ...columns], ...buildRows('times')],
    [['processor time', ...columns], ...buildRows('busyTimes')],
  ])
}

/** Formats a time as a multiple of that of English texts. The goals are for whole times. */
function formatScript(command, field, script, first) {
  const ratio = formatRatio(command[field][script], command[field][first])
  const most = field === 'times' ? mostOfTexts[command.title]?.[script] : undefined
  return most === undefined ? ratio : `${ratio} (${formatGoal(ratio, { most })})`
}

/** Imports into new stores, and exports from the last one. */
async function measure(section, title, { makeStore, count, importers, exporters }) {
  const out = join(folder, 'export')
  const prepare = (programs) =>
    programs.map((each) => ({ makeStore, count, ...each, rates: [], busyTimes: [], peaks: [] }))
  const [loading, dumping] = [prepare(importers), prepare(exporters)]
  for (let round = 0; round < rounds; round += 1) {
    let store
    for (const program of loading) {
      store = program.makeStore()
      await note(program, program.argv(store))
      const stored = Number(program.count(store))
      if (stored !== rows)
        throw new Error(`${program.title}: there are ${stored} plants instead of ${rows}`)
    }
    for (const program of dumping) {
      const path = `${out}${program.extension ?? ''}`
      await note(program, program.argv(store, path))
      rmSync(path)
    }
  }
  const tables = [buildTable(title, loading), buildTable('out again', dumping)]
  const bars = loading.map(({ title: label, rates }) => {
    const isOurs = label.startsWith('plants ')
    return { label, value: findMedian(rates), isOurs }
  })
  const chart = drawBarChart(`Plants a second ${title}`, bars)
  report(section, tables, chart)
}

async function note({ rates, busyTimes, peaks }, argv) {
  const { seconds, busy, peak } = await run(argv, env)
  rates.push(rows / seconds)
  busyTimes.push(busy)
  peaks.push(peak)
}

/**
 * Lists an import of each checkout.
 *
 * @param {{ goal?: { least: number }, mostBusy?: number, beside?: string }} [goals] of its plants a
 *   second and of its processor time, beside the program with a title
 */
function listImports(what, args, goals = {}) {
  const { goal, mostBusy, beside } = goals
  return checkouts.map(({ plants: program, suffix }) => ({
    title: `plants import, ${what}${suffix}`,
    argv: (store) => [process.execPath, program, 'import', ...args, '--store', store],
    goal,
    mostBusy,
    beside,
    mostPeak: goal && 150,
  }))
}

/** Lists exports of each checkout. */
function listExports(goal, formats = ['ndjson', 'csv']) {
  return formats.flatMap((format) =>
    checkouts.map(({ plants: program, suffix }) => ({
      title: `plants export, ${format === 'xlsx' ? 'workbook' : format.toUpperCase()}${suffix}`,
      extension: `.${format}`,
      argv: (store, out) => [process.execPath, program, 'export', out, '--store', store],
      goal,
    })),
  )
}

function buildTable(title, programs) {
  const lines = programs.map((program) => {
    const { title: name, rates, busyTimes, peaks, goal, mostBusy, mostPeak, beside } = program
    const other = programs.find((each) => each.title === beside) ?? programs[0]
    const ratio = formatRatio(rates, other.rates)
    const busyRatio = formatRatio(busyTimes, other.busyTimes)
    const peak = formatNumber(findMedian(peaks))
    return [
      ...[name, formatSpread(rates), ratio, formatGoal(ratio, goal)],
      ...[
        formatSpread(busyTimes),
        busyRatio,
        formatGoal(busyRatio, mostBusy && { most: mostBusy }),
      ],
      ...[peak, formatGoal(peak, mostPeak && { most: mostPeak })],
    ]
  })
  const [tool] = programs[0].title.split(' ')
  const beside = `× ${tool}, same order`
  const columns = ['plants/s', beside, 'goal', 's of processor time', beside, 'goal']
  return [[title, ...columns, 'peak, MB', 'goal'], ...lines]
}
