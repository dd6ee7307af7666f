import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, chownSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createCertificate, hasOpenssl } from '../helpers/sandbox/certificates.js'
import type { RunOptions } from '../helpers/sandbox/run.js'
import { isWindows, parseObjects, Sandbox } from '../helpers/sandbox/sandbox.js'
import { openDatabase } from '../helpers/sandbox/sqlite-file.js'
import { closedPort } from '../helpers/scripted-server/scripted-server.js'

const env = { PLANTS_SERVE_TOKEN: 's3cret-token-of-a-service' }

let user: Sandbox

beforeEach(() => {
  user = new Sandbox()
})

/** Starts a service, which stops as soon as it has begun. */
function serve(args: readonly string[] = [], options: RunOptions = {}) {
  const port = args.some((arg) => arg === '--port' || arg === '--socket') ? [] : ['--port', '0']
  return user.run(['serve', ...port, ...args], { env, signal: AbortSignal.abort(), ...options })
}

async function failureOf(args: readonly string[], options: RunOptions = {}) {
  const { code, out, err } = await serve([...args, '--output', 'json'], options)
  expect(out).toBe('')
  return { code, ...parseObjects(err).at(-1) }
}

test.runIf(hasOpenssl)(
  'serve accepts a --tls-key that others can read, and rejects one that they can write to (needs openssl)',
  async () => {
    const { path, keyPath } = createCertificate({ names: ['IP:127.0.0.1'] })
    const args = ['--tls-cert', path, '--tls-key', keyPath]
    chmodSync(keyPath, 0o640)
    expect((await serve(args)).code).toBe(0)
    const expectRefused = async (why: string) =>
      expect(await failureOf(args)).toMatchObject({ code: 2, message: `The key ${keyPath} ${why}` })
    chmodSync(keyPath, 0o602)
    await expectRefused('can be changed by other users (mode 602)')
    if (process.getuid?.() !== 0) return
    chmodSync(keyPath, 0o600)
    chownSync(keyPath, 65_534, 65_534)
    await expectRefused('belongs to another user (uid 65534)')
  },
)

test.each([
  ['127.0.0.1', /^http:\/\/127\.0\.0\.1:\d+\n$/],
  ['0.0.0.0', /^http:\/\/0\.0\.0\.0:\d+\n$/],
])('serve --host %s prints the address that it listens on', async (host, address) => {
  expect((await serve(['--host', host, '-o', 'text'])).out).toMatch(address)
})

const hasIPv6 = networkInterfaces()['lo']?.some(({ address }) => address === '::1')

test.runIf(hasIPv6)('serve --host ::1 prints its address in brackets (needs IPv6)', async () => {
  const { out } = await serve(['--host', '::1', '-o', 'text'])
  expect(out).toMatch(/^http:\/\/\[::1\]:\d+\n$/)
})

describe('a store that does not exist', () => {
  test('is neither served nor created without a token', async () => {
    for (const [args, path] of [
      [['--store', 'a.db'], join(user.home, 'a.db')],
      [[], user.store],
    ] as const)
      expect(await failureOf(args, { env: {} })).toMatchObject({
        ...{ code: 4, error: 503, message: `There is no store at ${path}` },
        hint: expect.stringContaining('plants tokens create'),
      })
    expect(readdirSync(user.home)).toEqual([])
  })

  test('is not created in a SQLite file without tables', async () => {
    const path = join(user.home, 'a.db')
    openDatabase(path).exec('PRAGMA user_version = 0; VACUUM')
    const size = statSync(path).size
    const message = `There is no store at ${path}`
    expect(await failureOf(['--store', 'a.db'], { env: {} })).toMatchObject({ code: 4, message })
    expect([size > 0, statSync(path).size]).toEqual([true, size])
  })

  test('is created for tokens from elsewhere, and the log says so once', async () => {
    const errors = [await serve(['--store', 'a.db']), await serve(['--store', 'a.db'])]
    expect(errors.map(({ err }) => err.includes('Created store'))).toEqual([true, false])
  })
})

