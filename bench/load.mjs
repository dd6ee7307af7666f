// Generates load with raw sockets, in a process of its own so that the server is what is measured. Takes its orders as
// JSON in argv:
//   url, pid          of the server
//   base              the first id, as text; the others have as many digits
//   existing          plants are read, at random, of so many ids from `base` on; without it, plants are created
//   connections       how many there are at the same time
//   isKept            whether a connection sends one request after the other; otherwise each request has a new one
//   rate              an open loop: so many requests a second, at random times, whether or not the server keeps up;
//                     without it, a closed loop: each connection sends again as soon as it is answered
//   warmUp, seconds   what is not measured, and what is; or
//   count             so many requests, all measured
//   watchesMemory     whether the server's memory is noted
// Prints JSON: how many requests were acknowledged, how many a second, p50 and p99 in ms, and the server's resident
// memory in kB after every hundredth of `count`. A latency begins when a request is due, also when it waits for a
// connection, as in wrk2.
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'

const orders = JSON.parse(process.argv[2])
const { url, pid, base, existing, connections, isKept, rate, watchesMemory } = orders
const { warmUp = 0, seconds = Infinity, count = Infinity } = orders
const { hostname, port, host } = new URL(url)
const template = Buffer.from(existing ? reading() : creating())
const idOffset = template.indexOf(base)
const watchInterval = 10_000 // ms

const begin = performance.now() + warmUp * 1000
const end = begin + seconds * 1000
const latencies = []
const memory = []
const waiting = [] // in an open loop, when requests were due that no connection was free for
const idle = []
let taken = 0
let created = 0
let acknowledged = 0
let state = 12345

watch()
for (let index = 0; index < connections; index += 1) call()
if (rate) arrive(begin - warmUp * 1000)
if (seconds < Infinity) setTimeout(finishIfIdle, end - performance.now() + 1)

/** Sends one request at a time, as long as there are any. */
function call() {
  const bytes = Buffer.from(template)
  let due
  let answer = ''
  let socket
  const next = () => {
    due = takeDue()
    if (due === undefined) rest(next)
    else if (isKept) send()
    else dial(send)
  }
  const send = () => {
    bytes.write(String(nextId()), idOffset, 'latin1')
    answer = ''
    socket.write(bytes)
  }
  const read = (size, buffer) => {
    answer += buffer.latin1Slice(0, size)
    if (!isComplete(answer)) return true
    if (!/^HTTP\/1\.1 20[01] /.test(answer)) finish(`It answered ${answer}`)
    note(due)
    if (!isKept) socket.destroy()
    next()
    return true
  }
  const onread = { buffer: Buffer.allocUnsafe(16_384), callback: read }
  const dial = (ready) => {
    socket = connect({ host: hostname, port: Number(port), noDelay: true, onread }, ready)
    socket.on('error', ({ message }) => finish(message))
    socket.on('end', () => finish('The connection was closed'))
  }
  if (isKept) dial(next)
  else next()
}

/** When the next request is due; undefined when none is. */
function takeDue() {
  if (rate) return waiting.shift()
  const now = performance.now()
  if (now >= end || taken === count) return undefined
  taken += 1
  return now
}

/** Adds what is due by now, and comes back in the next turn of the event loop: a timer would be a millisecond late. */
function arrive(from) {
  const now = performance.now()
  let due = from
  while (due <= now && due < end) {
    waiting.push(due)
    idle.shift()?.() // in turn, so that no server closes a kept connection for being idle
    due -= (Math.log(random()) / rate) * 1000 // as callers come that know nothing of each other
  }
  if (due < end) setImmediate(arrive, due)
}

/** Above 0 and up to 1, the same every time, so that each server gets the same load. */
function random() {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return (state + 1) / 2 ** 32
}

function rest(next) {
  idle.push(next)
  finishIfIdle()
}

function finishIfIdle() {
  if (idle.length === connections && (performance.now() >= end || taken === count)) finish()
}

function nextId() {
  created += 1
  return BigInt(base) + BigInt(existing ? Math.floor(Math.random() * existing) : created - 1)
}

function reading() {
  return `GET /plants/${base} HTTP/1.1\r\n${headers()}\r\n`
}

function creating() {
  const body = `{"id":${base},"name":"Boston Fern","tag":"shade"}`
  const length = body.length
  return `POST /plants HTTP/1.1\r\n${headers()}Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`
}

function headers() {
  const connection = isKept ? '' : 'Connection: close\r\n'
  return `Host: ${host}\r\n${connection}Authorization: Bearer ${process.env.PLANTS_SERVE_TOKEN}\r\n`
}

function isComplete(answer) {
  const body = answer.indexOf('\r\n\r\n') + 4
  return (
    body > 3 &&
    answer.length >=
      body + Number(/\r\ncontent-length: *(?<length>\d+)/i.exec(answer)?.groups?.length)
  )
}

function note(due) {
  acknowledged += 1
  if (due >= begin && due < end) latencies.push(performance.now() - due)
  if (watchesMemory && acknowledged % Math.floor(count / 100) === 0) memory.push(memoryOf(pid))
}

/** proc(5), so Linux alone. */
function memoryOf(process) {
  const status = readFileSync(`/proc/${process}/status`, 'latin1')
  return Number(/VmRSS:\s+(?<size>\d+)/.exec(status)?.groups?.size)
}

/** Finds out when a server has stopped answering. */
function watch() {
  let last = -1
  setInterval(() => {
    if (acknowledged === last) finish(`It did not answer for ${watchInterval / 1000} seconds`)
    last = acknowledged
  }, watchInterval)
}

function finish(failure) {
  const sorted = Float64Array.from(latencies).sort()
  const [p50, p99] = [0.5, 0.99].map((part) => sorted[Math.floor(sorted.length * part)])
  const elapsed = (Math.min(performance.now(), end) - begin) / 1000
  process.stdout.write(
    JSON.stringify({ failure, acknowledged, rate: sorted.length / elapsed, p50, p99, memory }),
  )
  process.exit()
}
