// The service under load, beside a bare echo, which stores nothing, and Fastify with better-sqlite3, which is as
// durable: npm run bench:serve [-- FLAG...]
//   --connections 1,64,256  --syncs 0,10  --milliseconds 2000  --rounds 3
//                     how many connections, and how many ms strace adds to each sync of the disk
//   --peers           Fastify besides, which is fetched and compiled
//   --against DIR     another checkout, which is built, in turn with this one
//   --record          writes bench/README.md
// The servers take turns, so that a machine that slows down slows all of them. After each turn it is checked that the
// plants are there that were acknowledged. New connections use up the ports of loopback: at most 28,000 a minute.
//
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { lineChart } from './charts.mjs'
import { checkoutsOf, environmentIn, flagsOf, temporaryFolder, withoutFiles } from './common.mjs'
import { fastifyServer } from './peers.mjs'
import { goalText, median, ratioText, reporterOf, spread } from './report.mjs'
import { load, start } from './server.mjs'

const { connections, syncs, milliseconds, rounds, peers, against, record } = flagsOf({
  connections: [1, 64, 256],
  syncs: [0, 10],
  milliseconds: 2000,
  rounds: 3,
  peers: false,
  against: '',
  record: false,
})

const folder = temporaryFolder()
const env = { ...environmentIn(folder), PLANTS_SERVE_TOKEN: randomBytes(16).toString('hex') }
const store = join(folder, 'store.db')
const log = join(folder, 'server.log')
const echo = {
  title: 'echo',
  argv: [process.execPath, join(import.meta.dirname, 'echo.mjs')],
  files: [],
}
const services = checkoutsOf(against).map((each) => serviceOf(`plants serve${each.suffix}`, each))
const [plants] = services
const silent = serviceOf('plants serve, no log', ...checkoutsOf(''), '--log-level', 'warn')
const fastify = peers ? [fastifyServer(folder, env)] : []
const figures = { rate: 'a second', processorTime: 'processor time', p99: 'p99' }

const how = `medians of ${rounds} rounds of ${milliseconds} ms in turn`
const report = reporterOf(folder, how, record)
const kinds = [true, false] // whether connections are kept
const creates = syncs.flatMap((sync) => {
  const servers = sync === 0 ? [...fastify, ...services, silent, echo] : [...fastify, plants]
  return kinds.flatMap((isKept) => cellsOf({ sync, isKept }, servers))
})
const reads = cellsOf({ sync: 0, isKept: true }, [...fastify, ...services, echo])
await takeTurns(creates)
await takeReads()

const tables = syncs.map((sync) => {
  const cells = creates.filter((cell) => cell.sync === sync)
  return tableOf(diskOf(sync), 'creates/s', cells)
})
report('creates', tables, lineChart('Creates a second', 'connections', linesOf(creates)))
report('reads', [tableOf('reads', 'GET/s', reads)])
report('service-goals', [goalTable()])

function serviceOf(title, { plants: program }, ...more) {
  const serve = ['serve', '--port', '0', '--allow', 'create,read', '--store', store, ...more]
  return {
    title,
    argv: [process.execPath, program, ...serve],
    files: [store],
    countPlants: () =>
      Number(execFileSync(process.execPath, [program, 'count', '--store', store], { env })),
  }
}

function cellsOf(how, servers) {
  return connections.flatMap((count) =>
    servers.map((server) => ({ ...how, connections: count, server, turns: [] })),
  )
}

/** @param {object} [reading] orders of reads, whose plants are there and stay */
async function takeTurns(cells, reading) {
  for (let round = 0; round < rounds; round += 1) {
    for (const cell of cells) {
      const orders = [1000, milliseconds].map((time) => ({ milliseconds: time, ...reading }))
      cell.turns.push(await take(cell, orders))
      if (!reading) cell.server.files.forEach(withoutFiles)
    }
  }
}

/** Fills stores with plants, of which the cells read one at a time. */
async function takeReads() {
  const [base, existing] = [firstId(), 10_000]
  const filled = [...fastify, plants]
  const filling = { sync: 0, isKept: true, connections: 64 }
  for (const server of filled) await take({ ...filling, server }, [{ base, count: existing }])
  await takeTurns(reads, { base, existing })
  for (const { files } of filled) files.forEach(withoutFiles)
}

/**
 * Puts a server under one load after the other, from its start to its end.
 *
 * @returns what the load generator found at last, and the µs of processor time for each request of then
 */
