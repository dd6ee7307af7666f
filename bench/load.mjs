// This generates load with raw sockets, in a process of its own, so that the server is what is
// measured. Each connection sends again as soon as it has the response. The orders are JSON in
// argv:
//   url               is that of the server
//   base              is the first id, as text; the others have as many digits
//   areRandom         says whether the ids of creates are in no order
//   existing          is how many ids from `base` on are read, at random; without it, plants are
//                     created
//   connections       is how many there are at the same time
//   isKept            says whether a connection sends one request after the other; otherwise each
//                     request has a new one
//   milliseconds, or count   says for how long, or how many requests
// It prints JSON: how many requests were acknowledged, how many a second, and p50 and p99 in ms.
import { connect } from 'node:net'

const orders = JSON.parse(process.argv[2])
const { url, base, areRandom, existing, connections, isKept } = orders
const { milliseconds = Infinity, count = Infinity } = orders
const { hostname, port, host } = new URL(url)
const template = Buffer.from(existing ? formatGet() : formatPost())
const idOffset = template.indexOf(base)

const begin = performance.now()
const end = begin + milliseconds
const latencies = []
let sent = 0
let acknowledged = 0
let active = connections

for (let index = 0; index < connections; index += 1) call()

/** Sends one request at a time, as long as there are any. */
function call() {
  const bytes = Buffer.from(template)
  let sentAt = 0
  let answer = ''
  let socket
  const next = () => {
    sentAt = performance.now()
    if (sentAt >= end || sent === count) rest()
    else if (isKept) send()
    else dial(send)
  }
  const send = () => {
    bytes.write(String(takeNextId()), idOffset, 'latin1')
    answer = ''
    socket.write(bytes)
  }
  const read = (size, buffer) => {
    answer += buffer.latin1Slice(0, size)
    if (!isComplete(answer)) return true
    if (!/^HTTP\/1\.1 20[01] /.test(answer)) finish(`It answered ${answer}`)
    note(sentAt)
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

function rest() {
  active -= 1
  if (active === 0) finish()
}

function takeNextId() {
  sent += 1
  if (areRandom) return Math.floor(10 ** (base.length - 1) * (1 + 8 * Math.random()))
  return BigInt(base) + BigInt(existing ? Math.floor(Math.random() * existing) : sent - 1)
}

function formatGet() {
  return `GET /plants/${base} HTTP/1.1\r\n${formatHeaders()}\r\n`
}

function formatPost() {
  const body = `{"id":${base},"name":"Boston Fern","tag":"shade"}`
  const type = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  return `POST /plants HTTP/1.1\r\n${formatHeaders()}${type}\r\n${body}`
}

function formatHeaders() {
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

function note(sentAt) {
  acknowledged += 1
  latencies.push(performance.now() - sentAt)
}

function finish(failure) {
  const sorted = Float64Array.from(latencies).sort()
  const [p50, p99] = [0.5, 0.99].map((part) => sorted[Math.floor(sorted.length * part)])
  const elapsed = (performance.now() - begin) / 1000
  process.stdout.write(
    JSON.stringify({ failure, acknowledged, rate: sorted.length / elapsed, p50, p99 }),
  )
  process.exit()
}
