import { once } from 'node:events'
import { chmodSync, chownSync, readdirSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { objectsOf } from '../../helpers/json-lines.js'
import type { RunOptions } from '../../helpers/run.js'
import { isWindows } from '../../helpers/windows.js'
import { refusal, World } from '../../helpers/world.js'

const env = { PLANTS_SERVE_TOKEN: 's3cret-token-of-a-service' }

let user: World

beforeEach(() => {
  user = new World()
})

/** Starts a service, which stops as soon as it has begun. */
function serve(args: readonly string[] = [], options: RunOptions = {}) {
  const port = args.some((arg) => arg === '--port' || arg === '--socket') ? [] : ['--port', '0']
  return user.run(['serve', ...port, ...args], { env, signal: AbortSignal.abort(), ...options })
}

async function failureOf(args: readonly string[], options: RunOptions = {}) {
  const { code, out, err } = await serve([...args, '--output', 'json'], options)
  expect(out).toBe('')
  return { code, ...objectsOf(err).at(-1) }
}

function messagesIn(err: string, wanted: string): unknown[] {
  return objectsOf(err).flatMap(({ level, msg }) => (level === wanted ? [msg] : []))
}

test.runIf(hasOpenssl)(
  'a --tls-key that others can read is warned of, and one that they can write is refused (needs openssl)',
  async () => {
    const { path, keyPath } = certificate({ names: ['IP:127.0.0.1'] })
    const refused = (why: string) =>
      refusal(
        `The key ${keyPath} ${why}`,
        'Use a key of your own, which only you can change: chmod 600',
      )
    const args = ['--tls-cert', path, '--tls-key', keyPath]
    chmodSync(keyPath, 0o640)
    const warning = `Other users can read the TLS key. Fix it with: chmod 600 ${keyPath}`
    expect(messagesIn((await serve(args)).err, 'warn')).toEqual([warning])
    chmodSync(keyPath, 0o602)
    expect(await serve(args)).toEqual(refused('can be changed by others (mode 602)'))
    if (process.getuid?.() !== 0) return
    chmodSync(keyPath, 0o600)
    chownSync(keyPath, 65_534, 65_534)
    expect(await serve(args)).toEqual(refused('belongs to another user (uid 65534)'))
  },
)

describe('a store that does not exist', () => {
  const hint = 'To create a store, and a token for clients: plants tokens create'

  test('is neither served nor created without a token', async () => {
    const options: RunOptions = { env: { NO_COLOR: '1' } }
    const missing = refusal(
      `There is no store at ${join(user.home, 'a.db')}`,
      `${hint} --store a.db`,
      4,
    )
    expect(await serve(['--store', 'a.db'], options)).toEqual(missing)
    expect(await serve([], options)).toEqual(refusal(`There is no store at ${user.store}`, hint, 4))
    expect(readdirSync(user.home)).toEqual([])
  })

  test('is created for tokens from elsewhere, and the log says so once', async () => {
    const errors = [await serve(['--store', 'a.db']), await serve(['--store', 'a.db'])].map(
      ({ err }) => err,
    )
    expect(errors.map((err) => err.includes('Created store'))).toEqual([true, false])
  })
})

describe('a service does not start', () => {
  test.each(['--port', '--admin-port'])('at a %s that is taken', async (flag) => {
    const server = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo // as it listens at one
    const message = `Port ${port} of 127.0.0.1: address already in use`
    const hint = 'Give another --port, --host or --socket'
    expect(await failureOf([flag, `${port}`])).toEqual({
      code: 4,
      error: 503,
      message,
      hint,
      retryable: true,
    })
  })

  test.skipIf(isWindows)('at a socket that cannot be there (needs Unix sockets)', async () => {
    const message = expect.stringContaining(`${user.home}/none`)
    expect(await failureOf(['--socket', `${user.home}/none/socket`])).toMatchObject({
      code: 4,
      error: 503,
      message,
    })
  })

  test.skipIf(isWindows)('in the place of a file (needs Unix sockets)', async () => {
    const path = `${user.home}/${user.write('file', 'precious')}`
    const message = `${path}: address already in use`
    expect(await failureOf(['--socket', path])).toMatchObject({ code: 4, message })
    expect(user.read('file')).toBe('precious')
  })

  test('without a valid token', async () => {
    await user.run('create --id 1 --name Fern')
    const message = `${user.store} has no valid token, so no client could use the service`
    const hint = 'Create one with: plants tokens create. Or set PLANTS_SERVE_TOKEN'
    expect(await failureOf([], { env: {} })).toEqual({ code: 3, error: 401, message, hint })
  })

  test.runIf(hasOpenssl)('without the key of its certificate (needs openssl)', async () => {
    const [one, two] = [certificate({ names: ['DNS:one'] }), certificate({ names: ['DNS:two'] })]
    const codeWith = async (...key: string[]) =>
      (await serve(['--tls-cert', one.path, ...key])).code
    for (const key of [[], ['--tls-key', two.keyPath], ['--tls-key', '/nonexistent/key.pem']])
      expect(await codeWith(...key)).toBe(2)
    expect(await codeWith('--tls-key', one.keyPath)).toBe(0)
  })

  test.each([
    [['--admin-host', '127.0.0.1'], '--admin-host needs --admin-port', 'Add --admin-port 9090'],
    [
      ['--host', '192.0.2.1', '--port', '4010'],
      'Port 4010 of 192.0.2.1: address not available',
      'Give another --port, --host or --socket',
    ],
  ])('where it cannot listen: %j', async (args, message, hint) => {
    expect(await failureOf(args)).toEqual({ code: 2, error: 400, message, hint })
  })
})

test.skipIf(isWindows)('the address is escaped on a terminal (needs Unix sockets)', async () => {
  const args = ['--socket', `${user.home}/s\x1b[31m\x9b\u202e`, '--output', 'text']
  expect(await serve(args, { terminals: ['stdout'] })).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^unix:[ -~]+\n$/),
  })
  expect((await serve(args)).out).toContain('\u202e')
})

