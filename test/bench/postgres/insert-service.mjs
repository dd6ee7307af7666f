// What most services do: a statement for each request, over a pool. Takes the address of the database.
import fastify from 'fastify'
import postgres from 'postgres'

const sql = postgres(process.argv[2], { max: 10, fetch_types: false })
const app = fastify()
app.post('/plants', async ({ body: { id, name, tag } }) => {
  await sql`INSERT INTO plant_store.plants (id, name, tag) VALUES (${id}, ${name}, ${tag ?? null})`
  return { name, tag }
})
process.stdout.write(`${await app.listen({ host: '127.0.0.1', port: 0 })}\n`)
process.once('SIGTERM', async () => {
  await app.close()
  await sql.end()
})
