// Compares the service under load with a bare echo, which stores nothing, and with Fastify and
// better-sqlite3, which are as durable: npm run bench:serve [-- FLAG...]
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
import { buildGoalTable, createReporter, findMedian, formatRatio, formatSpread } from './report.mjs'
import { writeRows } from './rows.mjs'
import { generateLoad, startServer } from './server.mjs'

const flags = parseFlags({
  connections: [1, 64, 256],
  syncs: [0, 10],
  milliseconds: 2000,
  rounds: 3,
  filled: 1_000_000,
  peers: false,
  against: '',
  record: false,
})
const { connections: connectionCounts, syncs: syncDelaysMs, milliseconds, rounds } = flags

const folder = createTemporaryFolder()
const env = { ...createEnvironment(folder), PLANTS_SERVE_TOKEN: randomBytes(16).toString('hex') }
const store = join(folder, 'store.db')
const log = join(folder, 'server.log')
const echo = {
  title: 'echo',
  argv: [process.execPath, join(import.meta.dirname, 'echo.mjs')],
  files: [],
}
const services = listCheckouts(flags.against).map((checkout) =>
  describeService(`plants serve${checkout.suffix}`, checkout),
)
const [plants] = services
const fastifyServers = flags.peers ? [prepareFastify(folder, env)] : []
const figureTitles = { rate: 'requests/s', processorTimeUs: 'processor time', p99: 'p99' }

const method = `medians and ranges of ${rounds} interleaved rounds of ${milliseconds} ms`
const report = createReporter(folder, method, flags.record)
const creates = syncDelaysMs.flatMap((syncDelayMs) => {
  const servers =
    syncDelayMs === 0 ? [...fastifyServers, ...services, echo] : [...fastifyServers, plants]
  return [true, false].flatMap((keepsConnections) =>
    createCells({ syncDelayMs, keepsConnections }, servers),
  )
})
const reads = createCells({ syncDelayMs: 0, keepsConnections: true }, [
  ...fastifyServers,
  ...services,
  echo,
])
const randomCreates = [0, flags.filled].flatMap((filledCount) =>
  createCells({ syncDelayMs: 0, keepsConnections: true, hasRandomIds: true, filledCount }, [
    ...fastifyServers,
    ...services,
  ]),
)
await measureInTurns(creates)
await measureReads()
await fillStores()
await measureInTurns(randomCreates)

const tables = syncDelaysMs.map((syncDelayMs) => {
  const cells = creates.filter((cell) => cell.syncDelayMs === syncDelayMs)
  return buildTable(describeDisk(syncDelayMs), 'creates/s', cells)
})
report('creates', tables, drawLineChart('Creates per second', 'connections', buildLines(creates)))
report('reads', [buildTable('reads', 'GET/s', reads)])
report('random-creates', [buildTable('random ids', 'creates/s', randomCreates)])
report('service-goals', [buildGoalTable(listGoals())])

function describeService(title, { plants: program }) {
  const access = ['--port', '0', '--allow', 'create,read']
  const serve = ['serve', ...access, '--store', store]
  return {
    title,
    argv: [process.execPath, program, ...serve],
    files: [store],
    buildFillCommand: (list) => [process.execPath, program, 'import', list, '--store', store],
    countPlants: () =>
      Number(execFileSync(process.execPath, [program, 'count', '--store', store], { env })),
  }
}

/** Creates the cells of the table: each server under the load, over each count of connections. */
function createCells(load, servers) {
  return connectionCounts.flatMap((connections) =>
    servers.map((server) => ({ ...load, connections, server, turns: [] })),
  )
}

/** Makes a store of each server with plants, which each of its turns copies. */
async function fillStores() {
  const list = join(folder, 'filled.ndjson')
  await writeRows(list, flags.filled, 'ndjson')
  for (const { files, buildFillCommand } of [...fastifyServers, ...services]) {
    await run(buildFillCommand(list), env)
    for (const file of files) renameSync(file, `${file}.filled`)
  }
}

/**
 * Measures the cells in turn, as often as there are rounds.
 *
 * @param {object} [readLoad] names the plants to read, which exist and stay; without it, each turn
 *   creates plants, which are removed after it
 */
async function measureInTurns(cells, readLoad) {
  for (let round = 0; round < rounds; round += 1) {
    for (const cell of cells) {
      const { server, hasRandomIds, filledCount } = cell
      if (filledCount) for (const file of server.files) copyFileSync(`${file}.filled`, file)
      const loads = [1000, milliseconds].map((durationMs) => ({
        milliseconds: durationMs,
        hasRandomIds,
        ...readLoad,
      }))
      cell.turns.push(await measureServer(cell, loads))
      if (!readLoad) cell.server.files.forEach(removeFiles)
    }
  }
}

/** Fills stores with plants. Each request of the cells then reads one plant. */
async function measureReads() {
  const firstId = chooseFirstId()
  const existingCount = 10_000
  const readServers = [...fastifyServers, plants]
  const fillLoad = { syncDelayMs: 0, keepsConnections: true, connections: 64 }
  for (const server of readServers)
    await measureServer({ ...fillLoad, server }, [{ firstId, count: existingCount }])
  await measureInTurns(reads, { firstId, existingCount })
  for (const { files } of readServers) files.forEach(removeFiles)
}

/**
 * Puts a server under one load after the other, from its start to its end. Only the last load is
 * measured: those before it warm the server up.
 *
 * @returns what the load generator measured, and the µs of processor time for each request
 */
