import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { type Answer, Hostile, http, json } from '../../helpers/hostile.js'
import { canTrace } from '../../helpers/linux.js'
import { plants, startUnder } from '../../helpers/process.js'
import { socketPath } from '../../helpers/remote.js'
import { type Result, runPlants, type World } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const token = 's3cret-of-one-address'
const fern = ['create', '--id', '1', '--name', 'Fern', '--timeout', '3s', '--output', 'json', '--store']
const accepts = json(400, { error: 422, message: 'No NewPlant' })
const created = json(200, { name: 'Fern' })

/** Whatever it is asked, it writes down every byte of it. */
function recorder(...posts: Answer[]): Promise<Hostile> {
  return Hostile.listen({ posts: posts.length === 0 ? [created] : posts })
}

/** A proxy whose tunnels all lead to one server, whatever was asked for. */
function tunnelTo(remote: Hostile): Promise<Hostile> {
  return Hostile.listen({
    openapi: (socket) => {
      const onward = connect(remote.port, '127.0.0.1', () => socket.write('HTTP/1.1 200 Connected\r\n\r\n'))
      onward.on('error', () => socket.destroy()).pipe(socket)
      socket.removeAllListeners('close').pipe(onward)
    },
  })
}

/** The tokens that a server was sent, each time. */
function tokensIn(...servers: Hostile[]): string[][] {
  return servers.map(({ bytes }) => bytes.toString('latin1').match(/s3cret[\w-]*/g) ?? [])
}

class User {
  readonly folder = temporaryFolder()
  readonly file = join(this.folder, 'settings.json')

  constructor(fields: Record<string, unknown> = {}) {
    this.save(fields)
  }

  save(fields: Record<string, unknown>): void {
    writeFileSync(this.file, JSON.stringify({ version: 1, ...fields }), { mode: 0o600 })
  }

