// A statement and a commit for each row. Takes the address of the database, a file of NDJSON, and how many of its rows.
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import postgres from 'postgres'

const [url, path, most] = process.argv.slice(2)
const sql = postgres(url, { max: 1, fetch_types: false })
let left = Number(most)
for await (const line of createInterface(createReadStream(path))) {
  if (left === 0) break
  const { name, tag } = JSON.parse(line)
  const id = /-?\d+/.exec(line)[0] // as text, since not every id is exact as a number
  await sql`INSERT INTO plant_store.plants (id, name, tag) VALUES (${id}, ${name}, ${tag ?? null})`
  left -= 1
}
await sql.end()
