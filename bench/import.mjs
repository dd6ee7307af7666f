// Compares imports and exports with the loaders of SQLite and PostgreSQL, and texts of several
// scripts with each other: npm run bench:import [-- FLAG...]
//   --rows 500000  --rounds 3  --only sqlite,month,postgres,texts,postgres-texts
//   --against DIR   another checkout, which is built, in turn with this one
//   --record        writes bench/README.md
// Each is a whole process with its start. They take turns, so that a machine that slows down slows
// all of them. After each import it is checked that the plants are there. The processor time is
// that of the process, without that of a server.
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, readdirSync, rmSync } from 'node:fs'
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
  buildGoalTable,
  createReporter,
  findMedian,
  formatNumber,
  formatRatio,
  formatSpread,
} from './report.mjs'
import { scripts, writeNames, writeNextMonth, writeRows } from './rows.mjs'

const benchmarks = {
  sqlite: measureSqlite,
  month: measureMonths,
  postgres: measurePostgres,
  texts: measureTexts,
  'postgres-texts': measurePostgresTexts,
}
const flags = parseFlags({
  rows: 500_000,
  rounds: 3,
  only: Object.keys(benchmarks),
  against: '',
  record: false,
})
const { rows: plantCount, rounds, only } = flags
if (!only.every((name) => Object.hasOwn(benchmarks, name)))
  end(2, `--only must be some of ${Object.keys(benchmarks).join()}`)

const folder = createTemporaryFolder()
const env = createEnvironment(folder)
const checkouts = listCheckouts(flags.against)
const [{ plants }] = checkouts
const input = {
  ndjson: join(folder, 'plants.ndjson'),
  csv: join(folder, 'plants.csv'),
  shuffledNdjson: join(folder, 'shuffled.ndjson'),
  shuffledCsv: join(folder, 'shuffled.csv'),
}
for (const format of ['ndjson', 'csv']) {
  await writeRows(input[format], plantCount, format)
  await writeRows(join(folder, `shuffled.${format}`), plantCount, format, { isShuffled: true })
}

/** The table of a store, for other programs. */
const schema = [
  'PRAGMA journal_mode=WAL',
  'CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT) STRICT',
]
const searches = {
  'list --sort name': ['list', '--sort', 'name'],
  'list --search': ['list', '--search', 'xyz'],
}
const columnOptions = ['--columns', 'id,name,tag']
const count = plantCount.toLocaleString('en-US')
const method = `${count} plants; medians and ranges of ${rounds} interleaved rounds`
const report = createReporter(folder, method, flags.record)
for (const name of only) await benchmarks[name]()

async function measureSqlite() {
  const [store, sqliteUtilsStore] = ['store.db', 'other.db'].map((name) => join(folder, name))
  const makeStore = () => removeFiles(store)
  const countPlants = (file) => executeSql(file, 'SELECT count(*) FROM plants')
  const describeLoader = (title, file) => ({
    title,
    comparedTitle: title,
    buildCommand: () => ['sqlite3', store, ...schema, '.mode csv', `.import "${file}" plants`],
  })
  const loaders = [
    describeLoader('sqlite3 .import, CSV', input.csv),
    describeLoader('sqlite3 .import, shuffled CSV', input.shuffledCsv),
  ]
  const query = 'SELECT id, name, tag FROM plants ORDER BY id'
  const dumper = {
    title: 'sqlite3 .output, CSV',
    buildCommand: (_, path) => ['sqlite3', '-csv', store, `.output ${path}`, query],
  }
  const sqliteUtils = {
    title: 'sqlite-utils, NDJSON',
    buildCommand: (file) => ['sqlite-utils', 'insert', file, 'plants', input.ndjson, '--nl'],
    makeStore: () => {
      executeSql(removeFiles(sqliteUtilsStore), ...schema)
      return sqliteUtilsStore
    },
  }
  const ndjsonGoals = { rateGoal: { atLeast: 0.55 }, processorGoal: { atMost: 2.8 } }
  const csvGoals = { rateGoal: { atLeast: 0.65 }, processorGoal: { atMost: 2.4 } }
  const shuffledGoals = { rateGoal: { atLeast: 0.7 }, comparedTitle: loaders[1].title }
  const importers = [
    ...loaders,
    ...(isInstalled('sqlite-utils') ? [sqliteUtils] : []),
    ...listImports('NDJSON', [input.ndjson], ndjsonGoals),
    ...listImports('CSV', [input.csv, ...columnOptions], csvGoals),
    // They come right after the imports into new files, and find their plants in the last of these.
    ...listImports('CSV, again', [input.csv, ...columnOptions]).map((program) => ({
      ...program,
      makeStore: () => store,
      isRepeated: true,
      comparedTitle: program.title.replace(', again', ''),
    })),
    ...listImports('shuffled NDJSON', [input.shuffledNdjson], shuffledGoals),
    ...listImports('shuffled CSV', [input.shuffledCsv, ...columnOptions], shuffledGoals),
    ...listImports('workbook', [await exportWorkbook(store)]),
  ]
  const exportGoals = { rateGoal: { atLeast: 0.4 }, processorGoal: { atMost: 2.8 } }
  const exporters = [dumper, ...listExports(exportGoals), ...listExports({}, ['xlsx'])]
  await measurePrograms('sqlite', 'into a new file', {
    makeStore,
    countPlants,
    importers,
    exporters,
  })
}

