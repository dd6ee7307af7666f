import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { Connection } from '../../../src/server/connection.js'
import { connectTo } from '../../helpers/scripted-server/raw-http.js'

const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

/** A connection to a server of node:http, which answers each request. */
async function connectToServer() {
  const server = createServer((_, response) => void response.end())
  onTestFinished(() => void server.close().closeAllConnections())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo // It listens at a port.
  const endpoint = { host: '127.0.0.1', port }
  const accept = once(server, 'connection')
  const client = await connectTo(endpoint)
  const [socket]: Socket[] = await accept
  if (!socket) throw new Error('No socket was accepted')
  const other = await connectTo(endpoint)
  /** Runs so many iterations of the event loop that whatever has arrived is read. */
  const runIterations = async () => {
    for (let count = 0; count < 20; count += 1)
      expect((await other.send(request).readResponse())?.status).toBe(200)
  }
  return { connection: new Connection(socket, true), client, runIterations }
}

test.each<{ what: string; act: (connection: Connection) => void }>([
  { what: 'is held', act: (connection) => connection.hold('flood') },
  {
    what: 'is released for one of two reasons',
    act: (connection) => {
      connection.hold('body')
      connection.hold('flood')
      connection.release('flood')
    },
  },
  {
    what: 'is released and held again at once',
    act: (connection) => {
      connection.hold('body')
      connection.release('body')
      connection.hold('flood')
    },
  },
  {
    what: 'is held and resumed by others',
    act: (connection) => {
      connection.hold('body')
      connection.socket.resume()
    },
  },
  {
    what: 'is held, resumed by others and held for another reason',
    act: (connection) => {
      connection.hold('body')
      connection.socket.resume()
      connection.hold('flood')
    },
  },
])('a connection that $what is not read until it is released', async ({ act }) => {
  const { connection, client, runIterations } = await connectToServer()
  // After the first request, node:http reads from the handle of the socket.
  expect((await client.send(request).readResponse())?.status).toBe(200)
  act(connection)
  await runIterations()
  client.send(request)
  await runIterations()
  expect([connection.isHeld, connection.socket.bytesRead]).toEqual([true, request.length])
  connection.release('body')
  connection.release('flood')
  expect((await client.readResponse())?.status).toBe(200)
  expect((await client.send(request).readResponse())?.status).toBe(200)
})
