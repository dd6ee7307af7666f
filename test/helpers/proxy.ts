import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

interface Proxy {
  url: string
  passed: string[]
  /** the Proxy-Authorization of each */
  credentials: (string | undefined)[]
}

/**
 * A forward proxy that opens every tunnel, and writes down what it was asked for.
 *
 * @param refusal a status that it answers instead
 */
export async function forwardProxy(refusal?: number): Promise<Proxy> {
  const proxy: Proxy = { url: '', passed: [], credentials: [] }
  const sockets = new Set<Socket>()
  const note = ({ method, url, headers }: IncomingMessage) => {
    proxy.passed.push(`${method} ${url}`)
    proxy.credentials.push(headers['proxy-authorization'])
  }
  const server = createServer((request, response) => {
    note(request)
    response.writeHead(405).end()
  })
  server.on('connection', (socket) => sockets.add(socket))
  server.on('connect', (request: IncomingMessage, socket: Socket) => {
    note(request)
    socket.on('error', () => undefined)
    if (refusal !== undefined)
      return void socket.end(`HTTP/1.1 ${refusal} No\r\nContent-Length: 0\r\n\r\n`)
    const { hostname, port } = new URL(`http://${request.url}`)
    const onward = connect(parseInt(port, 10), hostname.replace(/^\[|\]$/g, ''), () =>
      socket.write('HTTP/1.1 200 Connected\r\n\r\n'),
    )
    sockets.add(onward.on('error', () => socket.destroy()))
    onward.pipe(socket).pipe(onward)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return proxy
}
