import { createHmac, pbkdf2Sync } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { PostgresStore } from '../../../../src/stores/postgres/postgres-store.js'
import { certificate, hasOpenssl } from '../../../helpers/certificates.js'
import { type Answer, Listener, says } from '../../../helpers/postgres/listener.js'
import { settled } from '../../../helpers/settled.js'
import { addressOf, databaseOptions } from '../../../helpers/shared-store.js'

const env = { PGPASSWORD: 's3cret' }

interface Come {
  host?: string
  parameters?: string
  tls?: { cert: string; key: string }
  ca?: string | undefined
}

/**
 * Opens a store behind a listener that goes on with its answers; gives what came of it, and what the listener was
 * answered.
 */
async function come(answers: Answer[], { host = '127.0.0.1', parameters = '', tls, ca }: Come = {}) {
  const listener = await Listener.start([...answers, says.refused, says.refused], tls)
  const address = addressOf({ url: `postgres://plants@${host}:${listener.port}/plants` }, parameters)
  const login = async () => ({ ...(await databaseOptions({ env }).login(address)), ca })
  const [told = ''] = await settled([PostgresStore.open(address, databaseOptions({ env }, { login }))])
  return { told: String(told).replace(/ postgres:\S+:/, ''), passwords: listener.passwords, logins: listener.logins }
}

const md5 = expect.stringMatching(/^md5[0-9a-f]{32}\0$/)

describe('a password', () => {
  test.each([
    ['in clear text', says.clear, '127.0.0.1', 's3cret\0'],
    ['as MD5', says.md5, 'localhost', md5],
  ])('is sent %s to this machine only, and not tried again at another', async (how, asked, host, expected) => {
    const here = await come([asked], { host })
    expect(here.logins).toBeGreaterThan(0)
    expect(here.passwords).toEqual(Array(here.logins).fill(expected))
    const elsewhere = await come([asked], { host: '0.0.0.0' }) // which leads here too, and is no name of this machine
    const why = `Could not log in to the server requests the password ${how} over a connection that others could read`
    expect(elsewhere).toEqual({ told: expect.stringContaining(why), passwords: [], logins: 1 })
  })

  test('is sent once on a connection', async () => {
    const { told, passwords } = await come([says.md5, says.clear])
    expect(passwords).toEqual([md5])
    expect(told).toBe('unavailable: Could not log in to the server does not speak the PostgreSQL protocol')
  })

  test.runIf(hasOpenssl)(
    'is sent elsewhere in clear by TLS with a checked certificate only (needs openssl)',
    async () => {
      const authority = certificate({ names: ['DNS:ca'], isAuthority: true })
      const tls = certificate({ names: ['IP:0.0.0.0'], issuer: authority })
      const outcomes = ['sslmode=require', 'sslmode=verify-full', 'sslmode=prefer'].flatMap((parameters) =>
        [undefined, authority.cert].map((ca) => come([says.clear], { host: '0.0.0.0', parameters, tls, ca })),
      )
      const given = (await Promise.all(outcomes)).map(({ passwords }) => passwords.length > 0)
      expect(given).toEqual([false, true, false, true, false, false])
    },
  )
})

/** A server's part of SCRAM-SHA-256 that knows the password, but for what is wrong. */
function scram({ nonce = (own: string) => `${own}server`, iterations = 4096, signs = true } = {}): Answer[] {
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
      const proof = createHmac('sha256', key).update(`${first},${challenge},${last}`).digest('base64')
      return says.proof(`v=${signs ? proof : Buffer.alloc(32).toString('base64')}`) + says.accepted + says.ready
    },
  ]
}

describe('SCRAM', () => {
  test('ends in a login, also elsewhere without TLS', async () => {
    const { told, logins, passwords } = await come([...scram(), says.refused + says.ready], { host: '0.0.0.0' })
    expect(told).toMatch(/^unauthorized:.* wrong password$/) // which the listener says to the first statement
    expect(passwords.length).toBe(3 * logins)
  })

  test.each([
    ["with another's nonce", { nonce: () => 'another' }, 'server nonce does not start with client nonce', 1],
    ['with our nonce alone', { nonce: (own: string) => own }, 'server nonce is too short', 1],
    ['with 4095 iterations', { iterations: 4095 }, 'it requests 4095 SCRAM iterations, but the minimum is 4096', 1],
    ['with 2147483647 iterations', { iterations: 2_147_483_647 }, 'iteration count 2147483647 exceeds', 1],
    ['with a wrong signature', { signs: false }, 'server signature does not match', 2],
  ])('%s fails, and is not tried again', async (_, wrong, why, heard) => {
    const { told, logins, passwords } = await come(scram(wrong))
    expect({ told, logins, heard: passwords.length }).toEqual({ told: expect.stringContaining(why), logins: 1, heard })
  })
})
