// Imports and exports beside the loaders of SQLite and PostgreSQL, and what texts of several scripts take:
// npm run bench:import [-- FLAG...]
//   --rows 500000  --rounds 3  --only sqlite,postgres,texts
//   --peers         DuckDB, which is fetched, and sqlite-utils besides
//   --against DIR   another checkout, which is built, in turn with this one
//   --folder PATH   where the temporary folder is made, and so which disk is written to
//   --record        writes bench/README.md
// Each is a whole process with its start. They take turns, so that a machine that slows down slows all of them. After
// each import it is checked that the plants are there.
import { execFileSync, spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { end, environmentIn, run, temporaryFolder } from './common.mjs'
import { duckdbLoader } from './peers.mjs'
import { hasPsql, psqlArgs, startPostgres } from './postgres-server.mjs'
import { goalText, machineOf, momentNow, ratioText, report, spread } from './report.mjs'
import { scripts, writeNames, writeRows } from './rows.mjs'

const parts = { sqlite: measureSqlite, postgres: measurePostgres, texts: measureTexts }
const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '500000' },
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: Object.keys(parts).join() },
    peers: { type: 'boolean', default: false },
    against: { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
    record: { type: 'boolean', default: false },
  },
})
const [rows, rounds, names] = [Number(flags.rows), Number(flags.rounds), flags.only.split(',')]
const areWhole = [rows, rounds].every((count) => Number.isSafeInteger(count) && count > 0)
if (!areWhole || !names.every((name) => Object.hasOwn(parts, name)))
  end(
    2,
    `--rows and --rounds must be whole numbers from 1 up, --only some of ${Object.keys(parts).join()}`,
  )
if (names.includes('sqlite') && spawnSync('sqlite3', ['--version']).error)
  end(2, 'sqlite is compared with sqlite3: install it')
if (flags.peers && spawnSync('sqlite-utils', ['--version']).error)
  end(2, '--peers needs sqlite-utils: install it')
if (names.includes('postgres') && !hasPsql()) end(2, 'postgres is compared with psql: install it')

const folder = temporaryFolder(flags.folder)
const env = environmentIn(folder)
const plants = join(import.meta.dirname, '../bin/plants.js')
const checkouts = [{ suffix: '', plants }]
if (flags.against)
  checkouts.push({ suffix: ', before', plants: join(resolve(flags.against), 'bin/plants.js') })
const input = Object.fromEntries(
  ['ndjson', 'csv'].map((format) => [format, join(folder, `plants.${format}`)]),
)
for (const [format, path] of Object.entries(input)) await writeRows(path, rows, format)

/** At most so many times the time of English texts. */
const mostOfTexts = {
  'list, a table': { umlauts: 1.3, Cyrillic: 1.3, Chinese: 2, emoji: 4 },
  'list --sort name': { umlauts: 1.5, Cyrillic: 1.5, Chinese: 1.5, emoji: 1.5 },
  'list --search': { umlauts: 1.5, Cyrillic: 1.5, Chinese: 1.5, emoji: 1.5 },
}

const machine = machineOf(folder)
const how = `${momentNow()}; ${rows.toLocaleString('en-US')} plants, ids in order; medians of ${rounds} rounds in turn, with their ranges`
for (const name of names) await parts[name]()

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
  const load = [...schema, '.mode csv', `.import "${input.csv}" plants`]
  const loader = { title: 'sqlite3 .import, CSV', argv: () => ['sqlite3', store, ...load] }
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
  const duckdb = () => ({
    title: 'DuckDB, CSV',
    ...duckdbLoader(input.csv, env),
    makeStore: () => withoutFiles(other),
  })
  const peers = flags.peers ? [sqliteUtils, duckdb()] : []
  const goals = { import: { least: 0.4 } }
  await measure('sqlite', 'into a new file', { makeStore, count, loader, peers, dumper, goals })
}

async function measurePostgres() {
  const server = await startPostgres(env)
  const columns = 'id, name, tag'
  const query = `SELECT ${columns} FROM plant_store.plants ORDER BY id`
  const copyFrom = `\\copy plant_store.plants (${columns}) from '${input.csv}' csv`
  const copyTo = (out) => `\\copy (${query}) to '${out}' csv`
  const loader = { title: 'psql \\copy from, CSV', argv: (store) => psqlArgs(store, copyFrom) }
  const dumper = {
    title: 'psql \\copy to, CSV',
    argv: (store, out) => psqlArgs(store, copyTo(out)),
  }
  const count = (store) => server.ask(store, 'SELECT count(*) FROM plant_store.plants')
  try {
    const title = `into an empty database of PostgreSQL ${server.version}`
    const goals = { import: { least: 0.33 }, export: { least: 0.4 } }
    const { makeStore } = server
    await measure('postgres', title, { makeStore, count, loader, dumper, goals, peers: [] })
  } finally {
    await server.remove()
  }
}

