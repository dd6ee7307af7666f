// What most services do: a statement for each request, over a pool. Takes the address of the database.
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import pg from 'pg'

const pool = new pg.Pool({ connectionString: process.argv[2], max: 10 })
const server = createServer(async (request, response) => {
  const { id, name, tag } = await json(request)
  await pool.query('INSERT INTO plant_store.plants (id, name, tag) VALUES ($1, $2, $3)', [id, name, tag])
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ name, tag }))
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`http://127.0.0.1:${server.address().port}\n`))
process.once('SIGTERM', () => server.close(() => pool.end()))