  async run(argv: string[], world: World = {}): Promise<Result> {
    return runPlants(argv, { ...world, env: { PATH: process.env['PATH'] ?? '', PLANTS_CONFIG_DIR: this.folder, ...world.env } })
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

function saved(...addresses: string[]): Record<string, { token: string; savedAt: string }> {
  return Object.fromEntries(addresses.map((address) => [address, { token, savedAt: '2026-01-02T03:04:05.678Z' }]))
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
      ...['', '/', '/v2', '/v1/x', '/V1', '/v', '/v11', '/v1/../v2', '/v1/..', '/%76%31', '/v1%2f', '//v1', '/v1;x'].map(
        (path) => `${remote.url}${path}`,
      ),
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
    const remote = await Hostile.listen({ posts: [hangUp], openapi: http(302, '', { Location: `${other.url}/openapi.json` }) })
    const user = new User({ tokens: saved(remote.url) })
    expect(await user.createAt(remote.url)).toBe(5)
    expect(remote.lines).toContain('GET /openapi.json')
    expect(remote.requests.filter(({ line }) => line.startsWith('GET')).map(({ headers }) => headers['authorization'])).toEqual([undefined])
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

  describe.runIf(hasOpenssl)('is not sent to such a service when NODE_TLS_REJECT_UNAUTHORIZED is 0 (needs openssl)', () => {
    const names = ['IP:127.0.0.1', 'DNS:plants.example.com']

    test.each(['directly', 'with --ca-cert', 'through a proxy'])('%s', async (way) => {
      const impostor = await Hostile.listen({ posts: [created], tls: certificate({ names }) })
      const proxy = await tunnelTo(impostor)
      const store = way === 'through a proxy' ? 'https://plants.example.com' : impostor.url
      const flags = ['--timeout', '2s', ...(way === 'with --ca-cert' ? ['--ca-cert', certificate({ names }).path] : [])]
      const folder = temporaryFolder()
      const run = (argv: string[], input: string, more: Record<string, string> = {}) => {
        const through = way === 'through a proxy' ? { HTTPS_PROXY: proxy.url } : {}
        return plants(argv, folder, { input, env: { NODE_TLS_REJECT_UNAUTHORIZED: '0', ...through, ...more } })
      }
      const create = await run([...fern, store, ...flags], '', { PLANTS_TOKEN: token })
      const said = create.err.trimEnd().split('\n')
      expect({ code: create.code, out: create.out }).toEqual({ code: 4, out: '' })
      expect(JSON.parse(said.at(-1) ?? '')).toMatchObject({ error: 503, message: expect.stringContaining('TLS failed') })
      const login = await run(['auth', 'login', '--with-token', '--store', store, ...flags], token)
      expect(JSON.parse(login.out)).toMatchObject({ checked: false })
      expect([...tokensIn(impostor, proxy), impostor.bytes.length]).toEqual([[], [], 0])
    })
  })

  test('goes over plain HTTP to no other machine, whoever asks for it', async () => {
    const address = 'http://plants.example.com'
    const proxy = await recorder()
    const user = new User({ tokens: saved(address), stores: { team: { address } } })
    const env = { HTTP_PROXY: proxy.url }
    for (const argv of [[...fern, address], [...fern, 'team'], ['doctor', '--store', 'team'], ['doctor']]) {
      expect({ argv, code: (await user.run(argv, { env })).code }).toEqual({ argv, code: argv[0] === 'create' ? 2 : expect.any(Number) })
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
    expect(new Set(proxy.lines)).toEqual(new Set([`POST ${one}/plants`]))
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
    const user = new User({ stores: { team: { address: remote.url }, same: { address: `${remote.url}/` } }, tokens: saved(remote.url) })
    expect((await user.run(['stores', 'remove', 'team'])).code).toBe(0)
    expect(await user.createAt('same')).toBe(0)
    expect((await user.run(['stores', 'remove', 'same'])).code).toBe(0)
    expect(await user.createAt(remote.url)).toBe(3)
    expect(readFileSync(user.file, 'utf8')).not.toContain(token)
  })

  test('has the token of its command, which goes to no other name and not to the address', async () => {
    const [remote, other] = [await recorder(), await recorder()]
    const command = `cat ${commandFile()}`
    const stores = { team: { address: remote.url, 'token-command': command }, same: { address: remote.url }, other: { address: other.url } }
    const user = new User({ stores })
    expect([await user.createAt('team'), await user.createAt('same'), await user.createAt('other')]).toEqual([0, 3, 3])
    expect(await user.createAt(remote.url)).toBe(3)
    expect(tokensIn(remote, other)).toEqual([['s3cret-of-command'], []])
  })
})

describe('PLANTS_TOKEN', () => {
  const env = { PLANTS_TOKEN: 's3cret-of-env' }

  /** Five stores, each a server: without a token, with a saved one, with a command, the same again without a name, and one in this run. */
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

  test.each([['text'], ['json']])('goes to the store of this run alone when doctor looks at all of them, in %s', async (output) => {
    for (const name of ['here', 'URL', undefined]) {
      const { user, servers, here } = await world()
      const store = name === undefined ? {} : { PLANTS_STORE: name.replace('URL', here.url) }
      await user.run(['doctor', '--output', output, '--timeout', '3s'], { env: { ...env, ...store, PLANTS_DATA_DIR: user.folder } })
      const [bare, own, command, nameless, sent] = tokensIn(...servers)
      expect({ name, bare, own, command, nameless }).toEqual({
        ...{ name, bare: [], own: [token], nameless: [] },
        command: expect.toBeOneOf([[], ['s3cret-of-command']]),
      })
      expect({ name, sent }).toEqual({ name, sent: name === undefined ? [] : ['s3cret-of-env'] })
    }
  })

  test('is sent nowhere by a command that asks no service', async () => {
    const { user, servers, here } = await world()
    for (const line of ['auth status', 'auth token', 'auth logout', 'stores list', 'config list', 'stores use own', 'config get store']) {
      await user.run([...line.split(' '), '--output', 'json'], { env: { ...env, PLANTS_STORE: here.url } })
    }
    expect(servers.map(({ connections }) => connections)).toEqual([0, 0, 0, 0, 0])
  })

  test('is told by status for the store of this run alone', async () => {
    const { user, here } = await world()
    const { out } = await user.run(['auth', 'status', '--output', 'json'], { env: { ...env, PLANTS_STORE: 'here' } })
    const sources = out.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]))
    expect(sources.filter(({ source }) => source === 'variable')).toEqual([{ store: 'here', address: here.url, source: 'variable' }])
  })

  test('is not what login sends or saves', async () => {
    const { user, here } = await world()
    expect((await user.run(['auth', 'login', '--with-token', '--store', here.url], { stdin: token, env })).code).toBe(0)
    expect(tokensIn(here)).toEqual([[token]])
    expect(readFileSync(user.file, 'utf8')).not.toContain('s3cret-of-env')
  })
})

