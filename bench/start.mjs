// What a command costs as a whole process, from exec to exit: npm run bench:start [-- FLAG...]
//   --runs 30       how often each is started, after 2 that are not counted
//   --node PATH     the Node that runs plants; it may be repeated
//   --matrix        Node 22, 24 and 26 besides, which are fetched from the registry
//   --against DIR   another checkout, which is built, in turn with this one
//   --folder PATH   where the temporary folder is made, and so which disk is written to
//   --record        writes bench/README.md
// The processes take turns, so that a machine that slows down slows all of them. The executable is the one that
// npm run build:binary has made, or that PLANTS_BIN names.
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { end, environmentIn, print, temporaryFolder } from './common.mjs'
import { findExecutable } from './executable.mjs'
import { fetchNode, versions } from './nodes.mjs'
import { goalText, machineOf, momentNow, numberText, ratioText, report, spread } from './report.mjs'
import { start } from './server.mjs'

const { values: flags } = parseArgs({
  options: {
    runs: { type: 'string', default: '30' },
    node: { type: 'string', multiple: true, default: [process.execPath] },
    matrix: { type: 'boolean', default: false },
    against: { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
    record: { type: 'boolean', default: false },
  },
})
const runs = Number(flags.runs)
if (!Number.isSafeInteger(runs) || runs < 1) end(2, '--runs must be a whole number from 1 up')
const unusable = flags.node.find((node) => spawnSync(node, ['--version']).status !== 0)
if (unusable !== undefined) end(2, `--node ${unusable} is no Node that can be started`)

const warmUps = 2
const folder = temporaryFolder(flags.folder)
const token = randomBytes(16).toString('hex')
const env = { ...environmentIn(folder), PLANTS_TOKEN: token, PLANTS_SERVE_TOKEN: token }
const [store, served] = [join(folder, 'store.db'), join(folder, 'served.db')]
const root = join(import.meta.dirname, '..')
const checkouts = [{ root, suffix: '' }]
if (flags.against) checkouts.push({ root: resolve(flags.against), suffix: ', before' })

const plants = join(root, 'bin/plants.js')
const server = await start([process.execPath, plants, 'serve', '--store', served, '--port', '0'], {
  env,
  log: join(folder, 'server.log'),
})
let nextId = 0
execFileSync(process.execPath, createArgs([plants], store)(), { env, stdio: 'ignore' }) // makes the store that sqlite3 inserts into
const others = othersOf().filter(isInstalled)
const fetched = flags.matrix
  ? versions.filter((version) => !version.startsWith('20')).map((v) => fetchNode(v))
  : []
const programs = [...others, ...[...flags.node, ...fetched].flatMap(onNode), ...executables()]

const [machine, moment] = [machineOf(folder), momentNow()]
for (let run = -warmUps; run < runs; run += 1) {
  for (const { title, argv, times } of programs) {
    const [command, ...args] = argv()
    const begin = performance.now()
    const { status, error, stderr } = spawnSync(command, args, { env })
    if (run >= 0) times.push(performance.now() - begin)
    if (status !== 0) end(1, `${title} ended with ${status ?? error}: ${stderr}`)
  }
}
await server.stop()

const rows = programs.map(({ title, times, beside, goal }) => {
  const other = programs.find((program) => program.title === beside)
  const ratio = ratioText(times, other?.times)
  const name = other?.title.replace(/^Node .*: /, '') ?? '-'
  return [title, spread(times), ratio, name, goalText(ratio, goal)]
})
const executable = findExecutable()
const size = executable
  ? `; the executable has ${numberText(statSync(executable).size / 1e6)} MB`
  : ''
const how = `${moment}; medians of ${runs} runs in turn, with the range of the middle 80 %${size}`
const tables = [[['process', 'ms', '×', 'of', 'goal'], ...rows]]
report('start', { machine, how, tables, isRecorded: flags.record })

/**
 * @param {string} title
 * @param {() => string[]} argv
 * @param {{ beside?: string, goal?: { most: number } }} [how] beside which program it is shown
 */
function programOf(title, argv, how) {
  return { title, argv, times: /** @type {number[]} */ ([]), ...how }
}

function createArgs(command, to) {
  const options = ['--name', 'Boston Fern', '--store', to]
  return () => [...command, 'create', '--id', idOfNext(), ...options]
}

function idOfNext() {
  nextId += 1
  return String(nextId)
}

/** `create` in a file and at a service, each beside another program, of which it takes at most so many times as long. */
function creates(title, command, besides, goals) {
  return [
    [`${title}: create`, store],
    [`${title}: create at a service`, server.url],
  ].map(([name, to], index) => {
    const how = { beside: besides[index], goal: { most: goals[index] } }
    return programOf(name, createArgs(command, to), how)
  })
}

function onNode(node) {
  const title = `Node ${execFileSync(node, ['-p', 'process.versions.node'], { env, encoding: 'utf8' }).trim()}`
  const bare = `${title}: -e 0`
  const goals = title.startsWith('Node 20.') ? [1.55, 2.2] : [1.45, 2.2]
  const ours = checkouts.map((checkout) =>
    creates(
      `${title}${checkout.suffix}`,
      [node, join(checkout.root, 'bin/plants.js')],
      [bare, bare],
      goals,
    ),
  )
  return [programOf(bare, () => [node, '-e', '0']), ...ours.flat()]
}

function executables() {
  const own = findExecutable()
  if (own === undefined) {
    print('The executable is left out. Make it with: npm run build:binary')
    return []
  }
  const files = checkouts.map(({ root: checkout, suffix }) => ({
    file: suffix ? join(checkout, 'release', basename(own)) : own,
    suffix,
  }))
  return files
    .filter(({ file }) => existsSync(file))
    .flatMap(({ file, suffix }) =>
      creates(`executable${suffix}`, [file], ['sqlite3: INSERT', 'curl: POST'], [3.3, 2.1]),
    )
}

function othersOf() {
  const headers = [`Authorization: Bearer ${token}`, 'Content-Type: application/json']
  const curl = ['curl', '-fsS', ...headers.flatMap((header) => ['-H', header]), '--data']
  const insert = () => `INSERT INTO plants (id, name) VALUES (${idOfNext()}, 'Boston Fern')`
  const commands = {
    'sqlite3: INSERT': () => ['sqlite3', store, `PRAGMA synchronous=FULL; ${insert()}`],
    'curl: POST': () => [
      ...curl,
      `{"id":${idOfNext()},"name":"Boston Fern"}`,
      `${server.url}/plants`,
    ],
    'gh --version': () => ['gh', '--version'],
    'sqlite-utils: INSERT': () => ['sqlite-utils', 'query', store, insert()],
  }
  return Object.entries(commands).map(([title, argv]) => programOf(title, argv))
}

function isInstalled({ argv }) {
  const [command] = argv()
  const isThere = spawnSync(command, ['--version'], { env }).error === undefined
  if (!isThere) print(`${command} is not installed, and left out`)
  return isThere
}
