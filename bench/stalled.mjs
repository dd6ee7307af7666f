// What a caller can make the service hold: node bench/stalled.mjs [FLAG...]
//   --connections 150  --requests 1500   each connection sends so many requests at once, and reads nothing
//   --program PATH     another program than this one, such as an earlier version or the single file
// The service has a heap of 256 MiB. Every scenario gets one of its own; exit code 1 when a bar is missed. Needs Linux
// and openssl.
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { Agent as SecureAgent, request as secureRequest } from 'node:https'
import { connect } from 'node:net'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectSecurely } from 'node:tls'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { killAll, track } from './children.mjs'
import { print, printColumns, textOf } from './figures.mjs'
import { cleanEnvironment, homeIn, temporaryFolder } from './place.mjs'
import { memoryOf } from './processor.mjs'

if (!isMainThread) {
  await stall(workerData)
  await new Promise(() => {})
}

const { values: flags } = parseArgs({
  options: {
    connections: { type: 'string', default: '150' },
    requests: { type: 'string', default: '1500' },
    program: { type: 'string', default: join(import.meta.dirname, '../bin/plants.js') },
  },
})
const connections = Number(flags.connections)
const requests = Number(flags.requests)
const requestTimeout = 5000 // ms
const folder = temporaryFolder(tmpdir(), killAll)
const token = randomBytes(16).toString('hex')
const env = {
  ...cleanEnvironment(),
  ...homeIn(folder),
  NODE_OPTIONS: '--max-old-space-size=256',
  PLANTS_SERVE_TOKEN: token,
}
const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
const how = [
  '-x509',
  '-newkey',
  'ec',
  '-pkeyopt',
  'ec_paramgen_curve:prime256v1',
  '-nodes',
  '-days',
  '2',
  '-subj',
  '/CN=localhost',
]
execFileSync('openssl', ['req', ...how, '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert], {
  stdio: 'ignore',
})

