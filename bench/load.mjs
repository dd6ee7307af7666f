// This generates load with raw sockets, in a process of its own, so that the server is what is
// measured. Each connection sends again as soon as it has the response. The load is described by
// JSON in argv:
//   url                is that of the server
//   firstId            is a text; the other ids have as many digits
//   hasRandomIds       says whether the ids of creates are in no order
//   existingCount      is how many plants from `firstId` on are read, at random; without it, plants
//                      are created
//   connections        is how many there are at the same time
//   keepsConnections   says whether a connection sends one request after another; otherwise each
//                      request has a new one
//   milliseconds, or count   says for how long, or how many requests
// It prints JSON: how many requests were acknowledged, how many a second, and p50 and p99 in ms.
import { connect } from 'node:net'

const load = JSON.parse(process.argv[2])
const { url, firstId, hasRandomIds, existingCount, connections, keepsConnections } = load
const { milliseconds = Infinity, count = Infinity } = load
const { hostname, port, host } = new URL(url)
const template = Buffer.from(existingCount ? formatGet() : formatPost())
const idOffset = template.indexOf(firstId)

const startedAtMs = performance.now()
const endsAtMs = startedAtMs + milliseconds
const latenciesMs = []
let sentCount = 0
let acknowledgedCount = 0
let activeConnections = connections

for (let index = 0; index < connections; index += 1) sendRequests()

/** Sends one request at a time over a connection, as long as there are any. */
function sendRequests() {
  const bytes = Buffer.from(template)
  let sentAtMs = 0
  let response = ''
  let socket
  const sendNext = () => {
    sentAtMs = performance.now()
    if (sentAtMs >= endsAtMs || sentCount === count) endConnection()
    else if (keepsConnections) send()
    else open(send)
  }
  const send = () => {
    bytes.write(String(takeNextId()), idOffset, 'latin1')
    response = ''
    socket.write(bytes)
  }
  const receive = (size, buffer) => {
    response += buffer.latin1Slice(0, size)
    if (!isComplete(response)) return true
    if (!/^HTTP\/1\.1 20[01] /.test(response)) finish(`It answered ${response}`)
    countAcknowledged(sentAtMs)
    if (!keepsConnections) socket.destroy()
    sendNext()
    return true
  }
  const onread = { buffer: Buffer.allocUnsafe(16_384), callback: receive }
  const open = (onConnect) => {
    socket = connect({ host: hostname, port: Number(port), noDelay: true, onread }, onConnect)
    socket.on('error', ({ message }) => finish(message))
    socket.on('end', () => finish('The connection was closed'))
  }
  if (keepsConnections) open(sendNext)
  else sendNext()
}

function endConnection() {
  activeConnections -= 1
  if (activeConnections === 0) finish()
}

function takeNextId() {
  sentCount += 1
  if (hasRandomIds) return Math.floor(10 ** (firstId.length - 1) * (1 + 8 * Math.random()))
  return (
    BigInt(firstId) +
    BigInt(existingCount ? Math.floor(Math.random() * existingCount) : sentCount - 1)
  )
}

function formatGet() {
  return `GET /plants/${firstId} HTTP/1.1\r\n${formatHeaders()}\r\n`
}

function formatPost() {
  const body = `{"id":${firstId},"name":"Boston Fern","tag":"shade"}`
  const type = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  return `POST /plants HTTP/1.1\r\n${formatHeaders()}${type}\r\n${body}`
}

function formatHeaders() {
  const connection = keepsConnections ? '' : 'Connection: close\r\n'
  return `Host: ${host}\r\n${connection}Authorization: Bearer ${process.env.PLANTS_SERVE_TOKEN}\r\n`
}

function isComplete(response) {
  const bodyStart = response.indexOf('\r\n\r\n') + 4
  if (bodyStart < 4) return false
  const { length } = /\r\ncontent-length: *(?<length>\d+)/i.exec(response)?.groups ?? {}
  return response.length >= bodyStart + Number(length)
}

function countAcknowledged(sentAtMs) {
  acknowledgedCount += 1
  latenciesMs.push(performance.now() - sentAtMs)
}

/** Prints the figures, and exits. After a failure, the figures end at the failure. */
function finish(failure) {
  const sortedMs = Float64Array.from(latenciesMs).sort()
  const [p50, p99] = [0.5, 0.99].map((share) => sortedMs[Math.floor(sortedMs.length * share)])
  const elapsedSeconds = (performance.now() - startedAtMs) / 1000
  const rate = sortedMs.length / elapsedSeconds
  const figures = { failure, acknowledged: acknowledgedCount, rate, p50, p99 }
  process.stdout.write(JSON.stringify(figures))
  process.exit()
}
