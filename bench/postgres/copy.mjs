// COPY where there is no psql. Takes from or to, the address of the database, and the file that is copied from.
import { createReadStream, createWriteStream } from 'node:fs'
import { devNull } from 'node:os'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'

const [direction, url, path] = process.argv.slice(2)
const client = new pg.Client(url)
await client.connect()
if (direction === 'from') {
  await pipeline(createReadStream(path), client.query(copyFrom('COPY plant_store.plants (id, name, tag) FROM STDIN')))
} else {
  const rows = client.query(copyTo('COPY (SELECT id, name, tag FROM plant_store.plants ORDER BY id) TO STDOUT'))
  await pipeline(rows, createWriteStream(devNull))
}
await client.end()
