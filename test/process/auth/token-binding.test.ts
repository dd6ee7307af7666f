import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { Hostile } from '../../helpers/hostile.js'
import { canTrace } from '../../helpers/linux.js'
import { Listener, says } from '../../helpers/postgres/line.js'
import { freshDatabase } from '../../helpers/postgres.js'
import { startUnder } from '../../helpers/process.js'
import {
  accepts,
  created,
  fern,
  recorder,
  Sender,
  token,
  tokensIn,
  tunnelTo,
} from '../../helpers/users.js'
import { printed, World } from '../../helpers/world.js'

describe.runIf(hasOpenssl)(
  'NODE_TLS_REJECT_UNAUTHORIZED=0 sends no token to an impostor (needs openssl)',
  () => {
    const names = ['IP:127.0.0.1', 'DNS:plants.example.com']

    test.each(['directly', 'through a proxy'])('%s', async (way) => {
      const impostor = await Hostile.listen({ posts: [created], tls: certificate({ names }) })
      const proxy = await tunnelTo(impostor)
      const isProxied = way === 'through a proxy'
      const env = {
        NODE_TLS_REJECT_UNAUTHORIZED: '0',
        ...(isProxied && { HTTPS_PROXY: proxy.url }),
      }
      const store = isProxied ? 'https://plants.example.com' : impostor.url
      const user = new Sender()
      const create = await user.spawn(`${fern} ${store}`, { env: { ...env, PLANTS_TOKEN: token } })
      expect(create).toMatchObject({
        code: 4,
        out: '',
        err: expect.stringMatching(/Could not reach .*self.signed certificate/),
      })
      expect([...tokensIn(impostor, proxy), impostor.bytes.length]).toEqual([[], [], 0])
    })
  },
)

test.runIf(hasOpenssl)(
  'DEBUG=* prints neither the token nor the password of a proxy (needs openssl)',
  async () => {
    const tls = certificate({ names: ['DNS:plants.example.com'] })
    const proxy = await tunnelTo(await Hostile.listen({ posts: [created], tls }))
    const HTTPS_PROXY = proxy.url.replace('//', '//me:of-the-proxy@')
    const env = { DEBUG: '*', HTTPS_PROXY, PLANTS_TOKEN: token }
    const result = await new Sender().spawn(
      `${fern} https://plants.example.com --ca-cert ${tls.path}`,
      { env },
    )
    expect(result).toEqual(printed('{"name":"Fern"}\n'))
    const credentials = Buffer.from('me:of-the-proxy').toString('base64')
    expect(proxy.requests[0]?.headers['proxy-authorization']).toBe(`Basic ${credentials}`)
  },
)

describe.runIf(canTrace)('what the system sees (needs strace)', () => {
  /** Runs the program under the umask 0. Returns what it makes, and where a token is seen. */
  async function traced(user: Sender, line: string, input = '') {
    const calls =
      'trace=execve,execveat,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink'
    const tracer = ['strace', '-f', '-s', '65536', '-o', join(user.home, 'strace'), '-e', calls]
    const sh = ['-c', 'umask 0; exec "$0" "$@"', ...tracer]
    expect(
      await startUnder('sh', sh, line.split(' '), user.home, { input, env: user.env }),
    ).toMatchObject({
      exitCode: 0,
      stderr: '',
    })
    const lines = user.read('strace').split('\n')
    const made = lines.flatMap((call) => {
      const [, path = '', flags = 'folder', mode = ''] =
        /"(.*?)", (?:([\w|]*O_CREAT[\w|]*), )?(0\d+)\)(?! += -1 E(?:EXIST|NOENT))/.exec(call) ?? []
      // Bun asks for /dev/null as if it had to be made.
      return path === '' || path === '/dev/null'
        ? []
        : [{ path, flags, mode: (parseInt(mode, 8) & 0o777).toString(8) }]
    })
    return { made, tokens: lines.filter((call) => call.includes('s3cret')) }
  }

  test('what a login makes is private from the first, and no token is an argument', async () => {
    const user = new Sender()
    const service = await recorder(accepts, created)
    const login = `auth login --from-stdin --store ${service.url}`
    const { made, tokens } = await traced(user, login, token)
    const folders = made.filter(({ flags }) => flags === 'folder')
    const files = made.filter(({ flags }) => flags !== 'folder')
    const modesOf = (entries: typeof made) => [...new Set(entries.map(({ mode }) => mode))]
    expect({ tokens, modes: [modesOf(folders), modesOf(files)] }).toEqual({
      tokens: [],
      modes: [['700'], ['600']],
    })
    expect(files.filter(({ path }) => !path.startsWith(`${user.config}/`))).toEqual([])
    expect(user.saved).toMatchObject({ tokens: { [service.url]: { token } } })
    expect(await traced(user, `create --id 1 --name Fern --store ${service.url}`)).toEqual({
      made: [],
      tokens: [],
    })
    expect(readdirSync(user.config)).toEqual(['settings.json', 'settings.json.lock'])
  })
})

test.each([
  ['doctor', true],
  ['auth status', false],
])('plants %s gives PGPASSWORD to no database but that of this run', async (line, connects) => {
  const others = await Promise.all(
    [says.clear, says.md5, says.scram].map((asks) => Listener.start([asks])),
  )
  const stores = others.map(({ port }, index) => [
    `other${index}`,
    { address: `postgres://someone@127.0.0.1:${port}/elsewhere` },
  ])
  const user = new World({ stores: Object.fromEntries(stores) })
  const own = await Listener.start([says.clear, says.refused])
  const env = { PGPASSWORD: token, PLANTS_STORE: `postgres://ann@127.0.0.1:${own.port}/garden` }
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value) // a driver would read them there
  await user.run(line, { env })
  vi.unstubAllEnvs()
  expect(others.map(({ logins }) => logins)).toEqual([0, 0, 0])
  expect(new Set(own.passwords)).toEqual(new Set(connects ? [`${token}\0`] : []))
})

test('no variable of PostgreSQL that docs/database-address.md does not name changes anything', async () => {
  const { url, env } = await freshDatabase()
  const names = `BACKOFF CLIENTENCODING CONNECT_TIMEOUT DATABASE DATESTYLE DEBUG FETCH_TYPES HOST HOSTADDR IDLE_TIMEOUT
    KEEP_ALIVE MAX MAX_LIFETIME MAX_PIPELINE OPTIONS PORT PREPARE PUBLICATIONS SERVICE SSL SSLMODE SSLNEGOTIATION
    TARGETSESSIONATTRS TARGET_SESSION_ATTRS TZ USER USERNAME`
  const nonsense = Object.fromEntries(names.split(/\s+/).map((name) => [`PG${name}`, 'nonsense']))
  const store = `${url}?sslmode=disable&max=2`
  const user = new World()
  const options = { env: { ...nonsense, ...env, PLANTS_STORE: store } }
  expect(await user.spawn('create --id 1 --name Fern', options)).toEqual(
    printed('{"name":"Fern"}\n'),
  )
  expect(await user.spawn('list', options)).toEqual(printed('{"id":1,"name":"Fern"}\n'))
})
