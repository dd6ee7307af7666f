// 64 keep-alive connections that each ask again as soon as they are answered. A process of its own, with raw sockets,
// so that what is measured is the server. Takes its orders as JSON in argv, tells what came of them as JSON on stdout.
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { cpus } from 'node:os'
import { memoryOf, processorOf, processorOfFamily } from './processor.mjs'

/**
 * Seconds as text; `count` ends the run where it is given, `seconds` where it is not; `base` is the first id,
 * `isRandom` has others of as many digits, and `hasKeys` an Idempotency-Key each. With `existing`, plants are read
 * instead, at random, of so many ids from `base` on. The connections are spread over the servers; `database` is the
 * process of what is behind them, if any.
 */
const { servers, database, status, base, existing, warmUp, seconds, count, isRandom, hasKeys } = JSON.parse(
  process.argv[2],
)
const pids = servers.map(({ pid }) => pid)
const noKey = '-'.repeat(36)
const head = Object.entries({
  Authorization: `Bearer ${process.env.PLANTS_SERVE_TOKEN}`,
  'Content-Type': 'application/json',
  ...(hasKeys && { 'Idempotency-Key': noKey }),
}).map(([name, value]) => `${name}: ${value}\r\n`)

const connections = 64
const maxRate = 200_000 // a second, far above what a process of Node can answer
const latencies = new Float64Array(count ?? maxRate * seconds)
const memory = [] // kB, as often as `memoryStep` plants were acknowledged
const memoryStep = 10_000

let created = 0n
let acknowledged = 0
let measured = 0
let open = connections
let isMeasuring = count !== undefined
let isStopping = false
let before = usage()
let after

for (let index = 0; index < connections; index += 1) talk(new URL(servers[index % servers.length].url))
watch()
if (count === undefined) {
  setTimeout(begin, warmUp * 1000)
  setTimeout(end, (warmUp + seconds) * 1000)
}

function begin() {
  before = usage()
  isMeasuring = true
}

function end() {
  after ??= usage()
  isMeasuring = false
  isStopping = true
}

/** One connection: asks, reads the whole answer, asks again. */
function talk({ hostname, port, host }) {
  const bytes = request(host)
  const idOffset = bytes.indexOf(base)
  const keyOffset = bytes.indexOf(noKey)
  let sent = 0
  let answer = ''
  const ask = () => {
    bytes.write(String(nextId()), idOffset, 'latin1')
    if (hasKeys) bytes.write(randomUUID(), keyOffset, 'latin1')
    sent = performance.now()
    socket.write(bytes)
  }
  const read = (size, buffer) => {
    answer += buffer.latin1Slice(0, size)
    if (!isComplete(answer)) return true
    check(answer)
    note(performance.now() - sent)
    answer = ''
    if (isStopping) socket.destroy()
    else ask()
    return true
  }
  const socket = connect(
    { host: hostname, port, noDelay: true, onread: { buffer: Buffer.allocUnsafe(65_536), callback: read } },
    ask,
  )
  socket.on('error', ({ message }) => finish(message))
  socket.on('end', () => finish('The connection was closed'))
  socket.on('close', () => {
    open -= 1
    if (open === 0) finish()
  })
}

function nextId() {
  if (existing) return BigInt(base) + BigInt(Math.floor(Math.random() * existing))
  if (isRandom) return 1e15 + Math.floor(Math.random() * 8e15)
  created += 1n
  return BigInt(base) + created - 1n
}

/** The bytes of a request. Every id has as many digits as the first, so only they change. */
function request(host) {
  if (existing) return Buffer.from(`GET /plants/${base} HTTP/1.1\r\nHost: ${host}\r\n${head[0]}\r\n`, 'latin1')
  const body = `{"id":${base},"name":"Boston Fern","tag":"shade"}`
  return Buffer.from(
    `POST /plants HTTP/1.1\r\nHost: ${host}\r\n${head.join('')}Content-Length: ${body.length}\r\n\r\n${body}`,
    'latin1',
  )
}

function isComplete(answer) {
  const body = answer.indexOf('\r\n\r\n') + 4
  if (body === 3) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(answer)
  return length ? answer.length >= body + Number(length[1]) : answer.endsWith('\r\n0\r\n\r\n')
}

function check(answer) {
  if (!answer.startsWith(`HTTP/1.1 ${status} `)) finish(`It answered ${answer}`)
}

function note(latency) {
  acknowledged += 1
  if (isMeasuring && measured < latencies.length) {
    latencies[measured] = latency
    measured += 1
  }
  if (count === undefined) return
  if (acknowledged % memoryStep === 0) memory.push(memoryOf(pids[0], 'VmRSS'))
  if (acknowledged > count - connections) end()
}

/** A server that has stopped answering is found out. */
function watch() {
  let last = -1
  setInterval(() => {
    if (acknowledged === last) finish('It did not answer for 10 seconds')
    last = acknowledged
  }, 10_000)
}

function finish(failure) {
  process.stdout.write(JSON.stringify({ failure, acknowledged, ...(failure ? {} : figures()) }))
  process.exit()
}

/**
 * Milliseconds, requests in a second, microseconds of the servers' processor and of the database's, kB of the first;
 * and how busy this process and others were, 1 being one processor.
 */
function figures() {
  const elapsed = (after.time - before.time) / 1000
  const [server, behind, own, all] = ['server', 'behind', 'own', 'all'].map((key) => after[key] - before[key])
  const sorted = latencies.subarray(0, measured).sort()
  return {
    rate: measured / elapsed,
    p50: sorted[Math.floor(measured * 0.5)],
    p99: sorted[Math.floor(measured * 0.99)],
    cpu: (server * 1e6) / measured,
    databaseCpu: (behind * 1e6) / measured,
    peak: memoryOf(pids[0], 'VmHWM'),
    load: own / elapsed,
    others: Math.max(0, all - server - behind - own) / elapsed,
    memory,
  }
}

/**
 * The time in ms, and seconds of processor that the servers, what is behind them, this process and the whole machine
 * have used.
 */
function usage() {
  const { user, system } = process.cpuUsage()
  const all = cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0) / 1000
  const server = pids.reduce((sum, pid) => sum + processorOf(pid), 0)
  const behind = database === undefined ? 0 : processorOfFamily(database)
  return { time: performance.now(), server, behind, own: (user + system) / 1e6, all }
}
