import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parsePasswordFile } from '../../../src/auth/database-login.js'
import { readStoreContext } from '../../../src/cli/context.js'
import { findLogin } from '../../../src/cli/store-access.js'
import type { Login } from '../../../src/stores/credentials.js'
import { createCertificate, hasOpenssl } from '../../helpers/sandbox/certificates.js'
import { CapturedOutput, createIo, readOptions } from '../../helpers/sandbox/run.js'
import { isWindows, Sandbox } from '../../helpers/sandbox/sandbox.js'

const garden = 'postgres://ann@h1:5432,h2:5432/garden'

/** What a user logs in to a database with, the secrets to redact, and the log. */
async function login(user: Sandbox, address: string, env: Record<string, string> = {}) {
  const err = new CapturedOutput({}, 'stderr')
  const io = {
    ...createIo({ env: { ...user.env, PLANTS_STORE: address, ...env } }, undefined, err),
    resolvePath: (path: string) => path.replace(/^~/, user.home),
  }
  const context = await readStoreContext(readOptions(['--verbose'], io), io)
  const { address: database } = context
  if (database.scheme !== 'postgres') throw new Error('Only databases are expected here')
  const { findPassword, ...rest }: Login = await findLogin(database, context)
  const passwords = database.hosts.map(findPassword)
  return { passwords, ...rest, secrets: [...io.secrets], log: err.text }
}

describe('the password for a database', () => {
  test('comes from the address, else from PGPASSWORD, else from the password file', async () => {
    const user = new Sandbox()
    const expectFrom = async (
      [address, env]: [string, Record<string, string>],
      place: string,
      passwords: (string | undefined)[],
      secrets: string[],
    ) => {
      const found = await login(user, address, env)
      const passwordHint = expect.stringContaining(place)
      expect(found).toMatchObject({ passwords, passwordHint, secrets })
    }
    await expectFrom([garden, {}], 'Set PGPASSWORD', [undefined, undefined], [])
    user.write('.pgpass', 'h2:*:garden:ann:of-h2\n*:*:*:bob:of-bob\n')
    await expectFrom([garden, {}], `${user.home}/.pgpass`, [undefined, 'of-h2'], ['of-h2'])
    const env = { PGPASSWORD: 'of-env' }
    await expectFrom([garden, env], 'PGPASSWORD', ['of-env', 'of-env'], ['of-env'])
    const address = garden.replace('ann', 'ann:of-url')
    await expectFrom([address, env], 'the address', ['of-url', 'of-url'], ['of-url'])
  })

  test.skipIf(isWindows)('is not read from a file that others can read (needs modes)', async () => {
    const user = new Sandbox()
    const path = join(user.home, user.write('passwords', '*:*:*:*:s3cret'))
    const env = { PGPASSFILE: path }
    expect((await login(user, garden, env)).passwords).toEqual(['s3cret', 's3cret'])
    chmodSync(path, 0o640)
    const { passwords, log } = await login(user, garden, env)
    expect(passwords).toEqual([undefined, undefined])
    expect(log).toMatch(/^\* password file \S+ ignored.*chmod 600/m)
  })
})

describe.runIf(hasOpenssl)('the certificates for a database (need openssl)', () => {
  const none = { ca: undefined, cert: undefined, key: undefined }

  test('are those of the address unless TLS is off, and of --ca-cert where it is required', async () => {
    const { cert, key, path, keyPath } = createCertificate({ names: ['DNS:ann'] })
    const pair = `sslcert=${path}&sslkey=${keyPath}`
    const env = { PLANTS_CA_CERT: path }
    for (const [parameters, expected, variables = {}] of [
      [`sslmode=prefer&${pair}`, { ...none, cert, key }],
      [`sslmode=require&${pair}`, { ...none, cert, key }],
      [`sslmode=verify-full&sslrootcert=${path}&${pair}`, { ca: cert, cert, key }],
      ['sslmode=verify-full&sslrootcert=system', none],
      [`sslmode=disable&${pair}`, none],
      ['sslmode=require', { ...none, ca: cert }, env],
      ['sslmode=verify-ca', { ...none, ca: cert }, env],
      ['sslmode=prefer', none, env],
      ['sslmode=verify-ca&host=/run/pg&port=5432', none],
    ] as const)
      expect(
        await login(new Sandbox(), `${garden}?${parameters}`, variables),
        parameters,
      ).toMatchObject(expected)
  })

  test('must be valid, match each other, and be writable only by the user', async () => {
    const user = new Sandbox()
    const { key, path, keyPath } = createCertificate({ names: ['DNS:ann'] })
    const at = (name: string, text: string) => join(user.home, user.write(name, text))
    const open = at('open.key', key)
    chmodSync(open, 0o602)
    const foreign = at('other.key', createCertificate({ names: ['DNS:bob'] }).key)
    for (const [parameters, kind, message] of [
      ['sslmode=verify-ca', 'usage', 'root certificate'],
      [`sslcert=${path}&sslkey=${open}`, 'input', 'changed by other users'],
      [`sslcert=${path}&sslkey=${foreign}`, 'input', 'are not a certificate and the key for it'],
      [`sslmode=verify-ca&sslrootcert=${at('text.pem', 'none')}`, 'input', 'no PEM certificate'],
      [`sslkey=${keyPath}`, 'usage', 'has sslcert or sslkey, but not both'],
    ])
      await expect(login(user, `${garden}?${parameters}`)).rejects.toMatchObject({
        kind,
        message: expect.stringContaining(`${message}`),
      })
  })
})

const ann = { user: 'ann', database: 'garden' }
const other = { user: 'c\\d', database: 'a:b' }

test.each([
  ['db.example.com:5432:garden:ann:right', 'right'],
  [
    'other:*:*:*:wrong\n*:5433:*:*:wrong\n*:*:other:*:wrong\n*:*:*:bob:wrong\n*:*:*:ann:right\n*:*:*:*:late',
    'right',
  ],
  ['# *:*:*:*:wrong\r\n\r\nbroken\r\n*:*:*:*:right\r\n', 'right'],
  ['*:*:*:*: with:colons\\:and\\\\more ', ' with:colons:and\\more '],
  ['\\:\\:1:5432:a\\:b:c\\\\d:v6', 'v6', other, '::1'],
  ['localhost:*:*:*:usual', 'usual', ann, '/var/run/postgresql'],
  ['localhost:*:*:*:usual\n/run/own:*:*:*:own', 'own', ann, '/run/own'],
])(
  'the password file %j has the password %j for a database',
  (text, password, login = ann, host = 'db.example.com') => {
    expect(parsePasswordFile(text, login, { host, port: 5432 })).toBe(password)
  },
)

test('an escaped asterisk in a password file is the name of a user, not any user', () => {
  const text = '*:*:*:\\*:wrong'
  expect(parsePasswordFile(text, ann, { host: 'db.example.com', port: 5432 })).toBeUndefined()
})
