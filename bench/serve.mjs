// The service under load beside a bare echo, which has the same HTTP server and stores nothing:
// npm run bench:serve [-- FLAG...]
//   --only creates,open,reads   some of these; peers, which are fetched, and memory are measured only when they are named
//   --connections 1,64,1000  --syncs 0,10  --seconds 3  --rounds 3
//                     of creates: how many connections, and how many ms are added to each sync of the disk, by strace
//   --creates 5000000 how many plants are created while memory is watched
//   --against DIR     another checkout, which is built, in turn with this one
//   --folder PATH     where the temporary folder is made, and so which disk is written to
//   --record          writes bench/README.md
// The servers take turns, so that a machine that slows down slows all of them. After each turn it is checked that the
// plants are there that were acknowledged. New connections use up the ports of loopback: at most 28,000 a minute.
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { end, environmentIn, temporaryFolder } from './common.mjs'
import { peerServers } from './peers.mjs'
import { goalText, machineOf, momentNow, numberText, ratioText, report, spread } from './report.mjs'
import { load, start } from './server.mjs'

const parts = {
  creates: measureCreates,
  open: measureOpenLoop,
  reads: measureReads,
  peers: measurePeers,
  memory: measureMemory,
}
const { values: flags } = parseArgs({
  options: {
    only: { type: 'string', default: 'creates,open,reads' },
    connections: { type: 'string', default: '1,64,1000' },
    syncs: { type: 'string', default: '0,10' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' },
    creates: { type: 'string', default: '5000000' },
    against: { type: 'string' },
    folder: { type: 'string', default: tmpdir() },
    record: { type: 'boolean', default: false },
  },
})
const [counts, syncs] = [flags.connections, flags.syncs].map((list) => list.split(',').map(Number))
const [seconds, rounds, creates] = [flags.seconds, flags.rounds, flags.creates].map(Number)
const names = flags.only.split(',')
const isRecorded = flags.record
if (![...counts, seconds, rounds, creates].every((n) => n > 0))
  end(2, '--connections, --seconds, --rounds and --creates must be above 0')
if (!names.every((name) => Object.hasOwn(parts, name)))
  end(2, `--only must be some of ${Object.keys(parts).join()}`)
if (!syncs.every((ms) => ms >= 0)) end(2, '--syncs must be 0 or above')
if ((names.includes('memory') || names.includes('peers')) && process.platform !== 'linux')
  end(2, 'The memory and the processor time of a server are read from /proc of Linux')
const isSlowed = (names.includes('creates') || names.includes('open')) && syncs.some((ms) => ms > 0)
if (isSlowed && spawnSync('strace', ['--version']).error)
  end(2, 'A slow disk needs strace. Install it, or measure this disk alone: --syncs 0')

const folder = temporaryFolder(flags.folder)
const env = { ...environmentIn(folder), PLANTS_SERVE_TOKEN: randomBytes(16).toString('hex') }
const store = join(folder, 'store.db')
const log = join(folder, 'server.log')
const echo = {
  title: 'echo',
  argv: [process.execPath, join(import.meta.dirname, 'echo.mjs')],
  files: [],
}
const services = [serviceOf('plants serve', join(import.meta.dirname, '..'))]
if (flags.against) services.push(serviceOf('plants serve, before', resolve(flags.against)))
const reference = services.at(-1)
/** the goal for creates over 64 new connections, by the ms that are added to each sync */
const leastOfEcho = { 2: 0.5, 10: 0.35 }
const kinds = { kept: true, new: false } // connections, and whether they are kept

const [machine, moment] = [machineOf(folder), momentNow()]
const how = `${moment}; medians of ${rounds} rounds of ${seconds} s in turn, with their ranges`
for (const name of names) await parts[name]()

function serviceOf(title, root) {
  const plants = join(root, 'bin/plants.js')
  return {
    title,
    argv: [
      process.execPath,
      plants,
      ...'serve --port 0 --allow create,read --store'.split(' '),
      store,
    ],
    files: [store],
    countPlants: () =>
      Number(execFileSync(process.execPath, [plants, 'count', '--store', store], { env })),
  }
}

/** The closed loop: each connection sends again as soon as it is answered. */
async function measureCreates() {
  const cells = []
  for (const sync of syncs) {
    const servers = sync === syncs[0] ? [echo, ...services] : services // the echo has no disk
    for (const kind of Object.keys(kinds))
      for (const connections of counts)
        for (const server of servers) cells.push({ sync, kind, connections, server, turns: [] })
  }
  await takeTurns(cells, ({ kind, connections }) => ({ connections, isKept: kinds[kind] }))
  const rowOf = ({ sync, kind, connections, server, turns }) => {
    const ofEcho = cells.find(
      (cell) => cell.server === echo && cell.kind === kind && cell.connections === connections,
    )
    const goal =
      connections === 64 && kind === 'new' && sync in leastOfEcho
        ? { least: leastOfEcho[sync] }
        : undefined
    return [`${connections} ${kind}`, server.title, ...figuresOf(turns, ofEcho.turns, goal)]
  }
  const tables = syncs.map((sync) => [
    [diskOf(sync), 'server', 'creates/s', '× echo', 'goal', 'p50, ms', 'p99, ms'],
    ...cells.filter((cell) => cell.sync === sync).map(rowOf),
  ])
  report('creates', { machine, how, tables, isRecorded })
}

/** The open loop: requests come at half of what 64 connections reach in a closed one, whether or not they are answered. */
async function measureOpenLoop() {
  const cells = []
  for (const sync of syncs) {
    for (const [kind, isKept] of Object.entries(kinds)) {
      const { rate } = await take(reference, sync, { connections: 64, isKept, ...timing() })
      for (const server of services) cells.push({ sync, kind, server, half: rate / 2, turns: [] })
    }
  }
  await takeTurns(cells, ({ kind, half }) => ({
    connections: kinds[kind] ? 64 : 1000, // as many new ones as may be waiting
    isKept: kinds[kind],
    rate: half,
  }))
  const rows = cells.map(({ sync, kind, server, half, turns }) => [
    `${diskOf(sync)}, ${kind}`,
    server.title,
    numberText(half),
    spread(series(turns, 'rate')),
    ...latenciesOf(turns),
  ])
  const heading = ['disk, connections', 'server', 'due/s', 'creates/s', 'p50, ms', 'p99, ms']
  report('open', { machine, how, tables: [[heading, ...rows]], isRecorded })
}

/** Reads of one plant, over 64 kept connections. */
async function measureReads() {
  const cells = [echo, ...services].map((server) => ({ connections: 64, server, turns: [] }))
  await takeReads([reference], cells)
  const rows = cells.map(({ server, turns }) => {
    const goal = server === echo ? undefined : { least: 0.65 }
    return [server.title, ...figuresOf(turns, cells[0].turns, goal)]
  })
  const heading = ['64 kept connections', 'GET/s', '× echo', 'goal', 'p50, ms', 'p99, ms']
  report('reads', { machine, how, tables: [[heading, ...rows]], isRecorded })
}

/**
 * Beside what people would use instead. The processor time of a request is compared, which other work on the machine
 * disturbs least, of all threads of the server.
 */
async function measurePeers() {
  const description = join(folder, 'openapi.json')
  writeFileSync(
    description,
    execFileSync(services[0].argv[0], [services[0].argv[1], 'openapi'], { env }),
  )
  const [fastify, ...others] = peerServers(folder, description, env)
  const creates = [1, 64].flatMap((connections) =>
    [fastify, ...services, ...others].map((server) => ({ connections, server, turns: [] })),
  )
  await takeTurns(creates, ({ connections }) => ({ connections, isKept: true }))
  const reads = [64, 256].flatMap((connections) =>
    [fastify, ...services].map((server) => ({ connections, server, turns: [] })),
  )
  await takeReads([fastify, reference], reads)

  const tableOf = (title, cells, goalOf) => {
    const rows = cells.map(({ connections, server, turns }) => {
      const first = cells.find((cell) => cell.connections === connections)
      const [times, ofFirst] = [turns, first.turns].map((some) => series(some, 'processorTime'))
      const ratio = ratioText(times, ofFirst)
      const goal = services.includes(server) ? goalOf(connections) : undefined
      const figures = [spread(series(turns, 'rate')), spread(times), ratio, goalText(ratio, goal)]
      return [`${connections} kept`, server.title, ...figures, ...latenciesOf(turns)]
    })
    const figures = ['requests/s', 'µs of processor time', '× Fastify', 'goal']
    return [[title, 'server', ...figures, 'p50, ms', 'p99, ms'], ...rows]
  }
  const tables = [
    tableOf('creates', creates, () => ({ most: 1 })),
    tableOf('reads', reads, () => undefined),
  ]
  report('peers', { machine, how, tables, isRecorded })
}

/** Memory must not grow with the number of creates. */
async function measureMemory() {
  const orders = { connections: 64, isKept: true, count: creates, watchesMemory: true }
  const { memory, rate } = await take(services[0], 0, orders)
  const fifths = memory.filter((_, index) => index % 20 === 19)
  const rows = fifths.map((size, index) => [
    numberText(((index + 1) * creates) / 5),
    ((size * 1024) / 1e6).toFixed(1),
  ])
  const speed = `${moment}; ${numberText(rate)} creates a second over 64 kept connections`
  report('memory', { machine, how: speed, tables: [[['creates', 'MB'], ...rows]], isRecorded })
}

/** Fills stores with plants, of which the cells read one at a time. */
async function takeReads(filled, cells) {
  const [base, existing] = [firstId(), 10_000]
  const filling = { base, connections: 64, isKept: true, count: existing }
  for (const server of filled) await take(server, 0, filling, { isLast: false })
  const ordersOf = ({ connections }) => ({ base, existing, connections, isKept: true })
  await takeTurns(cells, ordersOf, { isLast: false, expected: existing })
  for (const server of filled) removeFiles(server)
}

async function takeTurns(cells, ordersOf, how) {
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, cell] of cells.entries()) {
      if (process.stderr.isTTY)
        process.stderr.write(`\rround ${round + 1}, ${index + 1} of ${cells.length}\x1b[K\r`)
      const [sync, orders] = [cell.sync ?? 0, { ...ordersOf(cell), ...timing() }]
      cell.turns.push(await take(cell.server, sync, orders, how))
    }
  }
}

