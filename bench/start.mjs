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
  readProcessorTimeOfChildren,
} from './common.mjs'
import { findExecutable } from './executable.mjs'
import { fetchNode, versions } from './nodes.mjs'
import {
  createReporter,
  findMedian,
  formatGoal,
  formatNumber,
  formatRatio,
  formatSpread,
} from './report.mjs'
import { start } from './server.mjs'

const { runs, matrix, record } = parseFlags({ runs: 30, matrix: false, record: false })
const warmUps = 2
const folder = createTemporaryFolder()
const token = randomBytes(16).toString('hex')
const env = { ...createEnvironment(folder), PLANTS_TOKEN: token, PLANTS_SERVE_TOKEN: token }
const [store, served] = [join(folder, 'store.db'), join(folder, 'served.db')]
const plants = join(import.meta.dirname, '../bin/plants.js')
const server = await start([process.execPath, plants, 'serve', '--store', served, '--port', '0'], {
  env,
  log: join(folder, 'server.log'),
})
const fern = ['create', '--name', 'Boston Fern']
const create = (command, to) => (id) => [...command, ...fern, '--store', to, '--id', id]
// This makes the store that sqlite3 inserts into.
execFileSync(process.execPath, create([plants], store)('1'), { env, stdio: 'ignore' })
const [, ...newer] = versions
const nodes = [process.execPath, ...(matrix ? newer.map((version) => fetchNode(version)) : [])]
/** @type {Program[]} */
const listed = [...listOthers(), ...nodes.flatMap(listStarts), ...listExecutableStarts()]
const programs = listed.map((program) => ({ ...program, times: [0].slice(1), busy: 0 }))

let lastId = 1
const report = createReporter(folder, `medians of ${runs} runs in turn`, record)
for (let run = -warmUps; run < runs; run += 1) {
  for (const program of programs) {
    const { title, argv, times } = program
    const [command, ...args] = argv(takeNextId())
    const [begin, busy] = [performance.now(), readProcessorTimeOfChildren()]
    const { status, error, stderr } = spawnSync(command, args, { env })
    if (run >= 0) {
      times.push(performance.now() - begin)
      program.busy += readProcessorTimeOfChildren() - busy
    }
    if (status !== 0) end(1, `${title} ended with ${status ?? error}: ${stderr}`)
  }
}
await server.stop()

const gh = programs.find(({ title }) => title === 'gh --version')
const rows = programs.map(({ title, times, busy, beside, goal, mostOfGh }) => {
  const other = programs.find((program) => program.title === beside)
  const ratio = formatRatio(times, other?.times)
  const name = other?.title.replace(/^Node .*: /, '') ?? '-'
  const ofGh = formatRatio([busy], gh && [gh.busy])
  const processor = [formatNumber(busy / runs), ofGh, formatGoal(ofGh, mostOfGh)]
  return [title, formatSpread(times), ratio, name, formatGoal(ratio, goal), ...processor]
})
const processor = ['ms of processor time', '× gh', 'goal']
const tables = [[['process', 'ms', '×', 'of', 'goal', ...processor], ...rows]]
const bars = programs
  .filter(({ title }) => !/ 2[246]\.|at a service/.test(title))
  .map(({ title, times }) => {
    const label = title.replace(/^(.*): create$/, 'plants create, $1')
    return { label, value: findMedian(times), isOurs: label !== title }
  })
report('start', tables, drawBarChart('Milliseconds from exec to exit', bars))

/**
 * @typedef {object} Program
 * @property {string} title
 * @property {(id: string) => string[]} argv
 * @property {string} [beside] is the title of another program, with which it is compared
 * @property {{ most: number }} [goal]
 * @property {{ most: number }} [mostOfGh] is a goal of its processor time
 */

/** Lists a create in a file, and one at a service. */
function listCreates(title, command, [besideFile, besideService], ofFile, ofService) {
  const ofGh = title.startsWith('Node 20.') ? { mostOfGh: { most: 0.75 } } : {}
  return [
    {
      title: `${title}: create`,
      argv: create(command, store),
      beside: besideFile,
      goal: { most: ofFile },
      ...ofGh,
    },
    {
      title: `${title}: create at a service`,
      argv: create(command, server.url),
      beside: besideService,
      goal: { most: ofService },
    },
  ]
}

function listStarts(node) {
  const version = execFileSync(node, ['-p', 'process.versions.node'], { env, encoding: 'utf8' })
  const title = `Node ${version.trim()}`
  const bare = `${title}: -e 0`
  const goal = title.startsWith('Node 20.') ? 1.5 : 1.4
  const ours = listCreates(title, [node, plants], [bare, bare], goal, 2.2)
  return [{ title: bare, argv: () => [node, '-e', '0'] }, ...ours]
}

function listExecutableStarts() {
  const file = findExecutable()
  return file ? listCreates('executable', [file], ['sqlite3: INSERT', 'curl: POST'], 3.3, 2.1) : []
}

/** Lists programs that people know, if they are installed. */
function listOthers() {
  const headers = [`Authorization: Bearer ${token}`, 'Content-Type: application/json']
  const curl = ['curl', '-fsS', ...headers.flatMap((header) => ['-H', header]), '--data']
  const body = (id) => `{"id":${id},"name":"Boston Fern"}`
  const insert = (id) => `INSERT INTO plants (id, name) VALUES (${id}, 'Boston Fern')`
  const commands = {
    'sqlite3: INSERT': (id) => ['sqlite3', store, `PRAGMA synchronous=FULL; ${insert(id)}`],
    'curl: POST': (id) => [...curl, body(id), `${server.url}/plants`],
    'gh --version': () => ['gh', '--version'],
  }
  const all = Object.entries(commands).map(([title, argv]) => ({ title, argv }))
  return all.filter(({ argv }) => !spawnSync(argv('')[0] ?? '', ['--version']).error)
}

function takeNextId() {
  lastId += 1
  return String(lastId)
}
