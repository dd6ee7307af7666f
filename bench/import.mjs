// Imports and exports beside the loaders of SQLite and PostgreSQL, and what texts of several scripts take:
// npm run bench:import [-- FLAG...]
//   --rows 500000  --rounds 3  --only sqlite,postgres,texts,postgres-texts
//   --against DIR   another checkout, which is built, in turn with this one
//   --record        writes bench/README.md
// Each is a whole process with its start. They take turns, so that a machine that slows down slows all of them. After
// each import it is checked that the plants are there.
import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { barChart } from './charts.mjs'
import {
  checkoutsOf,
  end,
  environmentIn,
  flagsOf,
  run,
  temporaryFolder,
  withoutFiles,
} from './common.mjs'
import { psqlArgs, startPostgres } from './postgres-server.mjs'
import { goalText, median, numberText, ratioText, reporterOf, spread } from './report.mjs'
import { scripts, writeNames, writeRows } from './rows.mjs'

const parts = {
  sqlite: measureSqlite,
  postgres: measurePostgres,
  texts: measureTexts,
  'postgres-texts': measurePostgresTexts,
}
const { rows, rounds, only, against, record } = flagsOf({
  rows: 500_000,
  rounds: 3,
  only: Object.keys(parts),
  against: '',
  record: false,
})
if (!only.every((name) => Object.hasOwn(parts, name)))
  end(2, `--only must be some of ${Object.keys(parts).join()}`)

const folder = temporaryFolder()
const env = environmentIn(folder)
const checkouts = checkoutsOf(against)
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

/** At most so many times the time of English texts. */
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
const report = reporterOf(folder, how, record)
for (const name of only) await parts[name]()

async function measureSqlite() {
  const [store, other] = ['store.db', 'other.db'].map((name) => join(folder, name))
  const makeStore = () => withoutFiles(store)
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
      ask(withoutFiles(other), ...schema)
      return other
    },
  }
  const importers = [
    ...loaders,
    sqliteUtils,
    ...imports('NDJSON', [input.ndjson], { least: 0.45 }),
    ...imports('CSV', [input.csv, ...columns], { least: 0.45 }),
    ...imports('shuffled NDJSON', [input.shuffledNdjson], { least: 0.6 }, loaders[1].title),
    ...imports('shuffled CSV', [input.shuffledCsv, ...columns], { least: 0.6 }, loaders[1].title),
    ...imports('workbook', [await workbook(store)]),
  ]
  const exporters = [dumper, ...exports({ least: 0.35 })]
  await measure('sqlite', 'into a new file', { makeStore, count, importers, exporters })
}

/** A workbook of all plants, which our export has made. */
async function workbook(store) {
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
  const loader = { title: 'psql \\copy from, CSV', argv: (store) => psqlArgs(store, copyFrom) }
  const dumper = {
    title: 'psql \\copy to, CSV',
    argv: (store, out) => psqlArgs(store, copyTo(out)),
  }
  const count = (store) => server.ask(store, 'SELECT count(*) FROM plant_store.plants')
  try {
    const title = `into an empty database of PostgreSQL ${server.version}`
    const { makeStore } = server
    const importers = [
      loader,
      ...imports('NDJSON', [input.ndjson], { least: 0.4 }),
      ...imports('CSV', [input.csv, ...columns], { least: 0.4 }),
    ]
    const exporters = [dumper, ...exports({ least: 0.333 })]
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
  const times = Object.entries(commands).map(([title, command]) => ({
    title,
    argv: [process.execPath, plants, ...command, '--store'],
    taken: {},
  }))
  for (let round = 0; round < rounds; round += 1)
    for (const { argv, taken } of times)
      for (const script of names) {
        const { seconds } = await run([...argv, stores[script]], env)
        taken[script] = [...(taken[script] ?? []), seconds]
      }
  const [first, ...others] = names
  const heading = ['plants', `${first}, s`, ...others.map((script) => `${script}, × ${first}`)]
  const lines = times.map(({ title, taken }) => [
    title,
    spread(taken[first]),
    ...others.map((script) => {
      const ratio = ratioText(taken[script], taken[first])
      const most = mostOfTexts[title]?.[script]
      return most === undefined ? ratio : `${ratio} (${goalText(ratio, { most })})`
    }),
  ])
  report(section, [[heading, ...lines]])
}

/** Imports into new stores, and exports from the last one. */
async function measure(section, title, { makeStore, count, importers, exporters }) {
  const out = join(folder, 'export')
  const measured = (programs) =>
    programs.map((each) => ({ makeStore, count, ...each, rates: [], peaks: [] }))
  const [loading, dumping] = [measured(importers), measured(exporters)]
  for (let round = 0; round < rounds; round += 1) {
    let store
    for (const { title: program, argv, rates, peaks, ...its } of loading) {
      store = its.makeStore()
      const { seconds, peak } = await run(argv(store), env)
      rates.push(rows / seconds)
      peaks.push(peak)
      const stored = Number(its.count(store))
      if (stored !== rows)
        throw new Error(`${program}: there are ${stored} plants instead of ${rows}`)
    }
    for (const { argv, rates, peaks } of dumping) {
      const { seconds, peak } = await run(argv(store, out), env)
      rates.push(rows / seconds)
      peaks.push(peak)
      rmSync(out)
    }
  }
  const tables = [tableOf(title, loading), tableOf('out again', dumping)]
  const bars = loading.map(({ title: label, rates }) => {
    const isOurs = label.startsWith('plants ')
    return { label, value: median(rates), isOurs }
  })
  const chart = barChart(`Plants a second ${title}`, bars)
  report(section, tables, chart)
}

/** An import of each checkout. */
function imports(what, args, goal, beside) {
  return checkouts.map(({ plants: program, suffix }) => ({
    title: `plants import, ${what}${suffix}`,
    argv: (store) => [process.execPath, program, 'import', ...args, '--store', store],
    ...{ goal, beside, mostPeak: goal && 150 },
  }))
}

/** Exports of each checkout. */
function exports(goal) {
  return ['ndjson', 'csv'].flatMap((format) =>
    checkouts.map(({ plants: program, suffix }) => ({
      title: `plants export, ${format.toUpperCase()}${suffix}`,
      argv: (store, out) => {
        const args = ['export', out, '--output', format, '--store', store]
        return [process.execPath, program, ...args]
      },
      goal,
    })),
  )
}

function tableOf(title, programs) {
  const [first] = programs
  const lines = programs.map(({ title: program, rates, peaks, goal, mostPeak, beside }) => {
    const other = programs.find((each) => each.title === beside) ?? first
    const ratio = ratioText(rates, other.rates)
    const peak = numberText(median(peaks))
    const reached = goalText(peak, mostPeak && { most: mostPeak })
    return [program, spread(rates), ratio, goalText(ratio, goal), peak, reached]
  })
  const [tool] = first.title.split(' ')
  return [[title, 'plants/s', `× ${tool}, same order`, 'goal', 'peak, MB', 'goal'], ...lines]
}
