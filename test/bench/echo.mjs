// The least that a service written in JavaScript could do: it reads a body, parses it, and answers two of its fields.
import { createServer } from 'node:http'

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => {
    const { name, tag } = JSON.parse(Buffer.concat(chunks).toString())
    const body = JSON.stringify({ name, tag })
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`http://127.0.0.1:${server.address().port}\n`))
