// What a command costs as a whole process, from exec to exit: npm run bench:start [-- FLAG...]
//   --runs 30       how often each is started, after 2 that are not counted
//   --matrix        also Node 22, 24 and 26, which are fetched from the registry
//   --record        writes bench/README.md
// The processes take turns, so that a machine that slows down slows all of them. The executable is
// the one that npm run build:binary has made, or that PLANTS_BIN names.
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { drawBarChart } from './charts.mjs'
import {
  createEnvironment,
  createTemporaryFolder,
  end,
  parseFlags,
  readChildrenProcessorTimeMs,
} from './common.mjs'
import { findExecutable } from './executable.mjs'
import { fetchNode, versions } from './nodes.mjs'
import {
  buildGoalTable,
  createReporter,
  findMedian,
  formatNumber,
  formatRatio,
  formatSpread,
} from './report.mjs'
import { writeTypedList } from './rows.mjs'
import { startServer } from './server.mjs'

const { runs, matrix, record } = parseFlags({ runs: 30, matrix: false, record: false })
const warmUps = 2
const folder = createTemporaryFolder()
const token = randomBytes(16).toString('hex')
const env = { ...createEnvironment(folder), PLANTS_TOKEN: token, PLANTS_SERVE_TOKEN: token }
const [store, served] = [join(folder, 'store.db'), join(folder, 'served.db')]
const plants = join(import.meta.dirname, '../bin/plants.js')
const list = join(folder, 'list.csv')
const listCount = 3000
await writeTypedList(list, listCount)
const server = await startServer(
  [process.execPath, plants, 'serve', '--store', served, '--port', '0'],
  {
    env,
    log: join(folder, 'server.log'),
  },
)
const fern = ['create', '--name', 'Boston Fern']
const buildCreate = (command, target) => (id) => [
  ...command,
  ...fern,
  '--store',
  target,
  '--id',
  id,
]
// This makes the store that sqlite3 inserts into.
execFileSync(process.execPath, buildCreate([plants], store)('1'), { env, stdio: 'ignore' })
const [, ...newerVersions] = versions
const newerNodes = matrix ? newerVersions.map((version) => fetchNode(version)) : []
const nodes = [process.execPath, ...newerNodes]
/** @type {Program[]} */
const listedPrograms = [
  ...listKnownPrograms(),
  ...nodes.flatMap(listStarts),
  ...listExecutableStarts(),
]
const programs = listedPrograms.map((program) => ({
  ...program,
  timesMs: /** @type {number[]} */ ([]),
  processorTimeMs: 0,
}))

let lastId = 1
const report = createReporter(folder, `medians and ranges of ${runs} interleaved runs`, record)
for (let run = -warmUps; run < runs; run += 1) {
  for (const program of programs) {
    const { title, buildCommand, timesMs } = program
    const [command, ...args] = buildCommand(takeNextId())
    const [startedAtMs, processorMsBefore] = [performance.now(), readChildrenProcessorTimeMs()]
    const { status, error, stderr } = spawnSync(command, args, { env })
    if (run >= 0) {
      timesMs.push(performance.now() - startedAtMs)
      program.processorTimeMs += readChildrenProcessorTimeMs() - processorMsBefore
    }
    if (status !== 0) end(1, `${title} ended with ${status ?? error}: ${stderr}`)
  }
}
await server.stop()

const comparedPrograms = programs.map((program) => {
  const compared = programs.find(({ title }) => title === program.comparedTitle)
  return { ...program, ratio: formatRatio(program.timesMs, compared?.timesMs) }
})
const rows = comparedPrograms.map(({ title, timesMs, processorTimeMs, comparedTitle, ratio }) => {
  const processorMs = formatNumber(processorTimeMs / runs)
  return [title, formatSpread(timesMs), ratio, comparedTitle ?? '-', processorMs]
})
const heading = ['process', 'ms', '×', 'of', 'ms of processor time']
const goals = comparedPrograms.map(({ title, comparedTitle, ratio, goal }) => {
  return { title, figure: 'time', comparedTitle, measured: ratio, goal }
})
const bars = programs
  .filter(({ title }) => !/ 2[246]\.|at a service|import/.test(title))
  .map(({ title, timesMs }) => {
    const label = title.replace(/^(.*): create$/, 'plants create, $1')
    return { label, value: findMedian(timesMs), isOurs: label !== title }
  })
report('start', [[heading, ...rows]], drawBarChart('Milliseconds from exec to exit', bars))
report('start-goals', [buildGoalTable(goals)])

/**
 * @typedef {object} Program
 * @property {string} title
 * @property {(id: string) => string[]} buildCommand
 * @property {string} [comparedTitle] is the title of another program, with which it is compared
 * @property {{ atMost: number }} [goal]
 */

/**
 * Lists a create in a file, and one at a service.
 *
 * @param {string[]} comparedTitles the titles of the programs with which the two are compared
 * @param {number[]} maxRatios how many times as long as those the two may take
 */
function listCreates(title, command, comparedTitles, maxRatios) {
  const [fileTitle, serviceTitle] = comparedTitles
  const [maxInFile, maxAtService] = maxRatios
  return [
    {
      title: `${title}: create`,
      buildCommand: buildCreate(command, store),
      comparedTitle: fileTitle,
      goal: { atMost: maxInFile },
    },
    {
      title: `${title}: create at a service`,
      buildCommand: buildCreate(command, server.url),
      comparedTitle: serviceTitle,
      goal: { atMost: maxAtService },
    },
  ]
}

function listStarts(node) {
  const version = execFileSync(node, ['-p', 'process.versions.node'], { env, encoding: 'utf8' })
  const title = `Node ${version.trim()}`
  const bare = `${title}: -e 0`
  const maxInFile = title.startsWith('Node 20.') ? 1.5 : 1.45
  const mapping = 'id=Nr.,name=Botanischer Name,tag=Standort'
  return [
    { title: bare, buildCommand: () => [node, '-e', '0'] },
    ...listCreates(title, [node, plants], [bare, bare], [maxInFile, 2]),
    {
      title: `${title}: import of ${listCount} rows`,
      buildCommand: (id) => {
        const newStore = join(folder, `list-${id}.db`)
        return [node, plants, 'import', list, '--map', mapping, '--store', newStore]
      },
      comparedTitle: bare,
    },
  ]
}

function listExecutableStarts() {
  const file = findExecutable()
  const comparedTitles = ['sqlite3: INSERT', 'curl: POST']
  return file ? listCreates('executable', [file], comparedTitles, [3.2, 2.1]) : []
}

/** Lists programs that people know, if they are installed. */
function listKnownPrograms() {
  const headers = [`Authorization: Bearer ${token}`, 'Content-Type: application/json']
  const curl = ['curl', '-fsS', ...headers.flatMap((header) => ['-H', header]), '--data']
  const body = (id) => `{"id":${id},"name":"Boston Fern"}`
  const insert = (id) => `INSERT INTO plants (id, name) VALUES (${id}, 'Boston Fern')`
  const commands = {
    'sqlite3: INSERT': (id) => ['sqlite3', store, `PRAGMA synchronous=FULL; ${insert(id)}`],
    'curl: POST': (id) => [...curl, body(id), `${server.url}/plants`],
    'gh --version': () => ['gh', '--version'],
  }
  const programsToFind = Object.entries(commands).map(([title, buildCommand]) => ({
    title,
    buildCommand,
  }))
  return programsToFind.filter(({ buildCommand }) => {
    const [program = ''] = buildCommand('')
    return !spawnSync(program, ['--version']).error
  })
}

function takeNextId() {
  lastId += 1
  return String(lastId)
}