let nextId = 1
const authorization = `Authorization: Bearer ${token}\r\n`
const post = (headers, body) =>
  `POST /plants HTTP/1.1\r\nHost: x\r\n${headers}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
const plant = () => {
  nextId += 1
  return `{"id":${nextId},"name":"Fern"}`
}
const many = (make) => Buffer.from(Array.from({ length: requests }, make).join(''))
const chunks = `POST /plants HTTP/1.1\r\nHost: x\r\n${authorization}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`
const inBytes = Buffer.from(chunks + '1\r\n \r\n'.repeat(1_048_576))

/** How many connections send what; `bar` is in MiB, of all memory or of what is more than idle. */
const scenarios = [
  { title: 'GET /openapi.json', make: () => many(() => 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n') },
  { title: 'GET /nowhere: 404', make: () => many(() => 'GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n') },
  { title: 'POST without a token: 401', make: () => many(() => post('', '{"id":1,"name":"Fern"}')) },
  { title: 'POST with a token: creates', make: () => many(() => post(authorization, plant())) },
  { title: 'POST with a token: 422', make: () => many(() => post(authorization, '{"id":"x"}')) },
  {
    title: 'GET /openapi.json over TLS',
    isSecure: true,
    make: () => many(() => 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'),
  },
  { title: 'POST over TLS: creates', isSecure: true, make: () => many(() => post(authorization, plant())) },
  { title: 'a body of 1 MiB in chunks of 1 byte', make: () => inBytes, count: 1, moreThanIdle: 60 },
  { title: '5 such bodies', make: () => inBytes, count: 5, moreThanIdle: 60 },
]

const rows = []
for (const scenario of scenarios) rows.push(await measure(scenario))
print(
  `${connections} connections, ${requests} requests on each, nothing read; --request-timeout ${requestTimeout / 1000}s; Node ${process.version}\n`,
)
printColumns([
  ['', 'idle MiB', 'peak MiB', 'slowest answer ms', 'closed after s', 'bars'],
  ...rows.map(({ cells }) => cells),
])
if (loadavg()[0] > availableParallelism())
  print('\nTHE MACHINE WAS BUSY WITH SOMETHING ELSE: measure again when it is not')
process.exitCode = rows.every(({ isMet }) => isMet) ? 0 : 1

async function measure({ title, make, isSecure = false, count = connections, moreThanIdle }) {
  const args = [
    'serve',
    '--port',
    '0',
    '--store',
    join(folder, `${rows.length}.db`),
    '--request-timeout',
    `${requestTimeout}ms`,
  ]
  if (isSecure) args.push('--tls-cert', cert, '--tls-key', key)
  const child = track(
    spawn(flags.program, [...args, '--log-level', 'warn'], { env, stdio: ['ignore', 'pipe', 'ignore'] }),
  )
  const exited = once(child, 'exit')
  const [address] = await once(createInterface(child.stdout), 'line')
  const agent = isSecure ? new SecureAgent({ keepAlive: true, ca: readFileSync(cert) }) : new Agent({ keepAlive: true })
  for (let warmUp = 0; warmUp < 20; warmUp += 1) await answerTime(address, agent)
  const idle = mebibytesOf(child.pid, 'VmRSS')
  const files = filesOf(child.pid)
  const sender = new Worker(new URL(import.meta.url), {
    workerData: { address, isSecure, cert, bytes: Array.from({ length: count }, make) },
  })
  await once(sender, 'message')
  const start = performance.now()
  let slowest = 0
  let closedAfter = Number.NaN
  while (!hasEnded(child) && performance.now() - start < 3 * requestTimeout) {
    const time = await answerTime(address, agent)
    if (!(time <= slowest)) slowest = time
    if (filesOf(child.pid) <= files) {
      closedAfter = (performance.now() - start) / 1000
      break
    }
    await wait(20)
  }
  const peak = mebibytesOf(child.pid, 'VmHWM')
  const isGone = hasEnded(child)
  await sender.terminate()
  agent.destroy()
  child.kill()
  await exited
  const missed = [
    isGone && 'THE SERVICE HAS ENDED',
    !(peak < 300) && 'memory',
    moreThanIdle !== undefined && !(peak - idle < moreThanIdle) && `${moreThanIdle} MiB more than idle`,
    !(slowest <= 100) && 'others wait',
    Number.isNaN(closedAfter) && 'still open',
  ].filter(Boolean)
  const cells = [
    title,
    textOf(idle, 0),
    textOf(peak, 0),
    textOf(slowest, 0),
    textOf(closedAfter, 1),
    missed.join(', ') || 'met',
  ]
  return { cells, isMet: missed.length === 0 }
}

function hasEnded({ exitCode, signalCode }) {
  return exitCode !== null || signalCode !== null
}

/**
 * Opens connections that send and never read, and reports when all are open. A thread, so that the time of others is
 * measured beside it.
 */
async function stall({ address, isSecure, cert, bytes }) {
  const place = { host: '127.0.0.1', port: Number(new URL(address).port), allowHalfOpen: true }
  const ca = isSecure && readFileSync(cert)
  const sockets = bytes.map(() =>
    (isSecure ? connectSecurely({ ...place, ca }) : connect(place)).on('error', () => undefined).pause(),
  )
  await Promise.all(sockets.map((socket) => once(socket, isSecure ? 'secureConnect' : 'connect')))
  parentPort.postMessage('open')
  for (const [index, socket] of sockets.entries()) socket.write(bytes[index])
}

/** ms until another caller is answered; not a number when it is not. */
async function answerTime(address, agent) {
  const start = performance.now()
  const ask = agent instanceof SecureAgent ? secureRequest : request
  try {
    const asking = ask(`${address}/openapi.json`, { agent, signal: AbortSignal.timeout(10_000) }).end()
    const [response] = await once(asking, 'response')
    response.resume()
    await once(response, 'end')
    return performance.now() - start
  } catch {
    return Number.NaN
  }
}

/** How many files and sockets a process has open. */
function filesOf(pid) {
  return existsSync(`/proc/${pid}/fd`) ? readdirSync(`/proc/${pid}/fd`).length : Number.NaN
}

function mebibytesOf(pid, field) {
  return memoryOf(pid, field) / 1024
}