describe('a service does not start', () => {
  test('with a single connection to a database, because a search would occupy it', async () => {
    const store = ['--store', `postgres://ann@127.0.0.1:${closedPort}/garden?max=1`]
    const name = `postgres://127.0.0.1:${closedPort}/garden`
    expect(await failureOf(store)).toMatchObject({
      ...{ code: 2, message: `A service needs at least 2 connections to ${name}, but max is 1` },
      hint: 'Remove max from the address',
    })
  })

  test.each(['--port', '--admin-port'])('at a %s that is taken', async (flag) => {
    const server = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo // as it listens at one
    const message = `Port ${port} of 127.0.0.1: address already in use`
    const hint = 'Choose another port, because another program listens on this one'
    const failure = { code: 4, error: 503, message, retryable: true, hint, kind: 'unavailable' }
    expect(await failureOf([flag, `${port}`])).toEqual(failure)
  })

  test.each([
    ['--host', []],
    ['--admin-host', ['--admin-port', '0']],
  ])('with a %s that is not of this machine, and says what to choose', async (flag, args) => {
    const hint = 'Choose an address of this machine, such as 127.0.0.1'
    const failure = { code: 2, error: 400, hint, kind: 'usage' }
    const messages = {
      'nosuch.invalid': 'Port 0 of nosuch.invalid: the host name was not found',
      '192.0.2.1': 'Port 0 of 192.0.2.1: address not available',
    }
    for (const [host, message] of Object.entries(messages))
      expect(await failureOf([...args, flag, host])).toEqual({ ...failure, message })
    expect((await serve([...args, flag, '127.0.0.1'])).code).toBe(0) // as the hint says
  })

  test.skipIf(isWindows).each([
    ['--port', '0'],
    ['--host', '127.0.0.1'],
    ['--tls-cert', 'garden.pem'],
    ['--tls-key', 'garden.pem'],
  ])('at a socket and a %s (needs Unix sockets)', async (flag, value) => {
    const args = ['--socket', join(user.home, 'socket'), flag, value]
    const message = `--socket cannot be used with ${flag}`
    const hint = 'Leave one of them out'
    expect(await failureOf(args)).toMatchObject({ code: 2, error: 400, message, hint })
  })

  test.skipIf(isWindows)('at a socket that cannot be created (needs Unix sockets)', async () => {
    const file = `${user.home}/${user.write('file', 'precious')}`
    for (const path of [file, `${user.home}/none/socket`, `${file}/socket`]) {
      const message = expect.stringContaining(path)
      const failure = await failureOf(['--socket', path])
      expect(failure).toMatchObject({ code: 4, error: 503, message })
      expect(failure).not.toHaveProperty('retryable')
    }
    expect(user.read('file')).toBe('precious')
    const long = `${user.home}/${'x'.repeat(100)}`
    const message = expect.stringContaining(`${long} is too long for a socket`)
    expect(await failureOf(['--socket', long])).toMatchObject({ code: 2, message })
  })

  test('with a token from the environment that is short, which is not repeated', async () => {
    const serveWith = (token: string) => failureOf([], { env: { PLANTS_SERVE_TOKEN: token } })
    const message = 'PLANTS_SERVE_TOKEN is shorter than 16 characters'
    for (const token of ['s3cret', 's3cret-of-15-chr'.slice(1), '  s3cret-of-15-ch  ']) {
      const failure = await serveWith(token)
      expect(failure).toMatchObject({ code: 2, error: 400, message })
      expect(JSON.stringify(failure)).not.toContain(token.trim())
    }
    const started = await serve([], { env: { PLANTS_SERVE_TOKEN: 's3cret-of-16-chr' } })
    expect(started.code).toBe(0)
  })

  test.runIf(hasOpenssl && !isWindows)(
    'with a short token, but starts with one that its hint creates (needs openssl)',
    async () => {
      const { err } = await serve([], { env: { PLANTS_SERVE_TOKEN: 's3cret' } })
      const command = err.replace(/^.* such as from: /s, '').trim()
      const token = execFileSync('sh', ['-c', command], { encoding: 'utf8' })
      expect((await serve([], { env: { PLANTS_SERVE_TOKEN: token } })).code).toBe(0)
    },
  )

  test('without a valid token', async () => {
    await user.run('create --id 1 --name Fern')
    const message = expect.stringContaining('has no valid token')
    expect(await failureOf([], { env: {} })).toMatchObject({ code: 3, error: 401, message })
  })

  test.runIf(hasOpenssl)('without the key of its certificate (needs openssl)', async () => {
    const [one, two] = [
      createCertificate({ names: ['DNS:one'] }),
      createCertificate({ names: ['DNS:two'] }),
    ]
    const other = join(user.home, 'other.pem')
    const { privateKey } = generateKeyPairSync('ed25519')
    writeFileSync(other, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
    const failureWith = (cert: string, ...key: string[]) => failureOf(['--tls-cert', cert, ...key])
    for (const key of [[], ['--tls-key', '/nonexistent/key.pem']])
      expect(await failureWith(one.path, ...key)).toMatchObject({ code: 2 })
    for (const [cert, key] of [
      [one.path, two.keyPath],
      [one.path, other],
    ] as const)
      expect(await failureWith(cert, '--tls-key', key)).toMatchObject({
        ...{
          code: 2,
          error: 400,
          message: `${cert} and ${key} are not a certificate and the key for it`,
        },
        hint: 'Give a certificate in PEM, and its key in PEM without a passphrase',
      })
    expect((await serve(['--tls-cert', one.path, '--tls-key', one.keyPath])).code).toBe(0)
  })

  test.runIf(hasOpenssl)(
    'with a file of another kind in place of a certificate or its key',
    async () => {
      const { path, keyPath } = createCertificate({ names: ['DNS:one'] })
      const [empty, locked] = [join(user.home, 'empty.pem'), join(user.home, 'locked.pem')]
      user.write('empty.pem', '')
      const encrypt = `pkcs8 -topk8 -in ${keyPath} -out ${locked} -passout pass:s3cret`
      execFileSync('openssl', encrypt.split(' '))
      const hint = 'Give a certificate in PEM, and its key in PEM without a passphrase'
      for (const [cert, key] of [
        [empty, keyPath],
        [keyPath, path],
        [path, path],
        [path, empty],
        [path, locked],
      ] as const) {
        const message = `${cert} and ${key} are not a certificate and the key for it`
        const failure = await failureOf(['--tls-cert', cert, '--tls-key', key])
        expect(failure).toMatchObject({ code: 2, error: 400, message, hint })
      }
    },
  )

  test('with a file that does not exist', async () => {
    const path = user.write('one.pem', '')
    for (const files of [
      ['--tls-cert', 'none.pem', '--tls-key', path],
      ['--tls-cert', path, '--tls-key', 'none.pem'],
    ]) {
      const message = expect.stringContaining('none.pem could not be read: no such file')
      expect(await failureOf(files)).toMatchObject({ code: 2, message })
    }
  })
})

test('the log of a service says what it offers', async () => {
  const { err } = await serve(['--allow', 'read,delete'])
  expect(parseObjects(err)).toContainEqual(expect.objectContaining({ rights: ['read', 'delete'] }))
})

test.each([
  [[], '127.0.0.1'],
  [['--admin-host', '127.0.0.2'], '127.0.0.2'],
])(
  'the admin port listens on this machine only, unless --admin-host says otherwise: %j',
  async (args, host) => {
    const { code, err } = await serve(['--admin-port', '0', ...args])
    const { admin } = parseObjects(err).find(({ msg }) => msg === 'listening') ?? {}
    expect([code, new URL(`${admin}`).hostname]).toEqual([0, host])
  },
)

// What else these commands print is in transcripts/auth.txt.

test('tokens create prints all properties of the token as JSON', async () => {
  const { out } = await user.run('tokens create --note laptop --expires 12h --output json')
  const { createdAt, expiresAt, ...token } = JSON.parse(out)
  const [rights, text] = [['create', 'read'], expect.stringMatching(/^plants_[\w-]{43}$/)]
  expect(token).toEqual({ id: 1, note: 'laptop', rights, token: text })
  expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(12 * 3_600_000)
})

test('tokens list shows the days and the state of each token as a table', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2026, 0, 1) })
  onTestFinished(() => void vi.useRealTimers())
  await user.run('tokens create --note ci --expires 1d')
  await user.run('tokens create --note web --expires 3d --allow read')
  await user.run('tokens create --note old')
  vi.setSystemTime(Date.UTC(2026, 0, 2))
  await user.run('tokens create')
  await user.run('tokens revoke old')
  expect((await user.run('tokens list --output text')).out).toBe(
    `
ID  NOTE  CREATED     EXPIRES     STATE    RIGHTS
 1  ci    2026-01-01  2026-01-02  expired  create,read
 2  web   2026-01-01  2026-01-04  valid    read
 3  old   2026-01-01              revoked  create,read
 4        2026-01-02              valid    create,read
`.trimStart(),
  )
})
