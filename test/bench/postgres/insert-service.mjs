// What most services do: a statement for each request, over a pool. Takes the address of the database.
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import postgres from 'postgres'

const sql = postgres(process.argv[2], { max: 10, fetch_types: false })
const server = createServer(async (request, response) => {
  const { id, name, tag } = await json(request)
  await sql`INSERT INTO plant_store.plants (id, name, tag) VALUES (${id}, ${name}, ${tag ?? null})`
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ name, tag }))
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`http://127.0.0.1:${server.address().port}\n`))
process.once('SIGTERM', () => server.close(() => sql.end()))
