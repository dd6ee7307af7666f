// What a command costs as a whole process, from exec to exit: npm run bench:start [-- FLAG...]
//   --runs 30       how often each is started, after 2 that are not counted
//   --matrix        Node 22, 24 and 26 besides, which are fetched from the registry
//   --record        writes bench/README.md
// The processes take turns, so that a machine that slows down slows all of them. The executable is the one that
// npm run build:binary has made, or that PLANTS_BIN names.
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { barChart } from './charts.mjs'
import { end, environmentIn, flagsOf, temporaryFolder } from './common.mjs'
import { findExecutable } from './executable.mjs'
import { fetchNode, versions } from './nodes.mjs'
import { goalText, median, numberText, ratioText, reporterOf, spread } from './report.mjs'
import { start } from './server.mjs'

const { runs, matrix, record } = flagsOf({ runs: 30, matrix: false, record: false })
const warmUps = 2
const folder = temporaryFolder()
const token = randomBytes(16).toString('hex')
const env = { ...environmentIn(folder), PLANTS_TOKEN: token, PLANTS_SERVE_TOKEN: token }
const [store, served] = [join(folder, 'store.db'), join(folder, 'served.db')]
const plants = join(import.meta.dirname, '../bin/plants.js')
const server = await start([process.execPath, plants, 'serve', '--store', served, '--port', '0'], {
  env,
  log: join(folder, 'server.log'),
})
const fern = ['create', '--name', 'Boston Fern']
const create = (command, to) => (id) => [...command, ...fern, '--store', to, '--id', id]
// makes the store that sqlite3 inserts into
execFileSync(process.execPath, create([plants], store)('1'), { env, stdio: 'ignore' })
const [, ...newer] = versions
const nodes = [process.execPath, ...(matrix ? newer.map((version) => fetchNode(version)) : [])]
/** @type {Program[]} */
const listed = [...others(), ...nodes.flatMap(onNode), ...executable()]
const programs = listed.map((program) => ({ ...program, times: [0].slice(1), busy: 0 }))

let lastId = 1
const report = reporterOf(folder, `medians of ${runs} runs in turn`, record)
for (let run = -warmUps; run < runs; run += 1) {
  for (const program of programs) {
    const { title, argv, times } = program
    const [command, ...args] = argv(idOfNext())
    const [begin, busy] = [performance.now(), processorTimeOfChildren()]
    const { status, error, stderr } = spawnSync(command, args, { env })
    if (run >= 0) {
      times.push(performance.now() - begin)
      program.busy += processorTimeOfChildren() - busy
    }
    if (status !== 0) end(1, `${title} ended with ${status ?? error}: ${stderr}`)
  }
}
await server.stop()

const gh = programs.find(({ title }) => title === 'gh --version')
const rows = programs.map(({ title, times, busy, beside, goal, mostOfGh }) => {
  const other = programs.find((program) => program.title === beside)
  const ratio = ratioText(times, other?.times)
  const name = other?.title.replace(/^Node .*: /, '') ?? '-'
  const ofGh = ratioText([busy], gh && [gh.busy])
  const processor = [numberText(busy / runs), ofGh, goalText(ofGh, mostOfGh)]
  return [title, spread(times), ratio, name, goalText(ratio, goal), ...processor]
})
const processor = ['ms of processor time', '× gh', 'goal']
const tables = [[['process', 'ms', '×', 'of', 'goal', ...processor], ...rows]]
const bars = programs
  .filter(({ title }) => !/ 2[246]\.|at a service/.test(title))
  .map(({ title, times }) => {
    const label = title.replace(/^(.*): create$/, 'plants create, $1')
    return { label, value: median(times), isOurs: label !== title }
  })
report('start', tables, barChart('Milliseconds from exec to exit', bars))

/**
 * @typedef {object} Program
 * @property {string} title
 * @property {(id: string) => string[]} argv
 * @property {string} [beside] the title of another, of which it takes at most so many times as long
 * @property {{ most: number }} [goal]
 * @property {{ most: number }} [mostOfGh] of processor time
 */

/** In a file and at a service. */
function creates(title, command, [besideFile, besideService], ofFile, ofService) {
  const ofGh = title.startsWith('Node 20.') ? { mostOfGh: { most: 0.75 } } : {}
  return [
    {
      title: `${title}: create`,
      argv: create(command, store),
      ...{ beside: besideFile, goal: { most: ofFile }, ...ofGh },
    },
    {
      title: `${title}: create at a service`,
      argv: create(command, server.url),
      ...{ beside: besideService, goal: { most: ofService } },
    },
  ]
}

function onNode(node) {
  const version = execFileSync(node, ['-p', 'process.versions.node'], { env, encoding: 'utf8' })
  const title = `Node ${version.trim()}`
  const bare = `${title}: -e 0`
  const goal = title.startsWith('Node 20.') ? 1.55 : 1.45
  const ours = creates(title, [node, plants], [bare, bare], goal, 2.2)
  return [{ title: bare, argv: () => [node, '-e', '0'] }, ...ours]
}

function executable() {
  const file = findExecutable()
  return file ? creates('executable', [file], ['sqlite3: INSERT', 'curl: POST'], 3.3, 2.1) : []
}

/** What people know, if it is installed. */
function others() {
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

function idOfNext() {
  lastId += 1
  return String(lastId)
}

/** In ms, of those that have ended, by proc(5), so on Linux alone; elsewhere NaN. */
function processorTimeOfChildren() {
  if (process.platform !== 'linux') return NaN
  const fields = readFileSync('/proc/self/stat', 'latin1').split(') ')[1].split(' ')
  return (Number(fields[13]) + Number(fields[14])) * 10 // 100 ticks a second
}
