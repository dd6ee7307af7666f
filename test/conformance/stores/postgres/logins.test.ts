import { createHmac, pbkdf2Sync } from 'node:crypto'
import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { Login } from '../../../../src/stores/postgres/address.js'
import { PostgresStore } from '../../../../src/stores/postgres/store.js'
import { type Certificate, certificate, hasOpenssl } from '../../../helpers/certificates.js'
import { Hostile } from '../../../helpers/hostile.js'
import { type Answer, Listener, says } from '../../../helpers/postgres/listener.js'
import { ownServer } from '../../../helpers/postgres.js'
import { addressOf, databaseOptions, openShared, settled } from '../../../helpers/shared-store.js'
import { closedAfterTest, openOptions } from '../../../helpers/store.js'
import { countingClock, settableTime } from '../../../helpers/time.js'

const env = { PGPASSWORD: 's3cret' }

interface Come {
  host?: string
  parameters?: string
  tls?: { cert: string; key: string }
  ca?: string | undefined
}

async function toldBy(
  url: string,
  parameters: string,
  more: Partial<Login> = {},
  now = () => performance.now(),
): Promise<string> {
  const address = addressOf({ url }, parameters)
  const { runtime } = openOptions()
  const login = { ...databaseOptions({ env }).login, ...more }
  const [told] = await settled([
    PostgresStore.open(address, databaseOptions({ env }, { login, runtime: { ...runtime, now } })),
  ])
  return String(told)
}

/**
 * Opens a store behind a listener that goes on with its answers; gives what came of it, and what the listener was
 * answered.
 */
async function come(
  answers: Answer[],
  { host = '127.0.0.1', parameters = '', tls, ca }: Come = {},
) {
  const listener = await Listener.start([...answers, says.refused, says.refused], tls)
  const told = await toldBy(`postgres://plants@${host}:${listener.port}/plants`, parameters, { ca })
  return {
    told: told.replace(/ postgres:\S+:/, ''),
    passwords: listener.passwords,
    logins: listener.logins,
  }
}

const md5 = expect.stringMatching(/^md5[0-9a-f]{32}\0$/)

describe('a password', () => {
  test.each([
    ['in clear text', says.clear, '127.0.0.1', 's3cret\0'],
    ['as MD5', says.md5, 'localhost', md5],
  ])(
    'is sent %s to this machine only, and not tried again at another',
    async (_, asked, host, expected) => {
      const here = await come([asked], { host })
      expect(here.logins).toBeGreaterThan(0)
      expect(here.passwords).toEqual(Array(here.logins).fill(expected))
      const elsewhere = await come([asked], { host: '0.0.0.0' }) // which leads here too, and is no name of this machine
      const why = 'requests the password over a connection that others could read'
      expect(elsewhere).toEqual({ told: expect.stringContaining(why), passwords: [], logins: 1 })
    },
  )

  test('that is rejected is not sent to the next host', async () => {
    const [first, next] = [
      await Listener.start([says.clear, says.refused]),
      await Listener.start([says.clear]),
    ]
    const told = await toldBy(
      `postgres://plants@127.0.0.1:${first.port},127.0.0.1:${next.port}/plants`,
      '',
    )
    expect(told).toMatch(/^unauthorized: .* wrong password$/)
    expect([first.passwords, next.logins]).toEqual([['s3cret\0'], 0])
  })

  test.runIf(hasOpenssl)(
    'is sent elsewhere in clear by TLS with a checked certificate only (needs openssl)',
    async () => {
      const authority = certificate({ names: ['DNS:ca'], isAuthority: true })
      const tls = certificate({ names: ['IP:0.0.0.0'], issuer: authority })
      const outcomes = ['sslmode=require', 'sslmode=verify-full', 'sslmode=prefer'].flatMap(
        (parameters) =>
          [undefined, authority.cert].map((ca) =>
            come([says.clear], { host: '0.0.0.0', parameters, tls, ca }),
          ),
      )
      const given = (await Promise.all(outcomes)).map(({ passwords }) => passwords.length > 0)
      expect(given).toEqual([false, true, false, true, false, false])
    },
  )
})

/** A server's part of SCRAM-SHA-256 that knows the password, but for what is wrong. */
function scram({
  nonce = (own: string) => `${own}server`,
  iterations = 4096,
  signs = true,
} = {}): Answer[] {
  let first = ''
  let challenge = ''
  return [
    says.scram,
    (heard) => {
      first = /n=.*$/s.exec(heard)?.[0] ?? ''
      challenge = `r=${nonce(first.split('r=')[1] ?? '')},s=c2FsdA==,i=${iterations}`
      return says.challenge(challenge)
    },
    (heard) => {
      const last = heard.slice(5).split(',p=')[0]
      const salted = pbkdf2Sync(env.PGPASSWORD, 'salt', iterations, 32, 'sha256')
      const key = createHmac('sha256', salted).update('Server Key').digest()
      const proof = createHmac('sha256', key)
        .update(`${first},${challenge},${last}`)
        .digest('base64')
      return (
        says.proof(`v=${signs ? proof : Buffer.alloc(32).toString('base64')}`) +
        says.accepted +
        says.ready
      )
    },
  ]
}