function executeSql(file, ...statements) {
  return execFileSync('sqlite3', [file, ...statements], { encoding: 'utf8' })
}

/** Makes a store equal to the list of the next month, for a list of people and for a long one. */
async function measureMonths() {
  const tables = []
  for (const size of [3000, plantCount]) tables.push(await measureMonth(size))
  report('month', tables)
}

async function measureMonth(size) {
  const [first, ndjson, csv] = ['first.csv', 'next.ndjson', 'next.csv'].map((name) =>
    join(folder, name),
  )
  await writeRows(first, size, 'csv')
  await writeNextMonth(ndjson, size, 'ndjson')
  const countAfter = await writeNextMonth(csv, size, 'csv')
  const [table, store, copy] = ['table.db', 'months.db', 'copy.db'].map((name) =>
    join(folder, name),
  )
  executeSql(removeFiles(table), ...schema, '.mode csv', `.import "${first}" plants`)
  const importFirst = ['import', first, ...columnOptions, '--store', removeFiles(store)]
  await run([process.execPath, plants, ...importFirst], env)
  const upsert = [
    ...['CREATE TEMP TABLE list (id INTEGER PRIMARY KEY, name, tag)', '.mode csv'],
    ...[`.import "${csv}" list`, 'BEGIN'],
    'INSERT INTO plants SELECT * FROM list WHERE true ON CONFLICT (id) DO UPDATE SET name = excluded.name, tag = excluded.tag',
    ...['DELETE FROM plants WHERE id NOT IN (SELECT id FROM list)', 'COMMIT'],
  ]
  const replace = ['plants', ndjson, '--nl', '--pk', 'id', '--replace']
  const sqlite = { title: 'sqlite3: upsert and delete', base: table }
  const sqliteUtils = { title: 'sqlite-utils: insert --replace', base: table, leavesRest: true }
  const inputs = Object.entries({ CSV: [csv, ...columnOptions], NDJSON: [ndjson] })
  const imports = checkouts.flatMap(({ plants: program, suffix }) =>
    inputs.map(([format, args]) => ({
      title: `plants import --sync, ${format}${suffix}`,
      base: store,
      command: [process.execPath, program, 'import', ...args, '--sync', '--yes', '--store', copy],
    })),
  )
  const programs = [
    { ...sqlite, command: ['sqlite3', copy, ...upsert] },
    ...(isInstalled('sqlite-utils')
      ? [{ ...sqliteUtils, command: ['sqlite-utils', 'insert', copy, ...replace] }]
      : []),
    ...imports,
  ].map((program) => ({ ...program, seconds: [], processorSeconds: [], peaksMb: [] }))
  for (let round = 0; round < rounds; round += 1)
    for (const program of programs) await measureMonthOf(program, copy, countAfter)
  const [base] = programs
  return [
    [
      `next month of ${size.toLocaleString('en-US')} plants`,
      's',
      '×',
      's of processor time',
      '×',
      'peak, MB',
    ],
    ...programs.map(({ title, seconds, processorSeconds, peaksMb }) => [
      title,
      formatSpread(seconds),
      formatRatio(seconds, base.seconds),
      formatSpread(processorSeconds),
      formatRatio(processorSeconds, base.processorSeconds),
      formatNumber(findMedian(peaksMb)),
    ]),
  ]
}

