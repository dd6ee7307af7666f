import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { assertDefined } from '../../../src/errors.js'
import { Floods } from '../../../src/server/floods.js'
import { Connections } from '../../../src/server/limit.js'

const nextIteration = promisify(setImmediate)

/** Connections that are accepted, with what their clients send. */
async function acceptConnections(sent: Buffer[]): Promise<Socket[]> {
  const server = createServer({ pauseOnConnect: true })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const accepted: Socket[] = []
  for (const bytes of sent) {
    const client = connect(port, '127.0.0.1')
    const [[socket]] = await Promise.all([once(server, 'connection'), once(client, 'connect')])
    client.write(bytes)
    accepted.push(socket)
    onTestFinished(() => void [client, socket].map((each) => each.destroy()))
  }
  return accepted
}

test('what connections sent during a pause is passed on one after the other', async () => {
  const idle: Buffer[] = Array(100).fill(Buffer.alloc(0))
  const filled: Buffer[] = Array(20).fill(Buffer.alloc(65_536, 'x'))
  const sockets = await acceptConnections([...idle, ...filled])
  const connections = new Connections(500, { warn: () => undefined })
  const floods = new Floods(connections)
  floods.countUnits(1000, undefined)
  const read = new Set<Socket>()
  for (const socket of sockets) {
    const connection = connections.accept(socket, true)
    floods.add(connection)
    socket.once('data', () => {
      read.add(socket)
      floods.countUnits(1000, connection)
    })
  }
  const readPerIteration: number[] = []
  for (let count = 0; count < 2000 && read.size < filled.length; count += 1) {
    const before = read.size
    await nextIteration()
    readPerIteration.push(read.size - before)
  }
  expect([read.size, Math.max(...readPerIteration)]).toEqual([filled.length, 1])
})

test('after a pause, a connection whose token is revoked is read after those with accepted tokens', async () => {
  const sockets = await acceptConnections([Buffer.from('revoked'), Buffer.from('accepted')])
  const connections = new Connections(500, { warn: () => undefined })
  const floods = new Floods(connections)
  floods.countUnits(1000, undefined)
  const read: string[] = []
  for (const [index, socket] of sockets.entries()) {
    const connection = connections.accept(socket, true)
    connection.setCaller({ isAccepted: () => index === 1 })
    floods.add(connection)
    socket.once('data', (bytes) => read.push(String(bytes)))
  }
  await expect.poll(() => read.length).toBe(sockets.length)
  expect(read).toEqual(['accepted', 'revoked'])
})

test('after a flood, its connection is read after others, even if its token is accepted', async () => {
  const [flooding, stranger] = await acceptConnections([Buffer.from('flood'), Buffer.from('new')])
  const connections = new Connections(500, { warn: () => undefined })
  const floods = new Floods(connections)
  const read: string[] = []
  const accept = (socket = assertDefined(flooding)) => {
    const connection = connections.accept(socket, true)
    floods.add(connection)
    return connection
  }
  const connection = accept()
  connection.setCaller({ isAccepted: () => true })
  floods.countUnits(1000, connection)
  accept(stranger)
  for (const socket of [flooding, stranger]) socket?.once('data', (bytes) => read.push(`${bytes}`))
  await expect.poll(() => read.length).toBe(2)
  expect(read).toEqual(['new', 'flood'])
})
