import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { passwordIn } from '../../../src/auth/database-login.js'
import { CommandContext } from '../../../src/cli/command-context.js'
import { databaseOptions } from '../../../src/cli/store-access.js'
import { passwordFile } from '../../../src/stores/common/address.js'
import type { Login } from '../../../src/stores/postgres/address.js'

import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { Captured, ioOf } from '../../helpers/run.js'
import { isWindows, World } from '../../helpers/world.js'

const garden = 'postgres://ann@h1:5432,h2:5432/garden'

/** What a user logs in to a database with: the password for each host, its hint, certificates, and what is redacted. */
async function login(
  user: World,
  address: string,
  { env = {} }: { env?: Record<string, string> } = {},
) {
  const err = new Captured({}, 'stderr')
  const io = {
    ...ioOf({ env: { ...user.env, PLANTS_STORE: address, ...env } }, undefined, err),
    resolvePath: (path: string) => path.replace(/^~/, user.home),
  }
  const context = await CommandContext.from({ verbose: true }, io)
  const { address: database } = context
  if (database.scheme !== 'postgres') throw new Error('Only databases are expected here')
  const { login } = await databaseOptions(database, context)
  const { password, ...rest }: Login = login
  return {
    passwords: database.hosts.map(password),
    ...rest,
    secrets: [...io.secrets],
    log: err.text,
  }
}

describe('the password for a database', () => {
  test('is the first that there is: address, PGPASSWORD, password file', async () => {
    const user = new World()
    const found = async (address = garden, env = {}) => {
      const { passwords, passwordHint, secrets } = await login(user, address, { env })
      return [passwords, passwordHint, secrets]
    }
    const from = (place: string) => `The password is from ${place}: set another one there`
    const both = (password: string) => [password, password]
    const none = `Set PGPASSWORD, or write the password to ${passwordFile}`
    expect(await found()).toEqual([[undefined, undefined], none, []])
    user.write('.pgpass', 'h2:*:garden:ann:of-h2\n*:*:*:bob:of-bob\n')
    expect(await found()).toEqual([[undefined, 'of-h2'], from(`${user.home}/.pgpass`), ['of-h2']])
    const env = { PGPASSWORD: 'of-env' }
    expect(await found(garden, env)).toEqual([both('of-env'), from('PGPASSWORD'), ['of-env']])
    const address = garden.replace('ann', 'ann:of-url')
    expect(await found(address, env)).toEqual([both('of-url'), from('the address'), ['of-url']])
  })

  test.skipIf(isWindows)(
    'is in no file that others can read, which is logged (needs modes)',
    async () => {
      const user = new World()
      const path = join(user.home, user.write('passwords', '*:*:*:*:s3cret'))
      const env = { PGPASSFILE: path }
      expect((await login(user, garden, { env })).passwords).toEqual(['s3cret', 's3cret'])
      chmodSync(path, 0o640)
      const { passwords, log } = await login(user, garden, { env })
      expect(passwords).toEqual([undefined, undefined])
      expect(log).toContain(
        `* password file ${path} ignored: it is open to others (mode 640). Fix it with: chmod 600 ${path}\n`,
      )
    },
  )

  test('that is a word of the address is not redacted, since a *** would show which word it is', async () => {
    expect((await login(new World(), garden, { env: { PGPASSWORD: 'garden' } })).secrets).toEqual(
      [],
    )
  })
})

