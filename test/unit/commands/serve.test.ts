import { chmodSync, chownSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { type RunOptions, runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

/** Starts a service, which stops as soon as it has begun. */
function serve(folder: string, args: string[], world: RunOptions = {}) {
  const signal = AbortSignal.abort()
  const env = { PLANTS_SERVE_TOKEN: 's3cret-token-of-a-service' }
  return runPlants(['serve', '--store', join(folder, 'plants.db'), '--port', '0', ...args], { env, signal, ...world })
}

function warningsIn(err: string): string[] {
  const lines = err.split('\n').filter((line) => line !== '')
  return lines.map((line) => JSON.parse(line)).flatMap(({ level, msg }) => (level === 'warn' ? [msg] : []))
}

describe('a file of secrets that others can read or write', () => {
  test.each([
    [0o600, 0],
    [0o640, 1],
    [0o604, 1],
    [0o666, 1],
  ])('is warned of: a --token-file of mode %o', async (mode, count) => {
    const folder = temporaryFolder()
    const path = join(folder, "it's tokens")
    writeFileSync(path, 's3cret-first-of-the-file\n')
    chmodSync(path, mode)
    const { code, err } = await serve(folder, ['--token-file', path])
    const warning = `Other users can read or write the file ${path} of --token-file. Fix it with: chmod 600 '${path.replace("'", "'\\''")}'`
    expect([code, warningsIn(err)]).toEqual([0, Array.from({ length: count }, () => warning)])
  })

  test.runIf(process.getuid?.() === 0)('is warned of: a --token-file of another user (needs root)', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'tokens')
    writeFileSync(path, 's3cret-first-of-the-file\n', { mode: 0o600 })
    chownSync(path, 65_534, 65_534)
    const { code, err } = await serve(folder, ['--token-file', path])
    const warning = `The file ${path} of --token-file belongs to another user (uid 65534), who can read and change it`
    expect([code, warningsIn(err)]).toEqual([0, [warning]])
  })

  test.runIf(hasOpenssl)('is warned of: a --tls-key (needs openssl)', async () => {
    const folder = temporaryFolder()
    const { cert, key } = certificate({ names: ['IP:127.0.0.1'] })
    const [certPath, keyPath] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
    writeFileSync(certPath, cert)
    writeFileSync(keyPath, key, { mode: 0o644 })
    const { code, err } = await serve(folder, ['--tls-cert', certPath, '--tls-key', keyPath])
    const warning = `Other users can read or write the file ${keyPath} of --tls-key. Fix it with: chmod 600 ${keyPath}`
    expect([code, warningsIn(err)]).toEqual([0, [warning]])
  })
})

describe('a store that does not exist', () => {
  const terminals: RunOptions['terminals'] = ['stdin', 'stdout', 'stderr']

  test.each([
    ['in a pipe', {}],
    ['on a terminal', { terminals, env: { NO_COLOR: '1' } }],
  ])('is not served, and not created, %s', async (_, world) => {
    const folder = temporaryFolder()
    const { code, err } = await serve(folder, [], { env: {}, ...world })
    const message = `There is no store at ${join(folder, 'plants.db')}`
    const error = {
      error: 503,
      message,
      hint: `Check the address. To create a store, and a token for clients: plants tokens create --store ${join(folder, 'plants.db')}`,
    }
    expect([code, err]).toEqual([4, `plants: ${error.message}\n  ${error.hint}\n`])
    expect(readdirSync(folder)).toEqual([])
  })

  test('is not created in the data directory for tokens that nobody would see', async () => {
    const folder = temporaryFolder()
    const hint = 'Check the address. To create a store, and a token for clients: plants tokens create'
    const err = `plants: There is no store at ${folder}/plants.db\n  ${hint}\n`
    expect(await runPlants(['serve', '--port', '0'], { env: { PLANTS_DATA_DIR: folder } })).toEqual({
      code: 4,
      out: '',
      err,
    })
    expect(readdirSync(folder)).toEqual([])
  })

  test('is created for tokens from elsewhere, and the log says so, once', async () => {
    const folder = temporaryFolder()
    const created = (err: string) => err.split('\n').filter((line) => line.includes('Created store'))
    const first = await serve(folder, [])
    expect([first.code, created(first.err).map((line) => JSON.parse(line).msg)]).toEqual([
      0,
      [`Created store ${folder}/plants.db`],
    ])
    expect(created((await serve(folder, [])).err)).toEqual([])
  })
})