/** The path of a database, once its files are gone. */
function withoutFiles(file) {
  for (const suffix of ['', '-wal', '-shm', '.wal']) rmSync(`${file}${suffix}`, { force: true })
  return file
}

/** Each command on as many plants with English names and with names of other scripts, which are as long. */
async function measureTexts() {
  const store = (script) => join(folder, `${script}.db`)
  const input = (script) => join(folder, `${script}.ndjson`)
  const commands = {
    'import, NDJSON': (script) => ['import', input(script)],
    'list, a table': () => ['list', '--output', 'text'],
    'list --sort name': () => ['list', '--sort', 'name'],
    'list --search': () => ['list', '--search', 'xyz'],
    'export, CSV': () => ['export', join(folder, 'names.csv'), '--yes'],
    'export, workbook': () => ['export', join(folder, 'names.xlsx'), '--yes'],
  }
  const names = Object.keys(scripts)
  for (const script of names) await writeNames(input(script), rows, script)
  const times = checkouts.flatMap(({ plants: program, suffix }) =>
    Object.entries(commands).map(([title, argsOf]) => ({
      title: `${title}${suffix}`,
      program,
      argsOf,
      taken: {},
    })),
  )
  for (let round = 0; round < rounds; round += 1)
    for (const { program, argsOf, taken } of times)
      for (const script of names) {
        if (argsOf === commands['import, NDJSON']) withoutFiles(store(script))
        const args = [...argsOf(script), '--store', store(script)]
        const seconds = await run([process.execPath, program, ...args], env)
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
  report('texts', { machine, how, tables: [[heading, ...lines]], isRecorded: flags.record })
}

/**
 * Imports into new stores, and exports from the last one.
 *
 * @param loader what plants import is compared with, as plants export is with `dumper`
 * @param peers other loaders, which may have a `makeStore` and `count` of their own
 * @param goals what our ratios are to reach, for an import and for an export
 */
async function measure(section, title, { makeStore, count, loader, dumper, goals, peers }) {
  const out = join(folder, 'export')
  const measured = (programs) => programs.map((each) => ({ makeStore, count, ...each, rates: [] }))
  const importers = measured([loader, ...peers, ...ours('import', importArgs)])
  const exporters = measured([dumper, ...ours('export', exportArgs)])
  for (let round = 0; round < rounds; round += 1) {
    let store
    for (const { title: program, argv, rates, ...its } of importers) {
      store = its.makeStore()
      rates.push(rows / (await run(argv(store), env)))
      const stored = Number(its.count(store))
      if (stored !== rows)
        throw new Error(`${program}: there are ${stored} plants instead of ${rows}`)
    }
    for (const { argv, rates } of exporters) {
      rates.push(rows / (await run(argv(store, out), env)))
      rmSync(out)
    }
  }
  const tables = [
    tableOf(title, importers, goals.import),
    tableOf('out again', exporters, goals.export),
  ]
  report(section, { machine, how, tables, isRecorded: flags.record })
}

/** A command of plants, for both formats and each checkout. */
function ours(verb, argsOf) {
  return Object.keys(input).flatMap((format) =>
    checkouts.map(({ plants: program, suffix }) => ({
      title: `plants ${verb}, ${format.toUpperCase()}${suffix}`,
      argv: (store, out) => {
        const args = [...argsOf(format, out), '--store', store]
        return [process.execPath, program, verb, ...args]
      },
    })),
  )
}

function importArgs(format) {
  return format === 'csv' ? [input.csv, '--columns', 'id,name,tag'] : [input.ndjson]
}

function exportArgs(format, out) {
  return [out, '--output', format]
}

function tableOf(title, programs, goal) {
  const [first] = programs
  const lines = programs.map(({ title: program, rates }) => {
    const ratio = ratioText(rates, first.rates)
    const reached = goalText(ratio, program.startsWith('plants ') ? goal : undefined)
    return [program, spread(rates), ratio, reached]
  })
  return [[title, 'plants/s', `× ${first.title}`, 'goal'], ...lines]
}
