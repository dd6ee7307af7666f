// This is the least that a service in JavaScript can do: it reads a body, parses it, and answers
// two of its fields. To a GET it answers a plant with the id of the path.
import { createServer } from 'node:http'

const server = createServer((request, response) => {
  const chunks = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', () => {
    const body =
      request.method === 'GET'
        ? formatPlant(request.url)
        : formatResponse(JSON.parse(Buffer.concat(chunks).toString()))
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    })
    response.end(body)
  })
})
server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  process.stdout.write(`http://127.0.0.1:${port}\n`)
})

function formatPlant(path) {
  return JSON.stringify({
    id: Number(path.slice('/plants/'.length)),
    name: 'Boston Fern',
    tag: 'shade',
  })
}

function formatResponse({ name, tag }) {
  return JSON.stringify({ name, tag })
}