/** Runs a program on a copy of the store of the first month, and checks how many plants are there. */
async function measureMonthOf(program, copy, countAfter) {
  copyFileSync(program.base, removeFiles(copy))
  const figures = await run(program.command, env)
  program.seconds.push(figures.seconds)
  program.processorSeconds.push(figures.processorSeconds)
  program.peaksMb.push(figures.peakMb)
  const storedCount = Number(executeSql(copy, 'SELECT count(*) FROM plants'))
  if (storedCount !== countAfter + (program.leavesRest ? 1 : 0))
    throw new Error(`${program.title}: there are ${storedCount} plants, not ${countAfter}`)
  // An import that deletes plants keeps a copy of the store.
  for (const name of readdirSync(folder))
    if (name.startsWith('copy.db.')) rmSync(join(folder, name))
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
  const buildCopyTo = (path) => `\\copy (${query}) to '${path}' csv`
  const loader = {
    title: 'psql \\copy from, CSV',
    buildCommand: (store) => buildPsqlCommand(store, copyFrom),
  }
  const dumper = {
    title: 'psql \\copy to, CSV',
    buildCommand: (store, path) => buildPsqlCommand(store, buildCopyTo(path)),
  }
  const countPlants = (store) => server.execute(store, 'SELECT count(*) FROM plant_store.plants')
  try {
    const title = `into an empty database of PostgreSQL ${server.version}`
    const { makeStore } = server
    const importers = [
      loader,
      ...listImports('NDJSON', [input.ndjson], { rateGoal: { atLeast: 0.45 } }),
      ...listImports('CSV', [input.csv, ...columnOptions], { rateGoal: { atLeast: 0.45 } }),
    ]
    const exporters = [dumper, ...listExports({ rateGoal: { atLeast: 0.45 } })]
    await measurePrograms('postgres', title, { makeStore, countPlants, importers, exporters })
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

/** Runs each command on stores of the same size, whose plants have names in different scripts. */
async function compareScripts(section, commands, makeStore) {
  const names = Object.keys(scripts)
  const stores = {}
  for (const script of names) {
    const file = join(folder, `${script}.ndjson`)
    await writeNames(file, plantCount, script)
    stores[script] = makeStore(script)
    await run([process.execPath, plants, 'import', file, '--store', stores[script]], env)
  }
  const timings = Object.entries(commands).map(([title, args]) => ({
    title,
    command: [process.execPath, plants, ...args, '--store'],
    seconds: {},
    processorSeconds: {},
  }))
  for (let round = 0; round < rounds; round += 1)
    for (const timing of timings)
      for (const script of names) {
        const figures = await run([...timing.command, stores[script]], env)
        for (const figure of ['seconds', 'processorSeconds'])
          timing[figure][script] = [...(timing[figure][script] ?? []), figures[figure]]
      }
  const [base, ...comparedScripts] = names
  const headings = [`${base}, s`, ...comparedScripts.map((script) => `${script}, × ${base}`)]
  const buildRows = (figure) =>
    timings.map((timing) => [
      timing.title,
      formatSpread(timing[figure][base]),
      ...comparedScripts.map((script) => formatRatio(timing[figure][script], timing[figure][base])),
    ])
  report(section, [
    [['plants', ...headings], ...buildRows('seconds')],
    [['processor time', ...headings], ...buildRows('processorSeconds')],
  ])
}

/** Imports into new stores, and exports from the last one. */
async function measurePrograms(section, title, { makeStore, countPlants, importers, exporters }) {
  const addFigures = (program) => ({
    makeStore,
    countPlants,
    ...program,
    rates: [],
    processorSeconds: [],
    peaksMb: [],
  })
  const measuredImporters = importers.map(addFigures)
  const measuredExporters = exporters.map(addFigures)
  for (let round = 0; round < rounds; round += 1) {
    let store
    for (const program of measuredImporters) {
      store = program.makeStore()
      await measureProgram(program, program.buildCommand(store))
      const storedCount = Number(program.countPlants(store))
      if (storedCount !== plantCount)
        throw new Error(`${program.title}: there are ${storedCount} plants, not ${plantCount}`)
    }
    for (const program of measuredExporters) {
      const path = join(folder, `export${program.extension ?? ''}`)
      await measureProgram(program, program.buildCommand(store, path))
      rmSync(path)
    }
  }
  const comparedImporters = comparePrograms(measuredImporters)
  const comparedExporters = comparePrograms(measuredExporters)
  const tables = [
    buildTable(`import ${title}`, comparedImporters),
    buildTable('export', comparedExporters),
  ]
  const bars = measuredImporters
    .filter(({ isRepeated }) => !isRepeated)
    .map(({ title: label, rates }) => {
      const isOurs = label.startsWith('plants ')
      return { label, value: findMedian(rates), isOurs }
    })
  const chart = drawBarChart(`Plants per second, imported ${title}`, bars)
  report(section, tables, chart)
  const goals = [...comparedImporters, ...comparedExporters].flatMap(listGoals)
  report(`${section}-goals`, [buildGoalTable(goals)])
}

/** Runs a command of a program, and adds the figures of the run to the figures of the program. */
async function measureProgram(program, command) {
  const { seconds, processorSeconds, peakMb } = await run(command, env)
  program.rates.push(plantCount / seconds)
  program.processorSeconds.push(processorSeconds)
  program.peaksMb.push(peakMb)
}

/**
 * Lists an import of each checkout.
 *
 * @param {{
 *   rateGoal?: { atLeast: number }, processorGoal?: { atMost: number }, comparedTitle?: string
 * }} [goals] of its plants a second and of its processor time, as multiples of those of the program
 *   with the title `comparedTitle`
 */
function listImports(inputTitle, args, goals = {}) {
  return checkouts.map(({ plants: program, suffix }) => ({
    title: `plants import, ${inputTitle}${suffix}`,
    buildCommand: (store) => [process.execPath, program, 'import', ...args, '--store', store],
    ...goals,
    peakGoal: goals.rateGoal && { atMost: 150 },
  }))
}

/** Lists exports of each checkout, with goals as those of `listImports`. */
function listExports(goals, formats = ['ndjson', 'csv']) {
  return formats.flatMap((format) =>
    checkouts.map(({ plants: program, suffix }) => ({
      title: `plants export, ${format === 'xlsx' ? 'workbook' : format.toUpperCase()}${suffix}`,
      extension: `.${format}`,
      buildCommand: (store, path) => [process.execPath, program, 'export', path, '--store', store],
      ...goals,
    })),
  )
}

/** Adds to each program its figures as multiples of those of its `comparedTitle`, or the first. */
function comparePrograms(programs) {
  return programs.map((program) => {
    const comparedTitle = program.comparedTitle ?? programs[0].title
    const compared = programs.find(({ title }) => title === comparedTitle)
    return {
      ...program,
      comparedTitle,
      rateRatio: formatRatio(program.rates, compared.rates),
      processorRatio: formatRatio(program.processorSeconds, compared.processorSeconds),
      peak: formatNumber(findMedian(program.peaksMb)),
    }
  })
}

function buildTable(title, comparedPrograms) {
  const rows = comparedPrograms.map((program) => [
    program.title,
    formatSpread(program.rates),
    program.rateRatio,
    formatSpread(program.processorSeconds),
    program.processorRatio,
    program.comparedTitle === program.title ? '-' : program.comparedTitle,
    program.peak,
  ])
  return [[title, 'plants/s', '×', 's of processor time', '×', 'of', 'peak, MB'], ...rows]
}

function listGoals({ title, comparedTitle, ...program }) {
  const { rateRatio, rateGoal, processorRatio, processorGoal, peak, peakGoal } = program
  return [
    { title, figure: 'plants/s', comparedTitle, measured: rateRatio, goal: rateGoal },
    {
      title,
      figure: 'processor time',
      comparedTitle,
      measured: processorRatio,
      goal: processorGoal,
    },
    { title, figure: 'peak, MB', measured: peak, goal: peakGoal },
  ]
}
