import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterAll, describe, expect, test } from 'vitest'
import { PostgresStore } from '../../../../src/stores/postgres/postgres-store.js'
import { message, says } from '../../../helpers/postgres/listener.js'
import { settled } from '../../../helpers/settled.js'
import { addressOf, databaseOptions } from '../../../helpers/shared-store.js'

/** How a server answers to the first that it hears, and what is said of it. */
const strangers: [string, (socket: Socket) => unknown, RegExp][] = [
  ['closes at once', (socket) => socket.end(), /: (Connection terminated unexpectedly|read ECONNRESET|write EPIPE)$/],
  ['has no TLS, and closes', (socket) => socket.end('N'), /: Connection terminated unexpectedly$/],
  [
    'has TLS, and closes',
    (socket) => socket.end('S'),
    /: (Client network socket disconnected before secure TLS connection was established|(?:read|write) E[A-Z]+)$/,
  ],
  ['has no TLS, and says nothing more', (socket) => socket.write('N'), /: no answer in time$/],
  ['says nothing', () => undefined, /: no answer in time$/],
  [
    'speaks HTTP',
    (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'),
    /: There was an error establishing an SSL connection$/,
  ],
]

describe('says in time what is wrong with a server that', () => {
  test.concurrent.each(strangers)('%s', async (_, answer, message) => {
    const port = await listen((socket) => socket.once('data', () => answer(socket)))
    const address = addressOf({ url: `postgres://plants@127.0.0.1:${port}/plants` }, 'connect_timeout=1')
    const start = performance.now()
    const [told] = await settled([PostgresStore.open(address, databaseOptions({ env: {} }, { timeout: 1200 }))])
    expect(told).toMatch(/^unavailable: Could not reach postgres:/)
    expect(told).toMatch(message)
    expect(performance.now() - start).toBeLessThan(2300)
  })
})

/** What a server says to the first message behind "no TLS", which the driver would trust. */
const liars: [string, string, RegExp][] = [
  ['asks for an unknown way to log in', message('R', '\0\0\0\x07'), /: Unknown authenticationOk message type 7$/],
  ['begins a message of 4 GiB', 'R\xff\xff\xff\xff\0', /: no answer in time$/],
  ['sends more than a login can be', `N\x10\0\0\0${'a'.repeat(2 ** 20)}`, /: its response is too large$/],
  ['ends a message too early', message('R', ''), /: the server does not speak the PostgreSQL protocol$/],
  [
    'lets in whom it asked to prove a password',
    says.scram + says.accepted + says.ready,
    /: the server has not proved that it knows the password$/,
  ],
  [
    'challenges with a nonce that is not ours',
    says.scram + says.challenge('r=abc,s=YWJj,i=4096'),
    /: the server does not speak the PostgreSQL protocol$/,
  ],
  ['asks for rows to copy', message('G', '\0\0\0'), /: Received unexpected copyInResponse message from backend\.$/],
  [
    'describes columns without an end',
    says.accepted + says.ready + message('T', '\xff\xffabc'),
    /: the server does not speak the PostgreSQL protocol$/,
  ],
  ['says a state that is none', message('E', 'SFATAL\0C__proto__\0Mgone\0\0'), /: gone$/],
]

describe('outlives a server that', () => {
  test.concurrent.each(liars)('%s', async (_, answer, told) => {
    const port = await listen((socket) => socket.once('data', () => socket.write(answer, 'latin1')))
    const address = addressOf(
      { url: `postgres://plants@127.0.0.1:${port}/plants` },
      'connect_timeout=1&sslmode=disable',
    )
    const [outcome] = await settled([
      PostgresStore.open(address, databaseOptions({ env: { PGPASSWORD: 's3cret' } }, { timeout: 1500 })),
    ])
    expect(outcome).toMatch(told)
  })
})

/** What a server begins to say to the first statement, before it repeats a megabyte for ever. */
const floods: [string, string, string?][] = [
  ['a row', 'D\x10\0\0\0\0\x01\x0f\xff\xff\xf6'],
  ['an error', 'E\x10\0\0\0'],
  ['rows', message('T', `\0\x01a\0${'\0'.repeat(18)}`), message('D', `\0\x01\0\0\x03\xe8${'b'.repeat(1000)}`)],
  ['notices', '', message('N', `SNOTICE\0M${'c'.repeat(990)}\0\0`)],
]

describe('hangs up on a server that, after the login, floods it with', () => {
  test.each(floods)('%s', async (_, first, repeated = 'a') => {
    const block = Buffer.from(repeated.repeat(2 ** 20 / repeated.length), 'latin1')
    let most = 0
    const port = await listen((socket) => {
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
    })
    const address = addressOf({ url: `postgres://plants@127.0.0.1:${port}/plants` }, 'sslmode=disable')
    const [outcome] = await settled([PostgresStore.open(address, databaseOptions({ env: {} }, { timeout: 20_000 }))])
    expect(outcome).toMatch(/: its response is too large$/)
    expect(most).toBeLessThan(100 * 2 ** 20) // with what is in the buffers of the system
  })
})

const servers: Server[] = []
const sockets = new Set<Socket>()

async function listen(join: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined))
    join(socket)
  })
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

afterAll(() => {
  for (const socket of sockets) socket.destroy()
  for (const server of servers) server.close()
})
