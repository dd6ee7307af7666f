// What a server can take: statements of 1000 rows, one after the other on each of 4 connections. Takes the address of
// the database, seconds, and the server's process; tells rows a second as JSON, with microseconds of the processor for
// each.
import pg from 'pg'
import { processorOfFamily } from '../processor.mjs'

const [url, seconds, pid] = process.argv.slice(2)
const connections = 4
const rows = 1000
const texts = (text) => `'{${Array(rows).fill(`"${text}"`)}}'::text[]`
const others = `${texts('Boston Fern')}, ${texts('shade')}`

const pool = new pg.Pool({ connectionString: url, max: connections })
let id = 1_000_000_000_000_000
let count = 0
await pool.query('SELECT 1')
const [start, before] = [performance.now(), processorOfFamily(pid)]
await Promise.all(Array.from({ length: connections }, insert))
const elapsed = (performance.now() - start) / 1000
const databaseCpu = ((processorOfFamily(pid) - before) * 1e6) / count
const { user, system } = process.cpuUsage()
process.stdout.write(JSON.stringify({ rate: count / elapsed, databaseCpu, cpu: (user + system) / count }))
await pool.end()

async function insert() {
  while (performance.now() - start < seconds * 1000) {
    const ids = Array.from({ length: rows }, (_, index) => id + index)
    id += rows
    await pool.query(
      `INSERT INTO plant_store.plants (id, name, tag) SELECT * FROM unnest('{${ids}}'::bigint[], ${others}) ON CONFLICT DO NOTHING RETURNING id`,
    )
    count += rows
  }
}
