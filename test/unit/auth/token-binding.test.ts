import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { type Answer, Hostile, http } from '../../helpers/hostile.js'
import { accepts, created, fern, recorder, saved, token, tokensIn, tunnelTo } from '../../helpers/recorder.js'
import { socketPath } from '../../helpers/remote.js'
import { type Result, type RunOptions, runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

class User {
  readonly folder = temporaryFolder()
  readonly file = join(this.folder, 'settings.json')

  constructor(fields: Record<string, unknown> = {}) {
    this.save(fields)
  }

  save(fields: Record<string, unknown>): void {
    writeFileSync(this.file, JSON.stringify({ version: 1, ...fields }), { mode: 0o600 })
  }

  async run(argv: string[], world: RunOptions = {}): Promise<Result> {
    return runPlants(argv, {
      ...world,
      env: { PATH: process.env['PATH'] ?? '', PLANTS_CONFIG_DIR: this.folder, ...world.env },
    })
  }

  async login(store: string, text = token): Promise<number> {
    return (await this.run(['auth', 'login', '--with-token', '--store', store], { stdin: text })).code
  }

  async createAt(store: string, env: Record<string, string> = {}): Promise<number> {
    return (await this.run([...fern, store], { env })).code
  }
}

/** A file with a token, for a command that prints it. */
function commandFile(): string {
  const file = join(temporaryFolder(), 'token')
  writeFileSync(file, 's3cret-of-command', { mode: 0o600 })
  return file
}

describe('a saved token', () => {
  test('goes to its own address, however that is written', async () => {
    const user = new User()
    const remote = await recorder(accepts, created)
    const { port } = remote
    expect(await user.login(`HTTP://127.0.0.1:${port}/v1/`)).toBe(0)
    const same = [
      `http://127.0.0.1:${port}/v1`,
      `${remote.url}/v1//`,
      `http://127.1:${port}/v1`,
      `http://2130706433:${port}/v1`,
      `${remote.url}/v2/../v1`,
    ]
    for (const address of same) expect({ address, code: await user.createAt(address) }).toEqual({ address, code: 0 })
    expect(tokensIn(remote)).toEqual([Array.from({ length: 6 }, () => token)])
    expect(Object.keys(JSON.parse(readFileSync(user.file, 'utf8')).tokens)).toEqual([`${remote.url}/v1`])
  })

  test('goes to no other address, and no other is even asked', async () => {
    const user = new User()
    const [remote, other] = [await recorder(accepts, created), await recorder()]
    const { port } = remote
    const socket = socketPath()
    const local = await Hostile.listen({ posts: [created], place: { path: socket } })
    expect(await user.login(`${remote.url}/v1`)).toBe(0)
    const others = [
      ...[
        '',
        '/',
        '/v2',
        '/v1/x',
        '/V1',
        '/v',
        '/v11',
        '/v1/../v2',
        '/v1/..',
        '/%76%31',
        '/v1%2f',
        '//v1',
        '/v1;x',
      ].map((path) => `${remote.url}${path}`),
      `${other.url}/v1`,
      `https://127.0.0.1:${port}/v1`,
      `http://localhost:${port}/v1`,
      `http://LOCALHOST:${port}/v1`,
      `http://127.0.0.2:${port}/v1`,
      `http://[::1]:${port}/v1`,
      `http://[::ffff:127.0.0.1]:${port}/v1`,
      'http://127.0.0.1/v1',
      `unix:${socket}`,
      `unix:${socket}:/v1`,
    ]
    const before = remote.connections
    for (const address of others) {
      for (const argv of [
        [...fern, address],
        ['auth', 'status', '--store', address],
        ['auth', 'token', '--store', address],
      ]) {
        const { code, out } = await user.run(argv)
        expect({ argv, code, out: out.includes(token) }).toEqual({
          argv,
          code: address.includes('ffff') ? expect.toBeOneOf([2, 3]) : 3,
          out: false,
        })
      }
    }
    expect([remote.connections - before, other.connections, local.connections]).toEqual([0, 0, 0])
  })

  test('at a socket goes to no other socket, and no other path at it', async () => {
    const [one, two] = [socketPath(), socketPath()]
    const user = new User({ tokens: saved(`unix:${one}:/v1`) })
    const [first, second] = [
      await Hostile.listen({ posts: [created], place: { path: one } }),
      await Hostile.listen({ posts: [created], place: { path: two } }),
    ]
    for (const address of [`unix:${one}`, `unix:${one}:/v2`, `unix:${two}:/v1`, 'http://localhost/v1']) {
      expect({ address, code: await user.createAt(address) }).toEqual({ address, code: 3 })
    }
    expect(await user.createAt(`unix:${one}:/v1`)).toBe(0)
    expect(tokensIn(first, second)).toEqual([[token], []])
  })

  test.each([301, 302, 303, 307, 308])('does not go where %i points', async (status) => {
    const other = await recorder()
    const redirect = http(status, '', { Location: `${other.url}/plants`, Refresh: `0; url=${other.url}/plants` })
    const remote = await Hostile.listen({ posts: [redirect], openapi: redirect })
    const user = new User()
    expect(await user.login(remote.url)).toBe(0)
    expect(await user.createAt(remote.url)).toBe(status === 303 ? 5 : 4)
    expect((await user.run(['doctor', '--store', remote.url])).code).toBe(1)
    expect(other.connections).toBe(0)
    expect(tokensIn(remote)).toEqual([[token, token, token]])
  })

  test('is not sent to ask what the service can do, nor where that points', async () => {
    const other = await recorder()
    const hangUp: Answer = (socket) => void socket.destroy()
    const remote = await Hostile.listen({
      posts: [hangUp],
      openapi: http(302, '', { Location: `${other.url}/openapi.json` }),
    })
    const user = new User({ tokens: saved(remote.url) })
    expect(await user.createAt(remote.url)).toBe(5)
    expect(remote.lines).toContain('GET /openapi.json')
    expect(
      remote.requests.filter(({ line }) => line.startsWith('GET')).map(({ headers }) => headers['authorization']),
    ).toEqual([undefined])
    expect(other.connections).toBe(0)
  })

  test.runIf(hasOpenssl)('is not seen by a proxy on the way (needs openssl)', async () => {
    const own = certificate({ names: ['DNS:plants.example.com'] })
    const remote = await Hostile.listen({ posts: [accepts, created], tls: own })
    const proxy = await tunnelTo(remote)
    const user = new User()
    const env = { HTTPS_PROXY: proxy.url.replace('//', '//me:hunter2@') }
    const flags = ['--store', 'https://plants.example.com', '--ca-cert', own.path]
    const login = await user.run(['auth', 'login', '--with-token', ...flags, '--output', 'json'], { stdin: token, env })
    expect({ code: login.code, ...JSON.parse(login.out) }).toMatchObject({ code: 0, checked: true })
    expect((await user.run(['create', '--id', '1', '--name', 'Fern', ...flags], { env })).code).toBe(0)
    expect(tokensIn(remote, proxy)).toEqual([[token, token], []])
    expect(proxy.lines).toEqual(['CONNECT plants.example.com:443', 'CONNECT plants.example.com:443'])
    expect(proxy.bytes.toString('latin1')).not.toMatch(/bearer/i)
  })

  test.runIf(hasOpenssl)('is not sent to a service that cannot show who it is (needs openssl)', async () => {
    const remote = await Hostile.listen({ posts: [created], tls: certificate({ names: ['IP:127.0.0.1'] }) })
    const plain = await recorder()
    const secure = `https://127.0.0.1:${plain.port}`
    const user = new User({ tokens: saved(remote.url, secure) })
    expect([await user.createAt(remote.url), await user.createAt(secure)]).toEqual([4, 4])
    expect([...tokensIn(remote, plain), remote.bytes.length]).toEqual([[], [], 0])
  })

  test('goes over plain HTTP to no other machine, whoever asks for it', async () => {
    const address = 'http://plants.example.com'
    const proxy = await recorder()
    const user = new User({ tokens: saved(address), stores: { team: { address } } })
    const env = { HTTP_PROXY: proxy.url }
    for (const argv of [[...fern, address], [...fern, 'team'], ['doctor', '--store', 'team'], ['doctor']]) {
      expect({ argv, code: (await user.run(argv, { env })).code }).toEqual({
        argv,
        code: argv[0] === 'create' ? 2 : expect.any(Number),
      })
    }
    expect(proxy.connections).toBe(0)
  })

  test('goes over plain HTTP for the store that this is allowed for, and for no other that doctor looks at', async () => {
    const [one, other] = ['http://one.example.com', 'http://other.example.com']
    const proxy = await recorder(accepts)
    const user = new User({ tokens: saved(one, other), stores: { one: { address: one }, other: { address: other } } })
    for (const args of [
      ['--store', 'one', '--allow-http'],
      ['--store', 'one'],
    ]) {
      const env = { HTTP_PROXY: proxy.url, ...(args.length === 2 ? { PLANTS_ALLOW_HTTP: '1' } : {}) }
      await user.run(['doctor', ...args], { env })
    }
    expect(new Set(proxy.lines)).toEqual(new Set(['CONNECT one.example.com:80']))
  })
})

describe('the name of a store', () => {
  test('and its address have one token', async () => {
    const [remote, user] = [await recorder(accepts, created), new User()]
    const address = `${remote.url}/v1`
    await user.run(['stores', 'add', 'team', address])
    await user.run(['stores', 'add', 'same', `${address}/`])
    expect(await user.login('team')).toBe(0)
    expect([await user.createAt('team'), await user.createAt('same'), await user.createAt(address)]).toEqual([0, 0, 0])
    await user.run(['auth', 'logout', '--store', 'same'])
    expect([await user.createAt('team'), await user.createAt('same'), await user.createAt(address)]).toEqual([3, 3, 3])
    expect(await user.login(address)).toBe(0)
    expect([await user.createAt('same'), await user.createAt('team')]).toEqual([0, 0])
    expect(await user.createAt(remote.url)).toBe(3)
  })

  test('that is given another address takes no token along', async () => {
    const [remote, other] = [await recorder(accepts, created), await recorder()]
    const user = new User({ stores: { team: { address: remote.url } } })
    expect(await user.login('team')).toBe(0)
    expect((await user.run(['config', 'set', 'stores.team.address', other.url])).code).toBe(0)
    expect(await user.createAt('team')).toBe(3)
    expect((await user.run(['auth', 'token', '--store', 'team'])).code).toBe(3)
    expect(other.connections).toBe(0)
    expect(await user.createAt(remote.url)).toBe(0)
  })

  test('that was removed leaves its token only to those who have the same address', async () => {
    const remote = await recorder()
    const user = new User({
      stores: { team: { address: remote.url }, same: { address: `${remote.url}/` } },
      tokens: saved(remote.url),
    })
    expect((await user.run(['stores', 'remove', 'team'])).code).toBe(0)
    expect(await user.createAt('same')).toBe(0)
    expect((await user.run(['stores', 'remove', 'same'])).code).toBe(0)
    expect(await user.createAt(remote.url)).toBe(3)
    expect(readFileSync(user.file, 'utf8')).not.toContain(token)
  })

  test('has the token of its command, which goes to no other name and not to the address', async () => {
    const [remote, other] = [await recorder(), await recorder()]
    const command = `cat ${commandFile()}`
    const stores = {
      team: { address: remote.url, 'token-command': command },
      same: { address: remote.url },
      other: { address: other.url },
    }
    const user = new User({ stores })
    expect([await user.createAt('team'), await user.createAt('same'), await user.createAt('other')]).toEqual([0, 3, 3])
    expect(await user.createAt(remote.url)).toBe(3)
    expect(tokensIn(remote, other)).toEqual([['s3cret-of-command'], []])
  })
})

describe('PLANTS_TOKEN', () => {
  const env = { PLANTS_TOKEN: 's3cret-of-env' }

  /**
   * Five stores, each a server: without a token, with a saved one, with a command, the same again without a name, and
   * one in this run.
   */
  async function world() {
    const [bare, own, command, nameless, here] = [
      await recorder(accepts),
      await recorder(accepts),
      await recorder(accepts),
      await recorder(accepts),
      await recorder(accepts),
    ]
    const user = new User({
      stores: {
        bare: { address: bare.url },
        own: { address: own.url },
        command: { address: command.url, 'token-command': `cat ${commandFile()}` },
        here: { address: here.url },
      },
      tokens: saved(own.url, nameless.url),
    })
    return { user, servers: [bare, own, command, nameless, here], here }
  }

  test.each([['text'], ['json']])(
    'goes to the store of this run alone when doctor looks at all of them, in %s',
    async (output) => {
      for (const name of ['here', 'URL', undefined]) {
        const { user, servers, here } = await world()
        const store = name === undefined ? {} : { PLANTS_STORE: name.replace('URL', here.url) }
        await user.run(['doctor', '--output', output, '--timeout', '3s'], {
          env: { ...env, ...store, PLANTS_DATA_DIR: user.folder },
        })
        const [bare, own, command, nameless, sent] = tokensIn(...servers)
        expect({ name, bare, own, command, nameless }).toEqual({
          ...{ name, bare: [], own: [token], nameless: [] },
          command: expect.toBeOneOf([[], ['s3cret-of-command']]),
        })
        expect({ name, sent }).toEqual({ name, sent: name === undefined ? [] : ['s3cret-of-env'] })
      }
    },
  )

  test('is sent nowhere by a command that asks no service', async () => {
    const { user, servers, here } = await world()
    for (const line of [
      'auth status',
      'auth token',
      'auth logout',
      'stores list',
      'config list',
      'stores use own',
      'config get store',
    ]) {
      await user.run([...line.split(' '), '--output', 'json'], { env: { ...env, PLANTS_STORE: here.url } })
    }
    expect(servers.map(({ connections }) => connections)).toEqual([0, 0, 0, 0, 0])
  })

  test('is told by status for the store of this run alone', async () => {
    const { user, here } = await world()
    const { out } = await user.run(['auth', 'status', '--output', 'ndjson'], { env: { ...env, PLANTS_STORE: 'here' } })
    const sources = out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
    expect(sources.filter(({ source }) => source === 'variable')).toEqual([
      { store: 'here', address: here.url, source: 'variable' },
    ])
  })

  test('is not what login sends or saves', async () => {
    const { user, here } = await world()
    expect((await user.run(['auth', 'login', '--with-token', '--store', here.url], { stdin: token, env })).code).toBe(0)
    expect(tokensIn(here)).toEqual([[token]])
    expect(readFileSync(user.file, 'utf8')).not.toContain('s3cret-of-env')
  })
})
