// A statement and a commit for each row. Takes the address of the database, a file of NDJSON, and how many of its rows.
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import pg from 'pg'

const [url, path, most] = process.argv.slice(2)
const client = new pg.Client(url)
await client.connect()
let left = Number(most)
for await (const line of createInterface(createReadStream(path))) {
  if (left === 0) break
  const { name, tag } = JSON.parse(line)
  const id = /-?\d+/.exec(line)[0] // as text, since not every id is exact as a number
  await client.query('INSERT INTO plant_store.plants (id, name, tag) VALUES ($1, $2, $3)', [id, name, tag])
  left -= 1
}
await client.end()
