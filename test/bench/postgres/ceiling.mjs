// What a server can take: statements of 1000 rows, one after the other on each of 4 connections. Takes the address of the database, seconds,
// and the server's process; tells rows a second as JSON, with microseconds of the processor for each.
import postgres from 'postgres'
import { processorOfFamily } from '../processor.mjs'

const [url, seconds, pid] = process.argv.slice(2)
const connections = 4
const rows = 1000
const texts = (text) => `'{${Array(rows).fill(`"${text}"`)}}'::text[]`
const others = `${texts('Boston Fern')}, ${texts('shade')}`

const sql = postgres(url, { max: connections, fetch_types: false })
let id = 1_000_000_000_000_000
let count = 0
await sql.unsafe('SELECT 1')
const [start, before] = [performance.now(), processorOfFamily(pid)]
await Promise.all(Array.from({ length: connections }, insert))
const elapsed = (performance.now() - start) / 1000
const databaseCpu = ((processorOfFamily(pid) - before) * 1e6) / count
const { user, system } = process.cpuUsage()
process.stdout.write(JSON.stringify({ rate: count / elapsed, databaseCpu, cpu: (user + system) / count }))
await sql.end()

async function insert() {
  while (performance.now() - start < seconds * 1000) {
    const ids = Array.from({ length: rows }, (_, index) => id + index)
    id += rows
    await sql.unsafe(
      `INSERT INTO plant_store.plants (id, name, tag) SELECT * FROM unnest('{${ids}}'::bigint[], ${others}) ON CONFLICT DO NOTHING RETURNING id`,
    )
    count += rows
  }
}