describe.runIf(hasOpenssl)('the certificates for a database (need openssl)', () => {
  const never = { ca: undefined, cert: undefined, key: undefined }
  const made = () => {
    const own = certificate({ names: ['DNS:ann'] })
    const keyPath = own.path.replace('cert.pem', 'key.pem')
    return { ...own, keyPath, other: certificate({ names: ['DNS:bob'] }) }
  }
  const certificates = async (user: World, parameters: string) => {
    const { ca, cert, key } = await login(user, `${garden}?${parameters}`)
    return { ca, cert, key }
  }

  test('are those of the address', async () => {
    const { cert, key, path, keyPath } = made()
    const parameters = `sslmode=verify-full&sslrootcert=${path}&sslcert=${path}&sslkey=${keyPath}`
    expect(await certificates(new World(), parameters)).toEqual({ ca: cert, cert, key })
    expect(await certificates(new World(), 'sslmode=verify-full&sslrootcert=system')).toEqual(never)
  })

  test('are those of the address in every mode but disable, and of --ca-cert where TLS is required', async () => {
    const user = new World()
    const { cert, key, path, keyPath } = made()
    const own = `sslcert=${path}&sslkey=${keyPath}`
    const env = { PLANTS_CA_CERT: path }
    for (const mode of ['prefer', 'require', 'verify-full'])
      expect(await certificates(user, `sslmode=${mode}&${own}`)).toEqual({
        ca: undefined,
        cert,
        key,
      })
    expect(await certificates(user, `sslmode=disable&${own}`)).toEqual(never)
    for (const mode of ['require', 'verify-ca', 'verify-full'])
      expect(await login(user, `${garden}?sslmode=${mode}`, { env })).toMatchObject({ ca: cert })
    expect(await login(user, `${garden}?sslmode=prefer`, { env })).toMatchObject({ ca: undefined })
    expect(await certificates(user, 'sslmode=verify-ca&host=/run/pg&port=5432')).toEqual(never)
  })

  test('must be valid, belong together, and be changed by nobody else', async () => {
    const user = new World()
    const { key, path, keyPath, other } = made()
    const at = (name: string, text: string) => join(user.home, user.write(name, text))
    const [open, foreign, text] = [
      at('open.key', key),
      at('other.key', other.key),
      at('text.pem', 'none'),
    ]
    chmodSync(open, 0o602)
    const root = `sslmode=verify-ca&sslrootcert=${text}`
    const rootHint = 'Give a file of PEM certificates'
    const pair = 'Use PEM files for sslcert and sslkey, the key without a passphrase'
    for (const [kind, parameters, why, hint] of [
      [
        'usage',
        'sslmode=verify-ca',
        /has no root certificate to verify the server with$/,
        'Set sslrootcert or --ca-cert',
      ],
      [
        'input',
        `sslcert=${path}&sslkey=${open}`,
        /^The key \S+ can be changed by others \(mode 602\)$/,
        'chmod 600',
      ],
      [
        'input',
        `sslcert=${path}&sslkey=${foreign}`,
        /cert\.pem and \S+other\.key are not a certificate and its key$/,
        pair,
      ],
      ['input', root, /text\.pem contains no PEM certificate$/, rootHint],
      ['usage', `sslkey=${keyPath}`, /has only one of sslcert and sslkey$/, 'Give both'],
    ] as const)
      await expect(certificates(user, parameters)).rejects.toMatchObject({
        kind,
        message: expect.stringMatching(why),
        hint: expect.stringContaining(hint),
      })
  })
})

const ann = { user: 'ann', database: 'garden' }
const here = { host: 'db.example.com', port: 5432 }

describe('the password file', () => {
  test.each([
    ['db.example.com:5432:garden:ann:right', 'right'],
    [
      'other:*:*:*:wrong\n*:5433:*:*:wrong\n*:*:other:*:wrong\n*:*:*:bob:wrong\n*:*:*:ann:right\n*:*:*:*:late',
      'right',
    ],
    ['# *:*:*:*:wrong\r\n\r\nbroken\r\n*:*:*:*:right\r\n', 'right'],
    ['*:*:*:*: with:colons\\:and\\\\more ', ' with:colons:and\\more '],
    ['*:*:*:\\*:wrong', undefined],
  ])('%j has %j', (text, password) => {
    expect(passwordIn(text, ann, here)).toBe(password)
  })

  test('has names with colons, addresses and sockets', () => {
    const text = '\\:\\:1:5432:a\\:b:c\\\\d:v6\nlocalhost:*:*:*:usual\n/run/own:*:*:*:own\n'
    const other = { user: 'c\\d', database: 'a:b' }
    expect(passwordIn(text, other, { host: '::1', port: 5432 })).toBe('v6')
    expect(passwordIn(text, ann, { host: '/var/run/postgresql', port: 5432 })).toBe('usual')
    expect(passwordIn(text, ann, { host: '/run/own', port: 5432 })).toBe('own')
  })
})