describe('SCRAM', () => {
  test('ends in a login, also elsewhere without TLS', async () => {
    const { told, logins, passwords } = await come([...scram(), says.refused + says.ready], {
      host: '0.0.0.0',
    })
    expect(told).toMatch(/^unauthorized:.* wrong password$/) // which the listener says to the first statement
    expect(passwords.length).toBe(3 * logins) // two of the login, and a statement
  })

  test.each([
    [
      "with another's nonce",
      { nonce: () => 'another' },
      'server nonce does not start with client nonce',
      1,
    ],
    [
      'with 2147483647 iterations',
      { iterations: 2_147_483_647 },
      'iteration count 2147483647 exceeds',
      1,
    ],
    ['with a wrong signature', { signs: false }, 'server signature does not match', 2],
  ])('%s fails, and is not tried again', async (_, wrong, why, heard) => {
    const { told, logins, passwords } = await come(scram(wrong))
    expect({ told, logins, heard: passwords.length }).toEqual({
      told: expect.stringContaining(why),
      logins: 1,
      heard,
    })
  })
})

test.runIf(hasOpenssl)('each sslmode verifies what libpq verifies (needs openssl)', async () => {
  const [authority, stranger] = [1, 2].map(() =>
    certificate({ names: ['DNS:ca'], isAuthority: true }),
  )
  const access = [
    ...['hostssl all secure all trust', 'hostnossl all secure all reject'],
    ...['hostnossl all plain all trust', 'hostssl all plain all reject'],
  ]
  const tls = certificate({ names: ['DNS:localhost'], ...(authority && { issuer: authority }) })
  const place = await ownServer({ tls, access })
  await openShared(place)
  await place.admin(
    'CREATE ROLE secure LOGIN; CREATE ROLE plain LOGIN; GRANT plants TO secure, plain',
  )
  const come = async (
    username: string,
    sslmode: string,
    ca?: Certificate,
    hostname = 'localhost',
  ) => {
    const url = Object.assign(new URL(place.url), { username, hostname }).href
    const address = addressOf({ url }, `sslmode=${sslmode}${ca ? `&sslrootcert=${ca.path}` : ''}`)
    const login = { ...databaseOptions({ env: {} }).login, ca: ca?.cert }
    const store = closedAfterTest(
      await PostgresStore.open(address, databaseOptions(place, { login })),
    )
    await store.check()
    const sessions = `pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE usename = '${username}'`
    const ways = await place.admin(`SELECT DISTINCT ssl FROM ${sessions}`) // the one before may not have ended yet
    await store.close()
    return ways.map(({ ssl }) => (ssl ? 'secure' : 'plain'))
  }
  const inTurn = async (username: string, modes: string[], ...rest: [Certificate?, string?]) => {
    const told: unknown[] = []
    for (const mode of modes) told.push(...(await settled([come(username, mode, ...rest)])))
    return told
  }
  const modes = ['disable', 'prefer', 'require']
  const rejected = expect.stringMatching(
    /^unauthorized: .* rejected the login of \w+: pg_hba.conf rejects connection/,
  )
  const [secure, plain] = [['secure'], ['plain']]
  expect(await inTurn('secure', modes)).toEqual([rejected, secure, secure])
  expect(await inTurn('plain', modes)).toEqual([plain, rejected, rejected])
  const checked = ['require', 'verify-ca', 'verify-full']
  expect(await inTurn('secure', checked, authority)).toEqual([secure, secure, secure])
  const unknown = expect.stringMatching(
    /^inaccessible: .*: unable to verify the first certificate(;.*)?$/,
  )
  expect(await inTurn('secure', checked, stranger)).toEqual([unknown, unknown, unknown])
  expect(await inTurn('secure', ['prefer'], stranger)).toEqual([secure])
  const elsewhere = expect.stringMatching(/^inaccessible: .* does not match certificate's altnames/)
  expect(await inTurn('secure', checked, authority, '127.0.0.1')).toEqual([
    secure,
    secure,
    elsewhere,
  ])
})

async function openAt(
  onConnect: (socket: Socket) => void,
  parameters: string,
  now: () => number,
): Promise<string> {
  const { port } = await Hostile.listen({ onConnect })
  return toldBy(`postgres://plants@127.0.0.1:${port}/plants`, parameters, {}, now)
}

const late =
  /^unavailable: Could not reach postgres:.*: Connection terminated due to connection timeout$/
const writes = (text: string) => (socket: Socket) => void socket.write(text, 'latin1')

describe('fails in time at a server that', () => {
  test.each<[string, (socket: Socket) => void, RegExp, string?]>([
    [
      'closes at once',
      (socket) => socket.end(),
      /: (Connection terminated unexpectedly|read ECONNRESET|write EPIPE)$/,
    ],
    ['has no TLS, and says nothing more', writes('N'), late, 'sslmode=prefer'],
    [
      'speaks HTTP',
      writes('HTTP/1.1 400 Bad Request\r\n\r\n'),
      / error establishing an SSL connection$/,
      'sslmode=prefer',
    ],
    ['begins a message of 4 GiB', writes('R\xff\xff\xff\xff\0'), late],
  ])('%s', async (_, answer, told, parameters = 'sslmode=disable') => {
    const time = told === late ? settableTime() : undefined
    const join = (socket: Socket) =>
      socket.once('data', () => {
        answer(socket)
        time?.timeOut()
      })
    expect(await openAt(join, parameters, time?.now ?? countingClock(100))).toMatch(told)
  })
})