async function take({ server, sync, connections: count, isKept }, loads) {
  const { url, pid, stop } = await start([...slowed(sync), ...server.argv], { env, log })
  let found, before
  let created = 0
  for (const orders of loads) {
    before = processorTimeOf(pid)
    found = await load({ url, connections: count, isKept, base: firstId(), ...orders }, env)
    created += orders.existing ? 0 : found.acknowledged
  }
  const processorTime = (processorTimeOf(pid) - before) / found.acknowledged
  await stop()
  const stored = server.countPlants?.()
  if (stored !== undefined && stored !== (loads[0].existing ?? created))
    throw new Error(`${server.title}: there are ${stored} plants`)
  return { ...found, processorTime }
}

/** strace that stays in the background, so that the process is the server. */
function slowed(sync) {
  if (sync === 0) return []
  const calls = 'fdatasync,fsync'
  const inject = `inject=${calls}:delay_exit=${sync * 1000}`
  return `strace -D --seccomp-bpf -f -qq -o /dev/null -e trace=${calls} -e ${inject}`.split(' ')
}

/** In µs, of all its threads, by proc(5). */
function processorTimeOf(pid) {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .split(') ')[1]
    .split(' ')
    .slice(11, 13)
  return (Number(user) + Number(system)) * 10_000 // 100 ticks a second
}

/** 16 digits, which no later turn comes near. */
function firstId() {
  return String((1n << 52n) + BigInt(`0x${randomBytes(6).toString('hex')}`))
}

function tableOf(title, unit, cells) {
  const rows = cells.map((cell) => {
    const { connections: count, isKept, server } = cell
    const other = sibling(cells, cell, ...fastify)
    const [rates, times] = [series(cell, 'rate'), series(cell, 'processorTime')]
    const name = `${count} ${isKept ? 'kept' : 'new'}, ${server.title}`
    const ofRates = [spread(rates), ratioText(rates, other && series(other, 'rate'))]
    const ofTimes = [spread(times), ratioText(times, other && series(other, 'processorTime'))]
    return [name, ...ofRates, ...ofTimes, ...latenciesOf(cell)]
  })
  const heading = [title, unit, '× Fastify', 'µs of processor time', '× Fastify']
  return [[...heading, 'p50, ms', 'p99, ms'], ...rows]
}

/** What the service is to reach, over kept connections. */
function goalTable() {
  const slow = Math.max(...syncs)
  const wanted = [
    { cells: creates, count: 1, beside: fastify[0], name: 'processorTime', most: 1.2 },
    { cells: creates, count: 64, sync: slow, beside: fastify[0], name: 'rate', least: 27 },
    { cells: creates, count: 64, beside: echo, name: 'rate', least: 0.5 },
    { cells: creates, count: 64, beside: silent, name: 'processorTime', most: 1.08 },
    { cells: creates, count: 256, beside: fastify[0], name: 'p99', most: 1 },
    { cells: reads, count: 64, beside: fastify[0], name: 'processorTime', most: 0.8 },
  ]
  const rows = wanted.flatMap(({ cells, count, sync = 0, beside, name, ...goal }) => {
    const cell = { sync, isKept: true, connections: count }
    const [own, other] = [plants, beside].map((server) => sibling(cells, cell, server))
    if (!own || !other) return [] // such connections are not measured
    const ratio = ratioText(series(own, name), series(other, name))
    const what = `${count} kept, ${cells === reads ? 'GET' : 'create'}, ${diskOf(sync)}`
    return [[what, figures[name], beside?.title ?? '', ratio, goalText(ratio, goal)]]
  })
  return [['plants serve', 'figure', 'beside', '×', 'goal'], ...rows]
}

/** The cell of a server with the same load. */
function sibling(cells, { sync, isKept, connections: count }, server) {
  return cells.find(
    (cell) =>
      cell.sync === sync &&
      cell.isKept === isKept &&
      cell.connections === count &&
      cell.server === server,
  )
}

/** A line for each disk and server, over kept connections. */
function linesOf(cells) {
  const lines = {}
  for (const { sync, isKept, connections: count, server, turns } of cells) {
    if (!isKept || server === silent) continue
    const label = sync === 0 ? server.title : `${server.title}, ${diskOf(sync)}`
    lines[label] ??= { label, isOurs: server === plants, points: [] }
    lines[label].points.push([count, median(turns.map(({ rate }) => rate))])
  }
  return Object.values(lines)
}

function latenciesOf(cell) {
  return ['p50', 'p99'].map((name) => spread(series(cell, name)))
}

function series({ turns }, name) {
  return turns.map((turn) => turn[name])
}

function diskOf(sync) {
  return sync === 0 ? 'this disk' : `each sync ${sync} ms longer`
}