describe.runIf(canTrace)('what the system sees (needs strace)', () => {
  const calls =
    'execve,execveat,open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,chmod,fchmod,fchmodat'

  /** Runs the program, and gives the system calls that did something. */
  async function traced(argv: string[], folder: string, options: { env: Record<string, string>; input?: string }): Promise<string[]> {
    const log = join(folder, 'strace')
    const tracer = ['-f', '-s', '65536', '-o', log, '-e', `trace=${calls}`]
    expect(await startUnder('strace', tracer, argv, folder, options)).toMatchObject({ exitCode: 0 })
    return readFileSync(log, 'utf8')
      .split('\n')
      .filter((line) => !/ = -1 E(EXIST|NOENT)/.test(line))
  }

  /** The files that were made, with their modes, and the folders. */
  function made(lines: string[]): { files: [path: string, flags: string, mode: string][]; folders: [path: string, mode: string][] } {
    const files = lines.flatMap((line): [string, string, string][] => {
      const [, path = '', flags = '', mode = 'none'] =
        /openat\(AT_FDCWD, "(.*?)", ([\w|]*O_(?:WRONLY|RDWR)[\w|]*)(?:, (\d+))?/.exec(line) ?? []
      return flags.includes('O_CREAT') ? [[path, flags, mode]] : []
    })
    const births = files.filter(([path], index) => files.findIndex(([other]) => other === path) === index)
    const folders = lines.flatMap((line): [string, string][] => {
      const [, path = '', mode = ''] = / mkdir(?:at)?\((?:AT_FDCWD, )?"(.*?)", (\d+)/.exec(line) ?? []
      return path === '' ? [] : [[path, mode]]
    })
    return { files: births, folders }
  }

  test.each([['a new folder'], ['a folder with a file']])(
    'of a login in %s: no file that others could read, and no token in any argument',
    async (place) => {
      const folder = temporaryFolder()
      const config = join(folder, 'deep', 'config')
      const remote = await recorder(accepts)
      if (place !== 'a new folder') {
        mkdirSync(config, { recursive: true, mode: 0o700 })
        writeFileSync(join(config, 'settings.json'), '{"version":1}', { mode: 0o600 })
      }
      const lines = await traced(['auth', 'login', '--with-token', '--store', remote.url], folder, {
        env: { PLANTS_CONFIG_DIR: config },
        input: token,
      })
      const { files, folders } = made(lines)
      expect(files.length).toBeGreaterThan(1)
      expect(files.filter(([, , mode]) => mode !== '0600')).toEqual([])
      expect(folders.filter(([, mode]) => mode !== '0700')).toEqual([])
      const fresh = folders.map(([path]) => path).filter((path) => /\.plants-\w+$/.test(path))
      expect(fresh.length).toBe(1)
      const careless = files.filter(([path, flags]) => !flags.includes('O_EXCL') && !fresh.some((own) => path.startsWith(`${own}/`)))
      const ofLock = careless.filter(([path, flags]) => /\/settings\.json\.lock(-journal)?$/.test(path) && flags.includes('O_NOFOLLOW')) // SQLite's
      expect(careless).toEqual(ofLock)
      expect(files.every(([path]) => path.startsWith(`${config}/`))).toBe(true)
      expect(lines.filter((line) => line.includes('s3cret'))).toEqual([])
      expect(readFileSync(join(config, 'settings.json'), 'utf8')).toContain(token)
    },
  )

  test('of a create: nothing is written, and no token is in any argument', async () => {
    const remote = await recorder()
    const folder = temporaryFolder()
    const safe = join(folder, 'safe')
    writeFileSync(safe, token, { mode: 0o600 })
    const stores = { team: { address: remote.url, 'token-command': `cat ${safe}` }, own: { address: remote.url } }
    writeFileSync(join(folder, 'settings.json'), JSON.stringify({ version: 1, stores, tokens: saved(remote.url) }), { mode: 0o600 })
    for (const [store, more] of [
      ['team', {}],
      ['own', {}],
      [remote.url, { PLANTS_TOKEN: token }],
    ] as const) {
      const env = { PLANTS_CONFIG_DIR: folder, ...more }
      const lines = await traced(['create', '--id', '1', '--name', 'Fern', '--store', store], folder, { env })
      expect({ store, ...made(lines), tokens: lines.filter((line) => line.includes('s3cret')) }).toEqual({
        ...{ store, files: [], folders: [], tokens: [] },
      })
    }
    expect(tokensIn(remote)).toEqual([[token, token, token]])
    expect(existsSync(join(folder, 'settings.json.lock'))).toBe(false)
  })

  test.each(['0', '022', '077'])('of a login with the umask %s: what it makes is its owner\u2019s alone', async (umask) => {
    const folder = temporaryFolder()
    const remote = await recorder(accepts)
    const argv = ['auth', 'login', '--with-token', '--store', remote.url]
    const masked = ['-c', `umask ${umask}; exec "$0" "$@"`]
    expect(await startUnder('sh', masked, argv, folder, { input: token })).toMatchObject({ exitCode: 0, stderr: '' })
    const modes = readdirSync(join(folder, '.config'), { recursive: true, encoding: 'utf8' }).map((name) => {
      const { mode } = statSync(join(folder, '.config', name))
      return [name, (mode & 0o777).toString(8)]
    })
    expect(Object.fromEntries(modes)).toEqual({ plants: '700', 'plants/settings.json': '600', 'plants/settings.json.lock': '600' })
  })
})
