import { spawn, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { connect as connectPlainly } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { findBlocks, pages } from '../../helpers/expect/documents.js'
import { createCertificate, hasOpenssl } from '../../helpers/sandbox/certificates.js'
import { isInstalled } from '../../helpers/sandbox/programs.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { waitFor } from '../../helpers/sandbox/wait.js'
import { serve } from '../../helpers/scripted-server/service.js'

const deploy = join(import.meta.dirname, '../../../deploy')
const sbin = '/usr/sbin'
const hasNginx = isInstalled('nginx') || isHereIn(sbin, 'nginx')
const hasHaproxy = isInstalled('haproxy') || isHereIn(sbin, 'haproxy')
const hasCaddy = isInstalled('caddy')

function isHereIn(folder: string, program: string): boolean {
  try {
    closeSync(openSync(join(folder, program), 'r'))
    return true
  } catch {
    return false
  }
}

type Changes = readonly (readonly [from: string, to: string])[]

/** A file of `deploy`, with other texts in the place of some. */
function adapt(name: string, changes: Changes): string {
  return changes.reduce(
    (text, [from, to]) => {
      expect(text).toContain(from)
      return text.replaceAll(from, () => to)
    },
    readFileSync(join(deploy, name), 'utf8'),
  )
}

/** Runs a proxy until the end of the test, with what it prints in `proxy.log`. */
function startProxy(program: string, args: string[], folder: string): void {
  const log = openSync(join(folder, 'proxy.log'), 'a')
  const env = { PATH: `${process.env['PATH']}:${sbin}`, HOME: folder }
  const child = spawn(program, args, { env, cwd: folder, stdio: ['ignore', log, log] })
  closeSync(log)
  onTestFinished(async () => {
    if (child.kill()) await once(child, 'exit')
  })
}

type ProxiedSandbox = ReturnType<typeof createProxiedSandbox>

function createProxiedSandbox() {
  const sandbox = new Sandbox()
  const own = createCertificate({ names: ['DNS:localhost'], isAuthority: true })
  const port = randomInt(10_000, 20_000)
  const at = (line: string, token: string) =>
    sandbox.spawn(`${line} --store https://localhost:${port} --ca-cert ${own.path}`, {
      env: { PLANTS_TOKEN: token },
    })
  return { sandbox, own, port, at }
}

/** Runs nginx with its configuration in `deploy`, with other texts in the place of some. */
function startNginx({ sandbox, own, port }: ProxiedSandbox, changes: Changes): void {
  const site = adapt('nginx.conf', [
    ...changes,
    ['listen 443', `listen 127.0.0.1:${port}`],
    ['/etc/ssl/plants/fullchain.pem', own.path],
    ['/etc/ssl/plants/privkey.pem', own.keyPath],
    ['plants.example.com', 'localhost'],
    ['/var/log/nginx', sandbox.home],
  ])
  const isRoot = process.getuid?.() === 0
  const names = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const folders = names.map((name) => `${name}_temp_path ${join(sandbox.home, name)};`)
  const main = `${isRoot ? 'user root;' : ''} pid ${sandbox.home}/nginx.pid; daemon off;
    events {} http { ${folders.join(' ')} ${site} }`
  writeFileSync(join(sandbox.home, 'nginx.conf'), main)
  startProxy('nginx', ['-e', 'stderr', '-c', join(sandbox.home, 'nginx.conf')], sandbox.home)
}

/** Runs haproxy in the same way. */
function startHaproxy({ sandbox, own, port }: ProxiedSandbox, changes: Changes): void {
  const pem = join(sandbox.home, 'plants.pem')
  writeFileSync(pem, readFileSync(own.path, 'utf8') + readFileSync(own.keyPath, 'utf8'))
  const config = adapt('haproxy.cfg', [
    ...changes,
    ['bind :443', `bind 127.0.0.1:${port}`],
    ['/etc/haproxy/plants.pem', pem],
  ])
  writeFileSync(join(sandbox.home, 'haproxy.cfg'), config)
  startProxy('haproxy', ['-db', '-f', 'haproxy.cfg'], sandbox.home)
}

/** Runs haproxy in front of a socket, with the line of the page for it. */
function startHaproxyAt(socket: string, proxied: ProxiedSandbox, changes: Changes = []): void {
  const page = findBlocks(pages.get('docs/proxies.md') ?? '')
  const server = page.find(({ text }) => text.includes('unix@'))?.text ?? ''
  startHaproxy(proxied, [
    ...changes,
    [
      '\tserver node1 192.0.2.11:4010 port 9011\n\tserver node2 192.0.2.12:4010 port 9011\n',
      server,
    ],
    ['/run/plants/plants.sock', socket],
  ])
}

/** Runs Caddy in the same way. */
function startCaddy({ sandbox, own, port }: ProxiedSandbox, changes: Changes): void {
  const config = (path: string) => ['--config', path, '--adapter', 'caddyfile']
  const env = { PATH: process.env['PATH'], HOME: sandbox.home }
  const options = { encoding: 'utf8', env } as const
  const args = ['validate', ...config(join(deploy, 'Caddyfile'))]
  const { status, stderr } = spawnSync('caddy', args, options)
  expect(status, stderr).toBe(0)
  const text = adapt('Caddyfile', [
    ...changes,
    ['plants.example.com {', `https://localhost:${port} {\n\ttls ${own.path} ${own.keyPath}`],
    ['\tauto_https', '\tadmin off\n\tauto_https'],
  ])
  const path = join(sandbox.home, 'Caddyfile')
  writeFileSync(path, text)
  startProxy('caddy', ['run', ...config(path)], sandbox.home)
}

/**
 * Sends the beginning of a request and then a part of it every five seconds, until the proxy closes
 * the connection.
 *
 * @returns the number of parts that were sent
 */
async function sendSlowly(port: number, start: string, part: string): Promise<number> {
  const ALPNProtocols = ['h2', 'http/1.1']
  const options = { port, servername: 'localhost', rejectUnauthorized: false, ALPNProtocols }
  const socket = connect(options)
  let parts = 0
  const timer = setInterval(() => {
    parts += 1
    socket.write(part)
  }, 5000)
  onTestFinished(() => {
    clearInterval(timer)
    socket.destroy()
  })
  socket.on('error', () => undefined).resume()
  socket.write(start)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  await once(socket, 'secureConnect')
  expect(socket.alpnProtocol).not.toBe('h2') // for which a proxy has other times
  await waitFor(
    closed,
    () => `the end of a connection to port ${port} on which ${parts} parts were sent`,
  )
  clearInterval(timer)
  return parts
}

test.runIf(hasOpenssl && hasCaddy && hasHaproxy && hasNginx)(
  'no proxy keeps a client that sends a line or a byte every five seconds (needs caddy, haproxy, nginx and openssl)',
  async () => {
    const folder = new Sandbox().home
    const socket = join(folder, 'plants.sock')
    const { token } = await serve(['--socket', socket], { folder, rights: 'create,read' })
    const atSocket = ['/run/plants/plants.sock', socket] as const
    // Caddy waits for a whole request as long as the service does, too long for a test.
    const shortBody = ['read_body 30s', 'read_body 10s'] as const
    const proxies: [string, (proxied: ProxiedSandbox) => void][] = [
      ['Caddy', (proxied) => startCaddy(proxied, [atSocket, shortBody])],
      ['haproxy', (proxied) => startHaproxyAt(socket, proxied)],
      ['nginx', (proxied) => startNginx(proxied, [atSocket])],
    ]
    const head = 'POST /plants HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n'
    const results = await Promise.all(
      proxies.map(async ([name, start], id) => {
        const proxied = createProxiedSandbox()
        start(proxied)
        const created = await proxied.at(`create --id ${id} --name Fern --retry 1h`, token)
        expect(created.code).toBe(0)
        const lines = sendSlowly(proxied.port, head, 'Accept: */*\r\n')
        const bytes = sendSlowly(proxied.port, `${head}\r\n`, ' ')
        return { name, lines: await lines, bytes: await bytes }
      }),
    )
    // Each file gives a client ten seconds. A client that sent more was ended by something else.
    // Caddy has once taken 35 s to end a body, which without its limit it never ends.
    const findMaxBytes = (name: string) => (name === 'Caddy' ? 12 : 5)
    const isKept = (result: { name: string; lines: number; bytes: number }) =>
      result.lines > 5 || result.bytes > findMaxBytes(result.name)
    expect(results.filter(isKept)).toEqual([])
  },
)

test.runIf(hasOpenssl && hasNginx)(
  'a service on a socket is used over TLS through nginx, whose logs have no URL (needs nginx and openssl)',
  async () => {
    const proxied = createProxiedSandbox()
    const { sandbox, at } = proxied
    const socket = join(sandbox.home, 'plants.sock')
    const options = { folder: sandbox.home, rights: 'create,read' }
    const { token, stop } = await serve(['--socket', socket], options)
    startNginx(proxied, [['/run/plants/plants.sock', socket]])
    expect((await at('create --id 1 --name Fern --retry 1h', token)).code).toBe(0)
    const search = 'list --search fern --output ndjson'
    expect((await at(search, token)).out).toBe('{"id":1,"name":"Fern"}\n')
    await stop()
    expect((await at(`${search} --timeout 5s`, token)).code).toBe(4)
    const logs = ['plants.log', 'plants-error.log', 'proxy.log'].map((name) => sandbox.read(name))
    expect(logs[0]).toMatch(/ POST 200 .*\n(?:.* GET 200 .*\n)+(?:.* GET 502 .*\n)+$/)
    expect(logs.join('')).not.toMatch(/fern|\/plants\?/)
    const created = at('create --id 2 --name Moss', token)
    await expect.poll(() => sandbox.read('plants.log'), { timeout: 20_000 }).toMatch(/POST 502 /)
    await serve(['--socket', socket], options)
    expect((await created).code).toBe(0)
  },
)

test.runIf(hasOpenssl && hasNginx)(
  'clients of two nodes behind nginx notice nothing when one after the other is restarted (needs nginx and openssl)',
  async () => {
    const proxied = createProxiedSandbox()
    const { sandbox, at } = proxied
    const options = { folder: sandbox.home, rights: 'create,read' }
    const first = await serve([], options)
    const second = await serve([], options)
    const page = findBlocks(pages.get('docs/proxies.md') ?? '')
    const servers = page.find(({ text }) => text.startsWith('server 192.0.2.11'))?.text ?? ''
    startNginx(proxied, [
      ['server unix:/run/plants/plants.sock;', servers],
      ['192.0.2.11:4010', new URL(first.address).host],
      ['192.0.2.12:4010', new URL(second.address).host],
    ])
    const create = async (ids: number[]) => {
      const line = (id: number) => `create --id ${id} --name Moss`
      const created = await Promise.all(ids.map((id) => at(line(id), second.token)))
      expect(created).toMatchObject(ids.map(() => ({ code: 0, err: '' })))
    }
    await at('create --id 1 --name Fern --retry 1h', second.token)
    await first.stop()
    await create([2, 3, 4, 5])
    const restarted = await serve(['--port', new URL(first.address).port], options)
    const isUsedAgain = async () => {
      await at('get 1', second.token)
      return restarted.log.some(({ outcome }) => outcome === 'read')
    }
    await expect.poll(isUsedAgain, { timeout: 8000 }).toBe(true)
    await second.stop()
    await create([6, 7, 8, 9])
    expect((await at('count', second.token)).out).toBe('9\n')
    expect(sandbox.read('plants.log')).not.toMatch(/ POST 502 /)
  },
)

test.runIf(hasOpenssl && hasHaproxy)(
  'clients of two nodes behind haproxy notice nothing when one drains (needs haproxy and openssl)',
  async () => {
    const proxied = createProxiedSandbox()
    const { sandbox, at } = proxied
    const options = { folder: sandbox.home, rights: 'create,read' }
    const first = await serve(['--admin-port', '0'], options)
    const second = await serve(['--admin-port', '0'], options)
    const addresses = [first, second].map(({ address, log }) => {
      const admin = new URL(`${log.find((line) => line['admin'])?.['admin']}`)
      return [new URL(address).host, admin.port] as const
    })
    const changes = addresses.map(([host, admin], index) => {
      const from = `192.0.2.1${index + 1}:4010 port 9011`
      return [from, `${host} port ${admin}`] as const
    })
    startHaproxy(proxied, changes)
    expect((await at('create --id 1 --name Fern --retry 1h', second.token)).code).toBe(0)
    await first.stop()
    const created = await Promise.all(
      [2, 3, 4, 5].map((id) => at(`create --id ${id} --name Moss`, second.token)),
    )
    expect(created.map(({ code }) => code)).toEqual([0, 0, 0, 0])
    expect((await at('list --search fern --output ndjson', second.token)).out).toContain('"Fern"')
    const requestId = second.log.find(({ plantId }) => plantId === '5')?.['requestId']
    const line = RegExp(
      String.raw`^\d{4}-\d\d-\d\dT[\d:]{8}Z 127\.0\.0\.1 POST 200 \d+ node2 ${requestId}$`,
      'm',
    )
    await expect.poll(() => sandbox.read('proxy.log')).toMatch(line)
    expect(sandbox.read('proxy.log')).not.toMatch(/fern|\/plants\?/)
  },
)

test.runIf(hasOpenssl && hasHaproxy)(
  'a service on a socket is used over TLS through haproxy, also while it restarts (needs haproxy and openssl)',
  async () => {
    const proxied = createProxiedSandbox()
    const { sandbox, at } = proxied
    const socket = join(sandbox.home, 'plants.sock')
    const options = { folder: sandbox.home, rights: 'create,read' }
    const { token, stop } = await serve(['--socket', socket], options)
    startHaproxyAt(socket, proxied)
    expect((await at('create --id 1 --name Fern --retry 1h', token)).code).toBe(0)
    await stop()
    const created = at('create --id 2 --name Moss --retry 1h', token)
    await expect.poll(() => sandbox.read('proxy.log'), { timeout: 20_000 }).toMatch(/POST 503 /)
    await serve(['--socket', socket], options)
    expect((await created).code).toBe(0)
    expect((await at('list --search fern --output ndjson', token)).out).toContain('"Fern"')
    expect(sandbox.read('proxy.log')).not.toMatch(/fern|\/plants\?/)
  },
)

test.runIf(hasOpenssl && hasHaproxy && process.platform === 'linux')(
  'one address cannot take all connections of haproxy (needs haproxy, Linux and openssl)',
  async () => {
    const proxied = createProxiedSandbox()
    const { sandbox, port, at } = proxied
    const socket = join(sandbox.home, 'plants.sock')
    const options = { folder: sandbox.home, rights: 'create,read' }
    const { token } = await serve(['--socket', socket], options)
    startHaproxyAt(socket, proxied, [['maxconn 4000', 'maxconn 220']])
    expect((await at('create --id 1 --name Fern --retry 1h', token)).code).toBe(0)
    let closedCount = 0
    for (let count = 0; count < 230; count += 1) {
      const stranger = connectPlainly({ port, localAddress: '127.0.0.2' })
      onTestFinished(() => void stranger.destroy())
      stranger
        .on('error', () => undefined)
        .on('close', () => {
          closedCount += 1
        })
    }
    await expect.poll(() => closedCount).toBe(30)
    expect((await at('get 1', token)).code).toBe(0)
  },
)

test.runIf(hasOpenssl && hasCaddy)(
  'a service on a socket is used over TLS through Caddy, whose log has no URL (needs caddy and openssl)',
  async () => {
    const proxied = createProxiedSandbox()
    const { sandbox, at } = proxied
    const socket = join(sandbox.home, 'plants.sock')
    const options = { folder: sandbox.home, rights: 'create,read' }
    const { token, stop } = await serve(['--socket', socket], options)
    startCaddy(proxied, [['/run/plants/plants.sock', socket]])
    expect((await at('create --id 1 --name Fern --retry 1h', token)).code).toBe(0)
    const search = 'list --search fern --output ndjson'
    expect((await at(search, token)).out).toBe('{"id":1,"name":"Fern"}\n')
    await stop()
    // A failure is logged, without the query.
    const logged = async () => {
      expect((await at(`${search} --timeout 500ms`, token)).code).toBe(4)
      return sandbox.read('proxy.log')
    }
    await expect.poll(logged).toMatch(/\b502\b/)
    expect(await logged()).not.toMatch(/fern|\/plants\?/)
  },
)

test('the compose file runs the container as docs/run-a-service.md does', () => {
  const { services } = parse(readFileSync(join(deploy, 'compose.yaml'), 'utf8'))
  const { ports, volumes, read_only, cap_drop, security_opt, stop_grace_period } = services.plants
  const page = readFileSync(join(deploy, '../docs/run-a-service.md'), 'utf8').replaceAll('\\\n', '')
  const command = /^ *docker run --detach .*$/m.exec(page)?.[0] ?? ''
  const asFlags = [
    `--publish ${ports} `,
    `--stop-timeout ${Number.parseInt(stop_grace_period, 10)} `,
    `--volume ${volumes} `,
    read_only && '--read-only',
    `--cap-drop ${cap_drop}`,
    `--security-opt ${security_opt}`,
  ]
  expect(asFlags.filter((flag) => !command.replaceAll(/\s+/g, ' ').includes(flag))).toEqual([])
})
