import type { Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { describe, expect, test, vi } from 'vitest'
import type { Login } from '../../../src/stores/credentials.js'
import { PostgresStore } from '../../../src/stores/postgres/store.js'
import {
  buildDatabaseOptions,
  createDatabase,
  openPostgresStore,
  parseDatabaseAddress,
  startOwnServer,
} from '../../helpers/postgres/database.js'
import {
  type Certificate,
  createCertificate,
  hasOpenssl,
} from '../../helpers/sandbox/certificates.js'
import { createClock, createCountingClock } from '../../helpers/sandbox/clock.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { buildSqliteOptions, closeAfterTest } from '../../helpers/sandbox/store.js'
import { ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'
import { settleAll } from './steps.js'

/** A message of the protocol, each character of whose body is a byte. */
function message(letter: string, body: string): string {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length + 4)
  return `${letter}${length.toString('latin1')}${body}`
}

/** What a server says at a login (https://www.postgresql.org/docs/current/protocol-message-formats.html). */
const says = {
  clear: message('R', '\0\0\0\x03'),
  md5: message('R', '\0\0\0\x05salt'),
  refused: message('E', 'SFATAL\0C28P01\0Mwrong password\0\0'),
}

const sslRequest = '\0\0\0\x08\x04\xd2\x16\x2f'

/**
 * Listens where a PostgreSQL server could, and records the logins that begin and the passwords.
 *
 * @param answers to the startup message, and to each message after it, on every connection
 */
async function listener(answers: string[], tls?: { cert: string; key: string }) {
  const heard = { port: 0, logins: 0, passwords: [] as string[] }
  const record = (text: string, isFirst: boolean) => {
    if (isFirst) heard.logins += 1
    else heard.passwords.push(text.slice(5)) // without the letter and the length
  }
  const join = (socket: Socket): void => {
    let answered = 0
    socket.on('error', () => undefined)
    socket.removeAllListeners('data').on('data', (data) => {
      const text = data.toString('latin1')
      if (text === sslRequest) {
        socket.write(tls ? 'S' : 'N')
        if (tls) join(secure(socket, tls))
        return
      }
      if (text.startsWith('X')) return // a client that leaves
      record(text, answered === 0)
      answerOrEnd(socket, answers[answered])
      answered += 1
    })
  }
  const { port } = await ScriptedServer.listen({ onConnect: join })
  return Object.assign(heard, { port })
}

function answerOrEnd(socket: Socket, answer: string | undefined): void {
  if (answer === undefined) socket.end()
  else socket.write(answer, 'latin1')
}

function secure(socket: Socket, tls: { cert: string; key: string }): TLSSocket {
  const secureContext = createSecureContext(tls)
  return new TLSSocket(socket.removeAllListeners('data'), { isServer: true, secureContext })
}

const env = { PGPASSWORD: 's3cret' }

/** What comes of opening a store. */
async function logIn(
  host: string,
  parameters = '',
  more: Partial<Login> = {},
  now = () => performance.now(),
): Promise<string> {
  const address = parseDatabaseAddress({ url: `postgres://plants@${host}/plants` }, parameters)
  const runtime = { ...buildSqliteOptions().runtime, now }
  const login = { ...buildDatabaseOptions({ env }).login, ...more }
  const opened = PostgresStore.open(
    address,
    'read',
    buildDatabaseOptions({ env }, { login, runtime }),
  )
  return String((await settleAll([opened]))[0])
}

describe('a password', () => {
  test.each([
    ['in clear text', says.clear, '127.0.0.1', 's3cret\0'],
    ['as MD5', says.md5, 'localhost', expect.stringMatching(/^md5[0-9a-f]{32}\0$/)],
  ])('is sent %s to this machine only', async (_, asked, host, expected) => {
    const here = await listener([asked, says.refused])
    await logIn(`${host}:${here.port}`)
    expect(here.passwords).toEqual(Array(here.logins).fill(expected))
    expect(here.logins).toBeGreaterThan(0)
    const elsewhere = await listener([asked, says.refused])
    // This leads here too, and is no name of this machine.
    expect(await logIn(`0.0.0.0:${elsewhere.port}`)).toMatch(/^unauthorized: /)
    expect([elsewhere.passwords, elsewhere.logins]).toEqual([[], 1])
  })

  test('is proven by SCRAM to other machines', async () => {
    const database = await createDatabase()
    const url = database.url.replace('127.0.0.1', '0.0.0.0')
    const store = await openPostgresStore({ ...database, url })
    expect(await settleAll([store.check()])).toEqual([undefined])
  })

  test.each([
    { iterations: '4095', messages: 1 },
    { iterations: '4096,i=1', messages: 1 },
    { iterations: '4096', messages: 2 },
  ])(
    'is proven to other machines only with 4096 iterations or more: $iterations',
    async ({ iterations, messages }) => {
      const received: string[] = []
      const onConnect = (socket: Socket) =>
        void socket.once('data', () => {
          socket.write(message('R', '\0\0\0\x0aSCRAM-SHA-256\0\0'), 'latin1')
          socket.on('data', (data) => {
            received.push(data.toString('latin1'))
            const nonce = /r=([^,\0]+)/.exec(received[0] ?? '')?.[1]
            const challenge = `\0\0\0\x0br=${nonce}x,s=c2FsdA==,i=${iterations}`
            if (received.length === 1) socket.write(message('R', challenge), 'latin1')
            else socket.end(says.refused, 'latin1')
          })
        })
      const { port } = await ScriptedServer.listen({ onConnect })
      expect(await logIn(`0.0.0.0:${port}`, 'sslmode=disable')).toMatch(/^unauthorized: /)
      expect(received.length).toBe(messages)
    },
  )

  test('that is rejected is not sent to the next host', async () => {
    const first = await listener([says.clear, says.refused])
    const next = await listener([says.clear])
    const message = await logIn(`127.0.0.1:${first.port},127.0.0.1:${next.port}`)
    expect(message).toMatch(/^unauthorized: /)
    expect([first.passwords, next.logins]).toEqual([['s3cret\0'], 0])
  })

  test.runIf(hasOpenssl)(
    'is sent unhashed to other machines only over TLS with a verified certificate (needs openssl)',
    async () => {
      const authority = createCertificate({ names: ['DNS:ca'], isAuthority: true })
      const tls = createCertificate({ names: ['IP:0.0.0.0'], issuer: authority })
      const isSent = async (sslmode: string, ca?: string) => {
        const { port, passwords } = await listener([says.clear, says.refused], tls)
        await logIn(`0.0.0.0:${port}`, `sslmode=${sslmode}`, { ca })
        return passwords.length > 0
      }
      const modes = ['prefer', 'require', 'verify-full']
      const unchecked = await Promise.all(modes.map((mode) => isSent(mode)))
      const checked = await Promise.all(modes.map((mode) => isSent(mode, authority.cert)))
      expect({ unchecked, checked }).toEqual({
        unchecked: [false, false, false],
        checked: [false, true, true],
      })
    },
  )
})

test.runIf(hasOpenssl)('each sslmode verifies what libpq verifies (needs openssl)', async () => {
  const [authority, stranger] = [1, 2].map(() =>
    createCertificate({ names: ['DNS:ca'], isAuthority: true }),
  )
  const tls = createCertificate({
    names: ['DNS:localhost'],
    ...(authority && { issuer: authority }),
  })
  const access = [
    ...['hostssl all secure all trust', 'hostnossl all secure all reject'],
    ...['hostnossl all plain all trust', 'hostssl all plain all reject'],
  ]
  const database = await startOwnServer({ tls, access })
  await database.queryAsSuperuser(
    'CREATE ROLE secure LOGIN; CREATE ROLE plain LOGIN; GRANT plants TO secure, plain',
  )
  const come = async (username: string, mode: string, ca?: Certificate, hostname = 'localhost') => {
    const url = Object.assign(new URL(database.url), { username, hostname }).href
    const address = parseDatabaseAddress(
      { url },
      `sslmode=${mode}${ca ? `&sslrootcert=${ca.path}` : ''}`,
    )
    const login = { ...buildDatabaseOptions({ env: {} }).login, ca: ca?.cert }
    const opened = PostgresStore.open(address, 'read', buildDatabaseOptions(database, { login }))
    const store = closeAfterTest(await opened)
    await store.check()
    const sessions = `pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = '${username}'`
    const ways = await database.queryAsSuperuser(`SELECT DISTINCT ssl FROM ${sessions}`) // the one before may not have ended yet
    await store.close()
    return ways.map(({ ssl }) => (ssl ? 'secure' : 'plain')).join()
  }
  const inTurn = async (username: string, modes: string[], ...rest: [Certificate?, string?]) => {
    const outcomes: unknown[] = []
    for (const mode of modes) outcomes.push(...(await settleAll([come(username, mode, ...rest)])))
    return outcomes
  }
  const modes = ['disable', 'prefer', 'require']
  const rejected = expect.stringMatching(/^unauthorized: .* pg_hba.conf rejects connection/)
  expect(await inTurn('secure', modes)).toEqual([rejected, 'secure', 'secure'])
  expect(await inTurn('plain', modes)).toEqual(['plain', rejected, rejected])
  const checked = ['require', 'verify-ca', 'verify-full']
  expect(await inTurn('secure', checked, authority)).toEqual(['secure', 'secure', 'secure'])
  const unknown = expect.stringMatching(/^accessDenied: .*verify the first certificate/)
  expect(await inTurn('secure', checked, stranger)).toEqual([unknown, unknown, unknown])
  expect(await inTurn('secure', ['prefer'], stranger)).toEqual(['secure'])
  const elsewhere = expect.stringMatching(
    /^accessDenied: .*: Hostname\/IP does not match certificate's altnames/,
  )
  const others = ['secure', 'secure', elsewhere]
  expect(await inTurn('secure', checked, authority, '127.0.0.1')).toEqual(others)
})

test.each([
  ['doctor', true],
  ['auth status', false],
])('plants %s gives PGPASSWORD to no database but that of this run', async (line, connects) => {
  const other = await listener([says.clear])
  const elsewhere = { address: `postgres://someone@127.0.0.1:${other.port}/elsewhere` }
  const own = await listener([says.clear, says.refused])
  const run = { ...env, PLANTS_STORE: `postgres://ann@127.0.0.1:${own.port}/garden` }
  for (const [name, value] of Object.entries(run)) vi.stubEnv(name, value) // where a driver reads
  await new Sandbox({ stores: { elsewhere } }).run(line, { env: run })
  vi.unstubAllEnvs()
  expect(other.logins).toBe(0)
  expect(new Set(own.passwords)).toEqual(new Set(connects ? ['s3cret\0'] : []))
})

test.each([
  { cause: 'has no TLS', sslmode: 'require', password: 's3cret', outcome: /does not support SSL/ },
  { cause: 'asks for a proof', sslmode: 'disable', password: '', outcome: /: SASL: .* password/ },
])(
  'a login fails for good at a server that $cause, which the driver only says in words',
  async ({ sslmode, password, outcome }) => {
    const { host } = new URL((await createDatabase()).url)
    const login = { findPassword: () => password }
    const reason = await logIn(host, `sslmode=${sslmode}`, login)
    expect(reason).toMatch(/^accessDenied: /)
    expect(reason).toMatch(outcome)
  },
)

const late = /^unavailable: .* it timed out$/
const writes = (text: string) => (socket: Socket) => void socket.write(text, 'latin1')

test.each<[string, (socket: Socket) => void, RegExp, string]>([
  ['closes at once', (socket) => socket.end(), /^unavailable: /, 'disable'],
  ['has no TLS, and says nothing more', writes('N'), late, 'prefer'],
])('a login fails in time at a server that %s', async (_, answer, outcome, sslmode) => {
  const time = outcome === late ? createClock() : undefined
  const onConnect = (socket: Socket) =>
    void socket.once('data', () => {
      answer(socket)
      time?.timeOut()
    })
  const { port } = await ScriptedServer.listen({ onConnect })
  const now = time?.now ?? createCountingClock(1000)
  expect(await logIn(`127.0.0.1:${port}`, `sslmode=${sslmode}`, {}, now)).toMatch(outcome)
})

const errorMessage = message('E', 'SFATAL\0C53300\0Mtoo many clients\0\0')

test.each<[string, (socket: Socket) => void]>([
  ['closes the connection', (socket) => socket.end()],
  ['resets the connection', (socket) => socket.resetAndDestroy()],
  ['answers S, and closes the connection', (socket) => socket.end('S')],
  ['answers S, and then sends no TLS', (socket) => socket.end('SHTTP/1.1 400 Bad Request\r\n\r\n')],
  [
    'answers S, and then rejects the handshake',
    (socket) => socket.end('S\x15\x03\x01\0\x02\x02\x28'),
  ],
  ['answers with an error', (socket) => socket.end(errorMessage)],
])('sslmode=prefer never connects without TLS to a server that %s', async (_, answer) => {
  const firstBytes: string[] = []
  const onConnect = (socket: Socket) =>
    void socket.once('data', (data) => {
      firstBytes.push(data.toString('latin1'))
      answer(socket)
    })
  const { port } = await ScriptedServer.listen({ onConnect })
  const now = createCountingClock(1000)
  expect(await logIn(`127.0.0.1:${port}`, 'sslmode=prefer', {}, now)).toMatch(
    /^(unavailable|accessDenied): /,
  )
  expect(new Set(firstBytes)).toEqual(new Set([sslRequest]))
})