test.each([
  [[], '127.0.0.1', []],
  [['--admin-host', '127.0.0.2'], '127.0.0.2', []],
  [
    ['--admin-host', '0.0.0.0'],
    '127.0.0.1',
    ['Other machines can reach the admin port, which needs no token'],
  ],
])(
  'the admin port is on this machine alone, without --admin-host: %j',
  async (args, host, warnings) => {
    const { code, err } = await serve(['--admin-port', '0', ...args])
    const { admin } = objectsOf(err).find(({ msg }) => msg === 'listening') ?? {}
    expect([code, new URL(`${admin}`).hostname, messagesIn(err, 'warn')]).toEqual([
      0,
      host,
      warnings,
    ])
  },
)

test('the log is text on a terminal, and otherwise JSON', async () => {
  const address = expect.any(String)
  const onTerminal = await serve([], { terminals: ['stderr'] })
  expect(onTerminal.err).toMatch(/^\d\d:\d\d:\d\d listening address=http:\/\/127\.0\.0\.1:\d+$/m)
  const line = { level: 'info', time: expect.stringMatching(/Z$/), address, msg: 'listening' }
  expect(objectsOf((await serve()).err)).toContainEqual(line)
})

// What else these commands print is in transcripts/auth.txt.

test('a note that several tokens have revokes none of them', async () => {
  for (const line of ['--note web', '--note web']) await user.run(`tokens create ${line}`)
  expect(await user.run('tokens revoke web')).toEqual(
    refusal('Several tokens have this note', 'Name one by its id: plants tokens list'),
  )
  expect((await user.run('tokens revoke 1')).code).toBe(0)
  expect(await user.run('tokens revoke web')).toMatchObject({ code: 0, err: '' })
})

test('tokens create prints all about the token as JSON', async () => {
  const { out } = await user.run('tokens create --note laptop --expires 12h --output json')
  const { createdAt, expiresAt, ...token } = JSON.parse(out)
  expect(token).toEqual({
    id: 1,
    note: 'laptop',
    rights: ['create', 'read'],
    token: expect.stringMatching(/^plants_/),
  })
  expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(12 * 3_600_000)
})

test('tokens list is a table that fits a terminal of 80 columns', async () => {
  const create = 'tokens create --note continuous-integration --expires 90d'
  const { err } = await user.run(create, { terminals: ['stdout', 'stderr'] })
  expect(err).toContain('This is token 1. It is not shown again')
  await user.run('tokens create --note laptop --expires 1ms')
  await user.run('tokens create --note ci --allow create,read,update,delete')
  await user.run('tokens revoke 3')
  const { out } = await user.run('tokens list --no-color', { terminals: ['stdout'] })
  expect(out.replaceAll(/\d{4}-\d\d-\d\d/g, 'YYYY-MM-DD')).toBe(`\
ID  NOTE                  CREATED     EXPIRES     STATE    RIGHTS
 1  continuous-integrat…  YYYY-MM-DD  YYYY-MM-DD  valid    create,read
 2  laptop                YYYY-MM-DD  YYYY-MM-DD  expired  create,read
 3  ci                    YYYY-MM-DD              revoked  create,read,update,…
`)
})
