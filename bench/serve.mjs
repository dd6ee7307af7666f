// The service under load, beside a bare echo, which stores nothing, and Fastify with
// better-sqlite3, which is as durable: npm run bench:serve [-- FLAG...]
//   --connections 1,64,256  --syncs 0,10  --milliseconds 2000  --rounds 3
//                     how many connections, and how many ms strace adds to each sync of the disk
//   --filled 1000000  how many plants are in a store before creates with random ids
//   --peers           also Fastify, which is fetched and compiled
//   --against DIR     another checkout, which is built, in turn with this one
//   --record          writes bench/README.md
// The servers take turns, so that a machine that slows down slows all of them. After each turn it
// is checked that the plants are there that were acknowledged. New connections use up the ports of
// loopback: at most 28,000 a minute.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { copyFileSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { drawLineChart } from './charts.mjs'
import {
  createEnvironment,
  createTemporaryFolder,
  listCheckouts,
  parseFlags,
  removeFiles,
  run,
} from './common.mjs'
import { prepareFastify } from './peers.mjs'
import { createReporter, findMedian, formatGoal, formatRatio, formatSpread } from './report.mjs'
import { writeRows } from './rows.mjs'
import { load, start } from './server.mjs'

const { connections, syncs, milliseconds, rounds, filled, peers, against, record } = parseFlags({
  connections: [1, 64, 256],
  syncs: [0, 10],
  milliseconds: 2000,
  rounds: 3,
  filled: 1_000_000,
  peers: false,
  against: '',
  record: false,
})

const folder = createTemporaryFolder()
const env = { ...createEnvironment(folder), PLANTS_SERVE_TOKEN: randomBytes(16).toString('hex') }
const store = join(folder, 'store.db')
const log = join(folder, 'server.log')
const echo = {
  title: 'echo',
  argv: [process.execPath, join(import.meta.dirname, 'echo.mjs')],
  files: [],
}
const services = listCheckouts(against).map((each) =>
  describeService(`plants serve${each.suffix}`, each),
)
const [plants] = services
const silent = describeService('plants serve, no log', ...listCheckouts(''), '--log-level', 'warn')
const fastify = peers ? [prepareFastify(folder, env)] : []
const figures = { rate: 'a second', processorTime: 'processor time', p99: 'p99' }

const how = `medians of ${rounds} rounds of ${milliseconds} ms in turn`
const report = createReporter(folder, how, record)
const creates = syncs.flatMap((sync) => {
  const servers = sync === 0 ? [...fastify, ...services, silent, echo] : [...fastify, plants]
  return [true, false].flatMap((isKept) => createCells({ sync, isKept }, servers))
})
const reads = createCells({ sync: 0, isKept: true }, [...fastify, ...services, echo])
const randomCreates = [0, filled].flatMap((before) =>
  createCells({ sync: 0, isKept: true, areRandom: true, before }, [...fastify, ...services]),
)
await takeTurns(creates)
await takeReads()
await fillStores()
await takeTurns(randomCreates)

const tables = syncs.map((sync) => {
  const cells = creates.filter((cell) => cell.sync === sync)
  return buildTable(describeDisk(sync), 'creates/s', cells)
})
report('creates', tables, drawLineChart('Creates a second', 'connections', buildLines(creates)))
report('reads', [buildTable('reads', 'GET/s', reads)])
report('random-creates', [buildTable('random ids', 'creates/s', randomCreates)])
report('service-goals', [buildGoalTable()])

function describeService(title, { plants: program }, ...more) {
  const serve = ['serve', '--port', '0', '--allow', 'create,read', '--store', store, ...more]
  return {
    title,
    argv: [process.execPath, program, ...serve],
    files: [store],
    fill: (rows) => [process.execPath, program, 'import', rows, '--store', store],
    countPlants: () =>
      Number(execFileSync(process.execPath, [program, 'count', '--store', store], { env })),
  }
}

function createCells(how, servers) {
  return connections.flatMap((count) =>
    servers.map((server) => ({ ...how, connections: count, server, turns: [] })),
  )
}

/** Makes a store of each server with plants, which each of its turns copies. */
async function fillStores() {
  const rows = join(folder, 'filled.ndjson')
  await writeRows(rows, filled, 'ndjson')
  for (const { files, fill } of [...fastify, ...services]) {
    await run(fill(rows), env)
    for (const file of files) renameSync(file, `${file}.filled`)
  }
}

/** @param {object} [reading] has the orders of reads, whose plants are there and stay */
async function takeTurns(cells, reading) {
  for (let round = 0; round < rounds; round += 1) {
    for (const cell of cells) {
      const { server, areRandom, before } = cell
      if (before) for (const file of server.files) copyFileSync(`${file}.filled`, file)
      const orders = [1000, milliseconds].map((time) => ({
        milliseconds: time,
        areRandom,
        ...reading,
      }))
      cell.turns.push(await take(cell, orders))
      if (!reading) cell.server.files.forEach(removeFiles)
    }
  }
}