test.each([
  ['text', 'unix:', '\u202e'],
  ['json', '{"address":"unix:', '\\u202e'],
])('the address is escaped on a terminal: --output %s', async (output, start, inPipe) => {
  const folder = temporaryFolder()
  const args = [
    'serve',
    '--store',
    join(folder, 'plants.db'),
    '--socket',
    join(folder, 's\x1b[31m\x9b\u202e'),
    '--output',
    output,
  ]
  const world = { env: { PLANTS_SERVE_TOKEN: 's3cret-token-of-a-service' }, signal: AbortSignal.abort() }
  const seen = await runPlants(args, { ...world, terminals: ['stdout'] })
  expect([seen.code, seen.out.startsWith(start)]).toEqual([0, true])
  expect(seen.out.trimEnd()).toMatch(/^[ -~]+$/)
  const piped = await runPlants(args, world)
  expect(piped.out).toContain(inPipe)
})

const open = 'Other machines can reach the admin port, which needs no token'

test.each([
  [[], '127.0.0.1', []],
  [['--host', '127.0.0.3'], '127.0.0.1', []],
  [['--admin-host', '127.0.0.2'], '127.0.0.2', []],
  [['--admin-host', '0.0.0.0'], '127.0.0.1', [open]],
])(
  'the admin port listens on this machine alone, unless --admin-host names another address: %s',
  async (args, host, warnings) => {
    const { code, err } = await serve(temporaryFolder(), ['--admin-port', '0', ...args])
    const line = err.split('\n').find((text) => text.includes('"listening"')) ?? '{}'
    expect([code, new URL(JSON.parse(line).admin).hostname, warningsIn(err)]).toEqual([0, host, warnings])
  },
)

test.each([
  [['--admin-host', '127.0.0.1'], '--admin-host needs --admin-port', 'Add --admin-port 9090'],
  [
    ['--admin-host', '192.0.2.1', '--admin-port', '0'],
    '192.0.2.1 is not an address of this machine',
    'Give --admin-host 127.0.0.1, or 0.0.0.0 for all of them',
  ],
  [
    ['--host', '192.0.2.1'],
    '192.0.2.1 is not an address of this machine',
    'Give --host 127.0.0.1, or 0.0.0.0 for all of them',
  ],
])('a place where it cannot listen is refused by the name of its flag: %s', async (args, message, hint) => {
  const { code, err } = await serve(temporaryFolder(), args)
  expect([code, err.includes(message), err.includes(hint)]).toEqual([2, true, true])
})

test.each([
  ['on a terminal', 'text', ['stderr' as const]],
  ['in a file', 'json', []],
])('the log %s is %s', async (_, format, terminals) => {
  const args = ['serve', '--store', join(temporaryFolder(), 'plants.db'), '--port', '0']
  const world = { env: { PLANTS_SERVE_TOKEN: 's3cret-token-of-a-service' }, signal: AbortSignal.abort(), terminals }
  const { err } = await runPlants(args, world)
  const line = err.split('\n').find((text) => text.includes('listening')) ?? ''
  if (format === 'text') expect(line).toMatch(/^\d\d:\d\d:\d\d listening address=http:\/\/127\.0\.0\.1:\d+$/)
  else
    expect(JSON.parse(line)).toEqual({
      level: 'info',
      time: expect.stringMatching(/Z$/),
      address: expect.any(String),
      msg: 'listening',
    })
})
