// What a command costs as a whole process, from exec to exit: npm run bench:start [-- FLAG...]
//   --runs 30       how often each is started, after 2 that are not counted
//   --node PATH     the Node that runs plants; it may be repeated
//   --matrix        Node 22, 24 and 26 besides, which are fetched from the registry
//   --against DIR   another checkout, which is built, in turn with this one
//   --folder PATH   where the temporary folder is made, and so which disk is written to
//   --record        writes docs/benchmarks.md
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
import { exampleNames } from './rows.mjs'
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
execFileSync(process.execPath, createArgs([plants], store)('Fern'), { env, stdio: 'ignore' }) // makes the store that sqlite3 inserts into
const others = othersOf().filter(isInstalled)
const fetched = flags.matrix
  ? versions.filter((version) => !version.startsWith('20')).map((v) => fetchNode(v))
  : []
const programs = [...others, ...[...flags.node, ...fetched].flatMap(onNode), ...executables()]

const [machine, moment] = [machineOf(folder), momentNow()]
for (let run = -warmUps; run < runs; run += 1) {
  for (const { title, argv, times } of programs) {
    for (const [script, name] of Object.entries(exampleNames)) {
      const [command, ...args] = argv(name)
      const begin = performance.now()
      const { status, error, stderr } = spawnSync(command, args, { env })
      if (run >= 0) times[script] = [...(times[script] ?? []), performance.now() - begin]
      if (status !== 0) end(1, `${title} ended with ${status ?? error}: ${stderr}`)
    }
  }
}
await server.stop()

const rows = programs.map(({ title, times, beside, goal }) => {
  const other = programs.find((program) => program.title === beside)
  const ratio = other ? ratioText(times.English, other.times.English) : '-'
  const umlauts = ratioText(times.umlauts, times.English)
  return [
    title,
    spread(times.English),
    ratio,
    other ? beside.replace(/^Node .*: /, '') : '-',
    goalText(ratio, goal),
    umlauts,
  ]
})
const executable = findExecutable()
const size = executable
  ? `; the executable has ${numberText(statSync(executable).size / 1e6)} MB`
  : ''
const how = `${moment}; medians of ${runs} runs in turn, with the range of the middle 80 %${size}`
const tables = [[['process', 'ms', '×', 'of', 'goal', 'umlauts, × English'], ...rows]]
report('start', { machine, how, tables, isRecorded: flags.record })

function createArgs(command, to) {
  return (name) => {
    nextId += 1
    return [...command, 'create', '--id', String(nextId), '--name', name, '--store', to]
  }
}

/** `create` in a file and at a service, each beside another program, of which it takes at most so many times as long. */
function creates(title, command, besides, goals) {
  return [
    [`${title}: create`, store],
    [`${title}: create at a service`, server.url],
  ].map(([name, to], index) => ({
    title: name,
    argv: createArgs(command, to),
    beside: besides[index],
    goal: { most: goals[index] },
    times: {},
  }))
}

function onNode(node) {
  const title = `Node ${execFileSync(node, ['-p', 'process.versions.node'], { env, encoding: 'utf8' }).trim()}`
  const bare = `${title}: -e 0`
  const goals = title.startsWith('Node 20.') ? [1.9, 2.3] : [1.6, 2.1]
  const ours = checkouts.map((checkout) =>
    creates(
      `${title}${checkout.suffix}`,
      [node, join(checkout.root, 'bin/plants.js')],
      [bare, bare],
      goals,
    ),
  )
  return [{ title: bare, argv: () => [node, '-e', '0'], times: {} }, ...ours.flat()]
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
  const authorization = [
    '-H',
    `Authorization: Bearer ${token}`,
    '-H',
    'Content-Type: application/json',
  ]
  const insert = (name) => {
    nextId += 1
    const statement = `INSERT INTO plants (id, name) VALUES (${nextId}, '${name}')`
    return ['sqlite3', store, `PRAGMA synchronous=FULL; ${statement}`]
  }
  const post = (name) => {
    nextId += 1
    return [
      'curl',
      '-fsS',
      ...authorization,
      '--data',
      `{"id":${nextId},"name":"${name}"}`,
      `${server.url}/plants`,
    ]
  }
  const insertByUtils = (name) => {
    nextId += 1
    return [
      'sqlite-utils',
      'query',
      store,
      `INSERT INTO plants (id, name) VALUES (${nextId}, '${name}')`,
    ]
  }
  return [
    { title: 'sqlite3: INSERT', command: 'sqlite3', argv: insert, times: {} },
    { title: 'curl: POST', command: 'curl', argv: post, times: {} },
    { title: 'gh --version', command: 'gh', argv: () => ['gh', '--version'], times: {} },
    { title: 'sqlite-utils: INSERT', command: 'sqlite-utils', argv: insertByUtils, times: {} },
  ]
}

function isInstalled({ command }) {
  const isThere = spawnSync(command, ['--version'], { env }).error === undefined
  if (!isThere) print(`${command} is not installed, and left out`)
  return isThere
}
