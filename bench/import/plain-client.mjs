// Creates the plants of an NDJSON file at a service with node:http alone: node plain-client.mjs FILE URL CONNECTIONS,
// with the token in PLANTS_TOKEN. It sends the same headers as plants import and reads the answers, but retries, checks
// and reports nothing.
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { Agent, request } from 'node:http'
import { createInterface } from 'node:readline'

const [, , file, url, connections] = process.argv
const agent = new Agent({ keepAlive: true, maxSockets: Number(connections), scheduling: 'fifo' })
const { hostname: host, port } = new URL(url)
const authorization = `Bearer ${process.env['PLANTS_TOKEN']}`
const lines = createInterface({ input: createReadStream(file) })[Symbol.asyncIterator]()

await Promise.all(Array.from({ length: Number(connections) }, createNext))
agent.destroy()

async function createNext() {
  for (let line = await lines.next(); !line.done; line = await lines.next()) await create(line.value)
}

function create(body) {
  return new Promise((resolve, reject) => {
    const headers = {
      accept: 'application/json',
      authorization,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
      'user-agent': 'plain-client',
    }
    const outgoing = request({ agent, host, port, method: 'POST', path: '/plants', headers }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`The service answered ${response.statusCode}`))
      response.resume().on('end', resolve)
    })
    outgoing.on('error', reject).end(body)
  })
}
