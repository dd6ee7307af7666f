import { chmodSync, chownSync, readdirSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { objectsOf } from '../../helpers/json-lines.js'
import type { RunOptions } from '../../helpers/run.js'
import { refusal, World } from '../../helpers/world.js'

const tokens = 's3cret-token-of-a-service\n'

let user: World

beforeEach(() => {
  user = new World()
})

/** Starts a service, which stops as soon as it has begun. */
function serve(args: readonly string[] = [], options: RunOptions = {}) {
  const env = { PLANTS_SERVE_TOKEN: 's3cret-token-of-a-service' }
  return user.run(['serve', '--port', '0', ...args], { env, signal: AbortSignal.abort(), ...options })
}

function messagesIn(err: string, wanted: string): unknown[] {
  return objectsOf(err).flatMap(({ level, msg }) => (level === wanted ? [msg] : []))
}

describe('a warning of a file of secrets:', () => {
  test.each([
    [0o600, false],
    [0o640, true],
    [0o602, true],
  ])('a --token-file of mode %o that others can read or write: %s', async (mode, isWarned) => {
    const path = `${user.home}/${user.write('the tokens', tokens)}`
    chmodSync(path, mode)
    const { code, err } = await serve(['--token-file', path])
    const fix = `Fix it with: chmod 600 '${path}'`
    const warning = `Other users can read or write the file ${path} of --token-file. ${fix}`
    expect([code, messagesIn(err, 'warn')]).toEqual([0, isWarned ? [warning] : []])
  })

  test.runIf(process.getuid?.() === 0)('a --token-file of another user (needs root)', async () => {
    const path = `${user.home}/${user.write('tokens', tokens)}`
    chownSync(path, 65_534, 65_534)
    const { code, err } = await serve(['--token-file', path])
    const warning = `The file ${path} of --token-file belongs to another user (uid 65534), who can read and change it`
    expect([code, messagesIn(err, 'warn')]).toEqual([0, [warning]])
  })

  test.runIf(hasOpenssl)('a --tls-key (needs openssl)', async () => {
    const { cert, key } = certificate({ names: ['IP:127.0.0.1'] })
    user.write('cert.pem', cert)
    user.write('key.pem', key, 0o644)
    const { code, err } = await serve(['--tls-cert', 'cert.pem', '--tls-key', 'key.pem'])
    const path = `${user.home}/key.pem`
    const warning = `Other users can read or write the file ${path} of --tls-key. Fix it with: chmod 600 ${path}`
    expect([code, messagesIn(err, 'warn')]).toEqual([0, [warning]])
  })
})

describe('a store that does not exist', () => {
  const hint = 'Check the address. To create a store, and a token for clients: plants tokens create'

  test('is neither served nor created without a token, unless it is the default one on a terminal', async () => {
    const options: RunOptions = { env: { NO_COLOR: '1' } }
    const missing = refusal(`There is no store at ${user.home}/a.db`, `${hint} --store a.db`, 4)
    expect(await serve(['--store', 'a.db'], options)).toEqual(missing)
    expect(await serve(['--store', 'a.db'], { ...options, terminals: ['stdin', 'stdout', 'stderr'] })).toEqual(missing)
    expect(await serve([], options)).toEqual(refusal(`There is no store at ${user.store}`, hint, 4))
    expect(readdirSync(user.home)).toEqual([])
  })

  test('is created for tokens from elsewhere, and the log says so once', async () => {
    const errors = [await serve(['--store', 'a.db']), await serve(['--store', 'a.db'])].map(({ err }) => err)
    expect(errors.map((err) => err.includes('Created store'))).toEqual([true, false])
  })
})

test.each([
  ['text', 'unix:', '\u202e'],
  ['json', '{"address":"unix:', '\\u202e'],
])('the address is escaped on a terminal: --output %s', async (output, start, inPipe) => {
  const args = ['--socket', `${user.home}/s\x1b[31m\x9b\u202e`, '--output', output]
  const env = { PLANTS_SERVE_TOKEN: 's3cret-token-of-a-service' }
  const run = (terminals: RunOptions['terminals'] & {}) =>
    user.run(['serve', ...args], { env, signal: AbortSignal.abort(), terminals })
  const { code, out } = await run(['stdout'])
  expect([code, out.startsWith(start)]).toEqual([0, true])
  expect(out.trimEnd()).toMatch(/^[ -~]+$/)
  expect((await run([])).out).toContain(inPipe)
})

test.each([
  [[], '127.0.0.1', []],
  [['--host', '127.0.0.3'], '127.0.0.1', []],
  [['--admin-host', '127.0.0.2'], '127.0.0.2', []],
  [['--admin-host', '0.0.0.0'], '127.0.0.1', ['Other machines can reach the admin port, which needs no token']],
])(
  'the admin port is on this machine alone, unless --admin-host is another address: %j',
  async (args, host, warnings) => {
    const { code, err } = await serve(['--admin-port', '0', ...args])
    const { admin } = objectsOf(err).find(({ msg }) => msg === 'listening') ?? {}
    expect([code, new URL(`${admin}`).hostname, messagesIn(err, 'warn')]).toEqual([0, host, warnings])
  },
)

test.each([
  [['--admin-host', '127.0.0.1'], '--admin-host needs --admin-port', 'Add --admin-port 9090'],
  [
    ['--admin-port', '0', '--admin-host', '192.0.2.1'],
    '192.0.2.1 is not an address of this machine',
    'Give --admin-host 127.0.0.1, or 0.0.0.0 for all of them',
  ],
  [
    ['--host', '192.0.2.1'],
    '192.0.2.1 is not an address of this machine',
    'Give --host 127.0.0.1, or 0.0.0.0 for all of them',
  ],
])('exit code 2 where it cannot listen, with the name of the flag: %j', async (args, message, hint) => {
  const { code, err } = await serve(args)
  expect([code, err]).toEqual([2, expect.stringContaining(message)])
  expect(err).toContain(hint)
})

test('the log is text on a terminal, and otherwise JSON', async () => {
  const onTerminal = await serve([], { terminals: ['stderr'], env: { PLANTS_SERVE_TOKEN: tokens.trim() } })
  expect(onTerminal.err).toMatch(/^\d\d:\d\d:\d\d listening address=http:\/\/127\.0\.0\.1:\d+$/m)
  const time = expect.stringMatching(/Z$/)
  expect(objectsOf((await serve()).err)).toContainEqual({
    level: 'info',
    time,
    address: expect.any(String),
    msg: 'listening',
  })
})

// What these commands print is in transcripts/auth.txt.

test('tokens create prints a new token each time, and nothing else', async () => {
  const [first, second] = [await user.run('tokens create'), await user.run('tokens create --note laptop --expires 90d')]
  for (const { code, out } of [first, second])
    expect([code, out]).toEqual([0, expect.stringMatching(/^plants_[\w-]{43}\n$/)])
  expect(first.out).not.toBe(second.out)
})

test('tokens create prints all about the token as JSON', async () => {
  const { out } = await user.run('tokens create --note laptop --expires 12h --output json')
  const { createdAt, expiresAt, ...token } = JSON.parse(out)
  expect(token).toEqual({ id: 1, note: 'laptop', rights: ['create', 'read'], token: expect.stringMatching(/^plants_/) })
  expect(Date.parse(expiresAt) - Date.parse(createdAt)).toBe(12 * 3_600_000)
})

test('tokens create says on a terminal that the token is shown once, and until when it is valid', async () => {
  const { err } = await user.run('tokens create --expires 2m', { terminals: ['stdout', 'stderr'] })
  expect(err).toMatch(/This is token 1, valid until [\d-]{10}T[\d:]{5}Z. It is not shown again/)
})

test('tokens list is a table that fits a terminal of 80 columns', async () => {
  await user.run('tokens create --note continuous-integration --expires 90d')
  await user.run('tokens create --allow create,read,update,delete')
  await user.run('tokens create --note laptop --expires 1ms')
  await user.run('tokens create --note ci --allow delete,read,delete')
  await user.run('tokens revoke 4')
  const { out } = await user.run('tokens list --no-color', { terminals: ['stdout'] })
  expect(out.replaceAll(/\d{4}-\d\d-\d\d/g, 'YYYY-MM-DD')).toBe(`\
ID  NOTE             CREATED     EXPIRES     LAST USED  STATE    RIGHTS
 1  continuous-int…  YYYY-MM-DD  YYYY-MM-DD             valid    create,read
 2                   YYYY-MM-DD                         valid    create,read,up…
 3  laptop           YYYY-MM-DD  YYYY-MM-DD             expired  create,read
 4  ci               YYYY-MM-DD                         revoked  read,delete
`)
})
