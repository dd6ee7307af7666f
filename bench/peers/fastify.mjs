// This is the least service of plants in Fastify and better-sqlite3 that is as durable: it
// validates by a schema, asks for the token of PLANTS_SERVE_TOKEN, and syncs each create.
//
// node fastify.mjs REQUIRE FILE [count|fill NDJSON]
//   REQUIRE   is a file next to which both packages are installed
//   FILE      is the database. With count, its number of plants is printed; with fill, the plants
//             of a file are stored; and nothing is served
import { createHash, timingSafeEqual } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

const [besideModules, file, action, list] = process.argv.slice(2)
const require = createRequire(besideModules)
const database = new (require('better-sqlite3'))(file)
database.pragma('journal_mode = WAL')
database.pragma('synchronous = FULL')
database.exec(
  'CREATE TABLE IF NOT EXISTS plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT)',
)
if (action === 'count')
  process.stdout.write(`${database.prepare('SELECT count(*) FROM plants').pluck().get()}\n`)
else if (action === 'fill') await storeList()
else await serve()

async function storeList() {
  const insert = database.prepare('INSERT INTO plants (id, name, tag) VALUES (?, ?, ?)')
  database.exec('BEGIN')
  for await (const line of createInterface(createReadStream(list))) {
    const { id, name, tag } = JSON.parse(line.replace(/^\{"id":(-?\d+)/, '{"id":"$1"'))
    insert.run(BigInt(id), name, tag ?? null)
  }
  database.exec('COMMIT')
  database.close()
}

async function serve() {
  const insert = database.prepare('INSERT INTO plants (id, name, tag) VALUES (?, ?, ?)')
  const select = database.prepare('SELECT id, name, tag FROM plants WHERE id = ?')
  const properties = { id: { type: 'integer' }, name: { type: 'string' }, tag: { type: 'string' } }
  const [plant, newPlant] = [
    { type: 'object', properties },
    { type: 'object', properties, required: ['id', 'name'] },
  ]
  const acceptedHash = hashText(`Bearer ${process.env.PLANTS_SERVE_TOKEN}`)
  const app = require('fastify')({ logger: false })
  app.addHook('onRequest', async (request, reply) => {
    if (timingSafeEqual(hashText(request.headers.authorization ?? ''), acceptedHash)) return
    await reply.code(401).send({ error: 401, message: 'The token is not accepted' })
  })
  app.post(
    '/plants',
    { schema: { body: newPlant, response: { 200: plant } } },
    async ({ body }) => {
      insert.run(body.id, body.name, body.tag ?? null)
      return { name: body.name, tag: body.tag }
    },
  )
  app.get('/plants/:id', { schema: { response: { 200: plant } } }, async ({ params }) =>
    select.get(Number(params.id)),
  )
  process.stdout.write(`${await app.listen({ port: 0, host: '127.0.0.1' })}\n`)
}

function hashText(text) {
  return createHash('sha256').update(text).digest()
}
