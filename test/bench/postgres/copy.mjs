// COPY where there is no psql. Takes from or to, the address of the database, and the file that is copied from.
import { createReadStream, createWriteStream } from 'node:fs'
import { devNull } from 'node:os'
import { pipeline } from 'node:stream/promises'
import postgres from 'postgres'

const [direction, url, path] = process.argv.slice(2)
const sql = postgres(url, { max: 1, fetch_types: false })
if (direction === 'from') {
  await pipeline(createReadStream(path), await sql.unsafe('COPY plant_store.plants (id, name, tag) FROM STDIN').writable())
} else {
  const rows = await sql.unsafe('COPY (SELECT id, name, tag FROM plant_store.plants ORDER BY id) TO STDOUT').readable()
  await pipeline(rows, createWriteStream(devNull))
}
await sql.end()