async function measureServer(cell, loads) {
  const { server, syncDelayMs, connections, keepsConnections, filledCount = 0 } = cell
  const command = [...buildStraceCommand(syncDelayMs), ...server.argv]
  const { url, pid, stop } = await startServer(command, { env, log })
  let figures, usBefore
  let expectedCount = loads[0].existingCount ?? filledCount
  for (const load of loads) {
    usBefore = readProcessorTimeUs(pid)
    const firstId = chooseFirstId()
    figures = await generateLoad({ url, connections, keepsConnections, firstId, ...load }, env)
    if (!load.existingCount) expectedCount += figures.acknowledged
  }
  const processorTimeUs = (readProcessorTimeUs(pid) - usBefore) / figures.acknowledged
  await stop()
  const storedCount = server.countPlants?.()
  if (storedCount !== undefined && storedCount !== expectedCount)
    throw new Error(`${server.title}: there are ${storedCount} plants`)
  return { ...figures, processorTimeUs }
}

/** strace stays in the background, so that the process is the server. */
function buildStraceCommand(syncDelayMs) {
  if (syncDelayMs === 0) return []
  const calls = 'fdatasync,fsync'
  const inject = `inject=${calls}:delay_exit=${syncDelayMs * 1000}`
  return `strace -D --seccomp-bpf -f -qq -o /dev/null -e trace=${calls} -e ${inject}`.split(' ')
}

/** Reads the µs of all threads of a process, by proc(5). */
function readProcessorTimeUs(pid) {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .split(') ')[1]
    .split(' ')
    .slice(11, 13)
  return (Number(user) + Number(system)) * 10_000 // 100 ticks a second
}

/**
 * Chooses a random id of 16 digits, so far from all others that no later turn uses the same ids.
 */
function chooseFirstId() {
  return String((1n << 52n) + BigInt(`0x${randomBytes(6).toString('hex')}`))
}

function buildTable(title, unit, cells) {
  const rows = cells.map((cell) => {
    const { connections, keepsConnections, server, filledCount } = cell
    const fastifyCell = findCell(cells, cell, fastifyServers[0])
    const fillNote = filledCount ? `, ${filledCount.toLocaleString('en-US')} before` : ''
    const name = `${connections} ${keepsConnections ? 'kept' : 'new'}${fillNote}, ${server.title}`
    const ratesAndTimes = ['rate', 'processorTimeUs'].flatMap((figure) => {
      const values = listFigures(cell, figure)
      const fastifyValues = fastifyCell && listFigures(fastifyCell, figure)
      return [formatSpread(values), formatRatio(values, fastifyValues)]
    })
    return [name, ...ratesAndTimes, ...formatLatencies(cell)]
  })
  const heading = [title, unit, '× Fastify', 'µs of processor time', '× Fastify']
  return [[...heading, 'p50, ms', 'p99, ms'], ...rows]
}

/** The goals of the service are over kept connections. */
function listGoals() {
  const slowestMs = Math.max(...syncDelaysMs)
  const [peer] = fastifyServers
  const goals = [
    {
      cells: creates,
      connections: 1,
      comparedServer: peer,
      figure: 'processorTimeUs',
      atMost: 1.2,
    },
    {
      cells: creates,
      connections: 64,
      syncDelayMs: slowestMs,
      comparedServer: peer,
      figure: 'rate',
      atLeast: 27,
    },
    { cells: creates, connections: 64, comparedServer: echo, figure: 'rate', atLeast: 0.5 },
    { cells: creates, connections: 256, comparedServer: peer, figure: 'p99', atMost: 1 },
    { cells: reads, connections: 64, comparedServer: peer, figure: 'processorTimeUs', atMost: 0.8 },
  ]
  return goals.flatMap(
    ({ cells, connections, syncDelayMs = 0, comparedServer, figure, ...goal }) => {
      const load = { syncDelayMs, keepsConnections: true, connections }
      const plantsCell = findCell(cells, load, plants)
      const comparedCell = findCell(cells, load, comparedServer)
      // A run with other counts of connections has no such cell.
      if (!plantsCell || !comparedCell) return []
      const request = cells === reads ? 'GET' : 'create'
      return {
        title: `${connections} kept, ${request}, ${describeDisk(syncDelayMs)}`,
        figure: figureTitles[figure],
        comparedTitle: comparedServer.title,
        measured: formatRatio(listFigures(plantsCell, figure), listFigures(comparedCell, figure)),
        goal,
      }
    },
  )
}

/**
 * Finds the cell of a server with the same load.
 *
 * @param {{
 *   syncDelayMs: number, keepsConnections: boolean, connections: number, filledCount?: number
 * }} load
 */
function findCell(cells, load, server) {
  const { syncDelayMs, keepsConnections, connections, filledCount } = load
  return cells.find(
    (cell) =>
      cell.syncDelayMs === syncDelayMs &&
      cell.keepsConnections === keepsConnections &&
      cell.connections === connections &&
      cell.filledCount === filledCount &&
      cell.server === server,
  )
}

/** Builds a line for each disk and server, over kept connections. */
function buildLines(cells) {
  const lines = {}
  for (const { syncDelayMs, keepsConnections, connections, server, turns } of cells) {
    if (!keepsConnections) continue
    const label = syncDelayMs === 0 ? server.title : `${server.title}, ${describeDisk(syncDelayMs)}`
    lines[label] ??= { label, isOurs: server === plants, points: [] }
    lines[label].points.push([connections, findMedian(turns.map(({ rate }) => rate))])
  }
  return Object.values(lines)
}

function formatLatencies(cell) {
  return ['p50', 'p99'].map((figure) => formatSpread(listFigures(cell, figure)))
}

function listFigures({ turns }, figure) {
  return turns.map((turn) => turn[figure])
}

function describeDisk(syncDelayMs) {
  return syncDelayMs === 0 ? 'this disk' : `each sync ${syncDelayMs} ms longer`
}