/**
 * Puts a server under load, from its start to its end.
 *
 * @param sync ms that are added to each sync
 * @param {{ isLast?: boolean, expected?: number }} [how] whether the files of the server are
 *   removed, and how many plants there must be, if not those that were acknowledged
 * @returns what the load generator found, and the µs of processor time for each request, on Linux
 */
async function take(server, sync, orders, how = {}) {
  const { isLast = true, expected } = how
  const { argv, address } = (await server.prepare?.()) ?? server
  const { url, pid, stop } = await start([...slowed(sync), ...argv], { env, log, address })
  const before = processorTimeOf(pid)
  const answers = await load({ url, pid, base: firstId(), ...orders }, env)
  const found = {
    ...answers,
    processorTime: (processorTimeOf(pid) - before) / answers.acknowledged,
  }
  await stop()
  if (!server.countPlants) return found
  const [stored, due] = [server.countPlants(), expected ?? found.acknowledged]
  if (stored !== due)
    throw new Error(`${server.title}: there are ${stored} plants instead of ${due}`)
  if (isLast) removeFiles(server)
  return found
}

/** strace that stays in the background, so that the process is the server. */
function slowed(sync) {
  if (sync === 0) return []
  const calls = 'fdatasync,fsync'
  const inject = `inject=${calls}:delay_exit=${sync * 1000}`
  return `strace -D --seccomp-bpf -f -qq -o /dev/null -e trace=${calls} -e ${inject}`.split(' ')
}

/** In µs, of all its threads, by proc(5), so on Linux alone; elsewhere NaN. */
function processorTimeOf(pid) {
  if (process.platform !== 'linux') return NaN
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .split(') ')[1]
    .split(' ')
    .slice(11, 13)
  return (Number(user) + Number(system)) * 10_000 // 100 ticks a second
}

function timing() {
  return { warmUp: Math.min(1, seconds), seconds }
}

/** 16 digits, which no later turn comes near. */
function firstId() {
  return String((1n << 52n) + BigInt(`0x${randomBytes(6).toString('hex')}`))
}

function removeFiles({ files }) {
  for (const file of files)
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true })
}

function series(turns, key) {
  return turns.map((turn) => turn[key])
}

function figuresOf(turns, ofEcho, goal) {
  const rates = series(turns, 'rate')
  const ratio = ratioText(rates, series(ofEcho, 'rate'))
  return [spread(rates), ratio, goalText(ratio, goal), ...latenciesOf(turns)]
}

function latenciesOf(turns) {
  return [spread(series(turns, 'p50')), spread(series(turns, 'p99'))]
}

function diskOf(sync) {
  return sync === 0 ? 'this disk' : `each sync ${sync} ms longer`
}