/** Fills stores with plants, of which the cells read one at a time. */
async function takeReads() {
  const [base, existing] = [chooseFirstId(), 10_000]
  const readable = [...fastify, plants]
  const filling = { sync: 0, isKept: true, connections: 64 }
  for (const server of readable) await take({ ...filling, server }, [{ base, count: existing }])
  await takeTurns(reads, { base, existing })
  for (const { files } of readable) files.forEach(removeFiles)
}

/**
 * Puts a server under one load after the other, from its start to its end.
 *
 * @returns what the load generator measured at last, and the µs of processor time for each request
 *   of then
 */
async function take({ server, sync, connections: count, isKept, before: stored = 0 }, loads) {
  const command = [...buildStraceCommand(sync), ...server.argv]
  const { url, pid, stop } = await start(command, { env, log })
  let found, before
  let created = stored
  for (const orders of loads) {
    before = readProcessorTime(pid)
    found = await load({ url, connections: count, isKept, base: chooseFirstId(), ...orders }, env)
    created += orders.existing ? 0 : found.acknowledged
  }
  const processorTime = (readProcessorTime(pid) - before) / found.acknowledged
  await stop()
  const counted = server.countPlants?.()
  if (counted !== undefined && counted !== (loads[0].existing ?? created))
    throw new Error(`${server.title}: there are ${counted} plants`)
  return { ...found, processorTime }
}

/** strace stays in the background, so that the process is the server. */
function buildStraceCommand(sync) {
  if (sync === 0) return []
  const calls = 'fdatasync,fsync'
  const inject = `inject=${calls}:delay_exit=${sync * 1000}`
  return `strace -D --seccomp-bpf -f -qq -o /dev/null -e trace=${calls} -e ${inject}`.split(' ')
}

/** Reads the µs of all threads of a process, by proc(5). */
function readProcessorTime(pid) {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .split(') ')[1]
    .split(' ')
    .slice(11, 13)
  return (Number(user) + Number(system)) * 10_000 // 100 ticks a second
}

/** The id has 16 digits, and no later turn comes near it. */
function chooseFirstId() {
  return String((1n << 52n) + BigInt(`0x${randomBytes(6).toString('hex')}`))
}

function buildTable(title, unit, cells) {
  const rows = cells.map((cell) => {
    const { connections: count, isKept, server } = cell
    const other = findCell(cells, cell, fastify[0])
    const [rates, times] = [listFigures(cell, 'rate'), listFigures(cell, 'processorTime')]
    const full = cell.before ? `, ${cell.before.toLocaleString('en-US')} before` : ''
    const name = `${count} ${isKept ? 'kept' : 'new'}${full}, ${server.title}`
    const ofRates = [formatSpread(rates), formatRatio(rates, other && listFigures(other, 'rate'))]
    const ofTimes = [
      formatSpread(times),
      formatRatio(times, other && listFigures(other, 'processorTime')),
    ]
    return [name, ...ofRates, ...ofTimes, ...formatLatencies(cell)]
  })
  const heading = [title, unit, '× Fastify', 'µs of processor time', '× Fastify']
  return [[...heading, 'p50, ms', 'p99, ms'], ...rows]
}

/** The goals of the service are over kept connections. */
function buildGoalTable() {
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
    const [own, other] = [plants, beside].map((server) => findCell(cells, cell, server))
    if (!own || !other) return [] // such connections are not measured
    const ratio = formatRatio(listFigures(own, name), listFigures(other, name))
    const what = `${count} kept, ${cells === reads ? 'GET' : 'create'}, ${describeDisk(sync)}`
    return [[what, figures[name], beside?.title ?? '', ratio, formatGoal(ratio, goal)]]
  })
  return [['plants serve', 'figure', 'beside', '×', 'goal'], ...rows]
}

/**
 * Finds the cell of a server with the same load.
 *
 * @param {{ sync: number, isKept: boolean, connections: number, before?: number }} load
 */
function findCell(cells, load, server) {
  const { sync, isKept, connections: count, before } = load
  return cells.find(
    (cell) =>
      cell.sync === sync &&
      cell.isKept === isKept &&
      cell.connections === count &&
      cell.before === before &&
      cell.server === server,
  )
}

/** Builds a line for each disk and server, over kept connections. */
function buildLines(cells) {
  const lines = {}
  for (const { sync, isKept, connections: count, server, turns } of cells) {
    if (!isKept || server === silent) continue
    const label = sync === 0 ? server.title : `${server.title}, ${describeDisk(sync)}`
    lines[label] ??= { label, isOurs: server === plants, points: [] }
    lines[label].points.push([count, findMedian(turns.map(({ rate }) => rate))])
  }
  return Object.values(lines)
}

function formatLatencies(cell) {
  return ['p50', 'p99'].map((name) => formatSpread(listFigures(cell, name)))
}

function listFigures({ turns }, name) {
  return turns.map((turn) => turn[name])
}

function describeDisk(sync) {
  return sync === 0 ? 'this disk' : `each sync ${sync} ms longer`
}
