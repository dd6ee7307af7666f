import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readPasswordFile } from '../../../src/auth/database-login.js'
import { CommandContext } from '../../../src/cli/command-context.js'
import { loginTo } from '../../../src/cli/store-access.js'
import { usageError } from '../../../src/platform/errors.js'
import { shellWord } from '../../../src/platform/shell.js'
import { passwordFile } from '../../../src/stores/common/address.js'
import type { Login } from '../../../src/stores/postgres/postgres-options.js'

import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { ioOf } from '../../helpers/run.js'
import { isWindows } from '../../helpers/windows.js'
import { printed, World } from '../../helpers/world.js'

const garden = 'postgres://ann@h1:5432,h2:5432/garden'
const saved = { tokens: { [garden]: { token: 'of-login', savedAt: '2026-01-02T03:04:05.678Z' } } }

/** What a user logs in to a database with: the password for each host, its hint, certificates, and what is redacted. */
async function login(
  user: World,
  address: string,
  { env = {} }: { env?: Record<string, string> } = {},
) {
  const io = {
    ...ioOf({ env: { ...user.env, PLANTS_STORE: address, ...env } }),
    resolvePath: (path: string) => path.replace(/^~/, user.home),
  }
  const context = await CommandContext.from({}, io)
  const { address: database } = context
  if (database.scheme !== 'postgres') throw new Error('Only databases are expected here')
  const { password, ...rest }: Login = await loginTo(database, context)
  return { passwords: database.hosts.map(password), ...rest, secrets: [...io.secrets] }
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

  test('that an earlier version saved is ignored, which is said, until auth logout removes it', async () => {
    const settings = { version: 1, ...saved, stores: { db: { address: `${garden}?max=9` } } }
    const user = new World(settings)
    const run = (line: string) =>
      user.run(`${line} --timeout 10ms --output text`, { env: { PGPASSWORD: 'of-env' } })
    const logout = `plants auth logout --store ${shellWord(garden)}`
    const fix = `Set PGPASSWORD, or write it to ${passwordFile}, and remove it with: ${logout}`
    const warning = `plants: The saved password for ${garden} is ignored. ${fix}\n`
    const { code, err } = await run('list --store db')
    expect([code, err.split(warning)]).toEqual([
      4,
      ['', expect.stringContaining('Could not reach')],
    ])
    expect(user.saved).toEqual(settings)
    expect((await login(user, garden)).passwords).toEqual([undefined, undefined])
    expect(await run(`auth logout --store ${garden}`)).toEqual(
      printed(`Removed the password for ${garden}\n`),
    )
    expect(user.saved).toEqual({ ...settings, tokens: {} })
  })

  test('that is a word of the address is not redacted, since a *** would show which word it is', async () => {
    expect((await login(new World(), garden, { env: { PGPASSWORD: 'garden' } })).secrets).toEqual(
      [],
    )
  })
})

describe.runIf(hasOpenssl)('the certificates for a database (need openssl)', () => {
  const never = { ca: undefined, cert: undefined, key: undefined }
  const modes = ['prefer', 'require', 'verify-ca', 'verify-full']
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

  test('are those of libpq, and of the address, in every mode but disable', async () => {
    const user = new World()
    const { cert, key, path, keyPath, other } = made()
    user.write('.postgresql/root.crt', other.cert)
    const own = `sslcert=${path}&sslkey=${keyPath}`
    for (const mode of modes)
      expect(await certificates(user, `sslmode=${mode}&${own}`)).toEqual({
        ca: other.cert,
        cert,
        key,
      })
    expect(await certificates(user, `sslmode=disable&${own}`)).toEqual(never)
    const env = { PLANTS_CA_CERT: path } // comes first where TLS is required
    expect(await login(user, `${garden}?sslmode=prefer`, { env })).toMatchObject({ ca: other.cert })
    expect(await login(user, `${garden}?sslmode=require`, { env })).toMatchObject({ ca: cert })
    expect(await certificates(user, 'sslmode=verify-ca&host=/run/pg&port=5432')).toEqual(never)
    expect(await certificates(new World(), 'sslmode=verify-full')).toEqual(never)
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
    const rootHint = `This one came from sslrootcert of ${garden.replace('ann@', '')}`
    const pair = 'Use a certificate and its key in PEM files, the key without a passphrase'
    for (const [parameters, why, hint] of [
      [
        'sslmode=verify-ca',
        /has no root certificate to verify the server with, .* does not exist$/,
        'Set sslrootcert or --ca-cert',
      ],
      [
        `sslcert=${path}&sslkey=${open}`,
        /^The key \S+ can be changed by others \(mode 602\)$/,
        'chmod 600',
      ],
      [
        `sslcert=${path}&sslkey=${foreign}`,
        /cert\.pem and \S+other\.key are not a certificate and its key$/,
        pair,
      ],
      [root, /text\.pem contains no PEM certificate$/, rootHint],
      [`sslkey=${keyPath}`, /has a client key, but no sslcert$/, 'Give both sslcert and sslkey'],
    ] as const)
      await expect(certificates(user, parameters)).rejects.toMatchObject({
        kind: 'usage',
        message: expect.stringMatching(why),
        hint: expect.stringContaining(hint),
      })
  })
})

const ann = { user: 'ann', database: 'garden' }
const here = { host: 'db.example.com', port: 5432 }

async function read(path: string) {
  const complaints: string[] = []
  const warn = async (message: string) => void complaints.push(message)
  return { file: await readPasswordFile(ioOf({ env: { PGPASSFILE: path } }), warn), complaints }
}

function fileWith(text: string, mode = 0o600): string {
  const user = new World()
  const path = join(user.home, user.write('passwords', text))
  chmodSync(path, mode)
  return path
}

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
  ])('%j has %j', async (text, password) => {
    const { file, complaints } = await read(fileWith(text))
    expect([file?.find(ann, here), complaints]).toEqual([password, []])
  })

  test('has names with colons, addresses and sockets', async () => {
    const { file } = await read(
      fileWith('\\:\\:1:5432:a\\:b:c\\\\d:v6\nlocalhost:*:*:*:usual\n/run/own:*:*:*:own\n'),
    )
    expect(file?.find({ user: 'c\\d', database: 'a:b' }, { host: '::1', port: 5432 })).toBe('v6')
    expect(file?.find(ann, { host: '/var/run/postgresql', port: 5432 })).toBe('usual')
    expect(file?.find(ann, { host: '/run/own', port: 5432 })).toBe('own')
  })

  test.skipIf(isWindows)('is ignored when others can read it (needs modes)', async () => {
    const path = fileWith('*:*:*:*:right', 0o640)
    const why = `because it is open to others (mode 640). Fix it with: chmod 600 ${path}`
    const complaint = `The password file ${path} is ignored, ${why}`
    expect(await read(path)).toEqual({ file: undefined, complaints: [complaint] })
  })

  test('need not exist, as without a home directory', async () => {
    const resolvePath = () => {
      throw usageError('There is no home directory', 'Set HOME')
    }
    const warn = () => Promise.reject(new Error('Nothing is wrong'))
    expect(await readPasswordFile({ ...ioOf({}), resolvePath }, warn)).toBeUndefined()
  })
})
