import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { PostgresStore } from '../../../../src/stores/postgres/postgres-store.js'
import { message, says } from '../../../helpers/postgres/listener.js'
import { settled } from '../../../helpers/settled.js'
import { addressOf, databaseOptions } from '../../../helpers/shared-store.js'

const servers: Server[] = []
const sockets = new Set<Socket>()

/** Opens a store at a server that does this with a connection, and gives what is said of it. */
async function openAt(join: (socket: Socket) => void, parameters: string, timeout: number): Promise<unknown> {
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined))
    join(socket)
  })
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const address = addressOf({ url: `postgres://plants@127.0.0.1:${port}/plants` }, parameters)
  const options = databaseOptions({ env: { PGPASSWORD: 's3cret' } }, { timeout })
  return (await settled([PostgresStore.open(address, options)]))[0]
}

afterAll(() => {
  for (const socket of sockets) socket.destroy()
  for (const server of servers) server.close()
})

const late = /: no answer in time$/
const ended = /: Connection terminated unexpectedly$/
const reset =
  /: (Client network socket disconnected before secure TLS connection was established|(?:read|write) E[A-Z]+)$/

describe('fails in time at a server that', () => {
  test.concurrent.each<[string, (socket: Socket) => unknown, RegExp]>([
    ['closes at once', (socket) => socket.end(), /: (Connection terminated unexpectedly|read ECONNRESET|write EPIPE)$/],
    ['has no TLS, and closes', (socket) => socket.end('N'), ended],
    ['has TLS, and closes', (socket) => socket.end('S'), reset],
    ['has no TLS, and says nothing more', (socket) => socket.write('N'), late],
    ['says nothing', () => undefined, late],
    [
      'speaks HTTP',
      (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
      / error establishing an SSL connection$/,
    ],
  ])('%s', async (_, answer, message) => {
    const start = performance.now()
    const told = await openAt((socket) => socket.once('data', () => answer(socket)), 'connect_timeout=1', 1200)
    expect(told).toMatch(/^unavailable: Could not reach postgres:/)
    expect(told).toMatch(message)
    expect(performance.now() - start).toBeLessThan(2300)
  })
})

const noProtocol = /: the server does not speak the PostgreSQL protocol$/

/** The answer to the first message behind "no TLS", which the driver would trust. */
describe('outlives a server that', () => {
  test.concurrent.each<[string, string, RegExp]>([
    ['asks for an unknown login', message('R', '\0\0\0\x07'), /: Unknown authenticationOk message type 7$/],
    ['begins a message of 4 GiB', 'R\xff\xff\xff\xff\0', late],
    ['sends more than a login can be', `N\x10\0\0\0${'a'.repeat(2 ** 20)}`, /: its response is too large$/],
    ['ends a message too early', message('R', ''), noProtocol],
    [
      'accepts a password without proof',
      says.scram + says.accepted + says.ready,
      /has not proved that it knows the password$/,
    ],
    ["challenges with another's nonce", says.scram + says.challenge('r=abc,s=YWJj,i=4096'), noProtocol],
    ['asks for rows to copy', message('G', '\0\0\0'), /: Received unexpected copyInResponse message from backend\.$/],
    ['describes endless columns', says.accepted + says.ready + message('T', '\xff\xffabc'), noProtocol],
    ['sends an unknown state', message('E', 'SFATAL\0C__proto__\0Mgone\0\0'), /: gone$/],
  ])('%s', async (_, answer, told) => {
    const join = (socket: Socket) => socket.once('data', () => socket.write(answer, 'latin1'))
    expect(await openAt(join, 'connect_timeout=1&sslmode=disable', 1500)).toMatch(told)
  })
})

/** The answer to the first statement, before a megabyte is repeated for ever. */
describe('hangs up on a server that floods it after the login with', () => {
  test.each<[string, string, string?]>([
    ['a row', 'D\x10\0\0\0\0\x01\x0f\xff\xff\xf6'],
    ['an error', 'E\x10\0\0\0'],
    ['rows', message('T', `\0\x01a\0${'\0'.repeat(18)}`), message('D', `\0\x01\0\0\x03\xe8${'b'.repeat(1000)}`)],
    ['notices', '', message('N', `SNOTICE\0M${'c'.repeat(990)}\0\0`)],
  ])('%s', async (_, first, repeated = 'a') => {
    const block = Buffer.from(repeated.repeat(2 ** 20 / repeated.length), 'latin1')
    let most = 0
    const join = (socket: Socket) => {
      const flood = () => {
        while (socket.write(block));
      }
      socket.once('data', () => {
        socket.write(says.accepted + says.ready, 'latin1')
        socket.once('data', () => {
          socket.write(first, 'latin1')
          socket.on('drain', flood)
          socket.once('close', () => {
            most = Math.max(most, socket.bytesWritten)
          })
          flood()
        })
      })
    }
    expect(await openAt(join, 'sslmode=disable', 20_000)).toMatch(/: its response is too large$/)
    expect(most).toBeLessThan(100 * 2 ** 20) // with what is in the buffers of the system
  })
})
