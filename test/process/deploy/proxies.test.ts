import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type Certificate, certificate, hasOpenssl } from '../../helpers/certificates.js'
import { freePort } from '../../helpers/postgres/daemon.js'
import { isHere } from '../../helpers/programs.js'
import { serve } from '../../helpers/service.js'
import { World } from '../../helpers/world.js'

const deploy = join(import.meta.dirname, '../../../deploy')

/** What a proxy needs to know of a test. */
interface Setup {
  folder: string
  socket: string
  port: number
  certificate: Certificate
}

test.runIf(hasOpenssl && isHere('nginx'))(
  'a service on a socket is used over TLS through nginx (needs nginx and openssl)',
  () => useThrough(nginx),
)

test.runIf(hasOpenssl && isHere('caddy'))(
  'a service on a socket is used over TLS through Caddy (needs caddy and openssl)',
  () => useThrough(caddy),
)

/** Creates a plant and lists it through a proxy with a certificate of its own. */
async function useThrough(proxy: (setup: Setup) => Promise<void>): Promise<void> {
  const world = new World()
  const socket = join(world.home, 'plants.sock')
  const { token } = await serve(['--socket', socket], { folder: world.home, rights: 'create,read' })
  const own = certificate({ names: ['DNS:localhost'], isAuthority: true })
  const port = await freePort()
  await proxy({ folder: world.home, socket, port, certificate: own })
  const run = (line: string) =>
    world.spawn(`${line} --store https://localhost:${port} --ca-cert ${own.path}`, { env: { PLANTS_TOKEN: token } })
  expect(await run('create --id 1 --name Fern --retry 30s')).toMatchObject({ code: 0 })
  expect(await run('list --output ndjson')).toMatchObject({ code: 0, out: '{"id":1,"name":"Fern"}\n' })
}

/** Starts nginx with deploy/nginx.conf, as a file that the main one of Debian would include. */
async function nginx({ folder, socket, port, certificate }: Setup): Promise<void> {
  const site = adapt('nginx.conf', [
    ['unix:/run/plants/plants.sock', `unix:${socket}`],
    ['listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`],
    ['  listen [::]:443 ssl;\n', ''],
    ['/etc/ssl/plants/fullchain.pem', certificate.path],
    ['/etc/ssl/plants/key.pem', certificate.path.replace('cert.pem', 'key.pem')],
  ])
  writeFileSync(join(folder, 'site.conf'), site)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  )
  const user = process.getuid?.() === 0 ? 'user root;' : ''
  const main = `${user} daemon off; pid ${join(folder, 'nginx.pid')}; error_log stderr; events {} http { ${temporary.join(' ')} include site.conf; }`
  writeFileSync(join(folder, 'nginx.conf'), main)
  const args = ['-e', 'stderr', '-c', join(folder, 'nginx.conf')]
  checkWith('nginx', ['-t', ...args], folder)
  keepRunning('nginx', args, folder)
}

/** Starts Caddy with deploy/Caddyfile, but with a certificate from a file. */
async function caddy({ folder, socket, port, certificate }: Setup): Promise<void> {
  const key = certificate.path.replace('cert.pem', 'key.pem')
  const file = adapt('Caddyfile', [
    ['unix//run/plants/plants.sock', `unix/${socket}`],
    ['plants.example.com {', `https://localhost:${port} {\n\ttls ${certificate.path} ${key}`],
    ['\tauto_https', '\tadmin off\n\tauto_https'],
  ])
  const path = join(folder, 'Caddyfile')
  writeFileSync(path, file)
  const args = ['--config', path, '--adapter', 'caddyfile']
  checkWith('caddy', ['validate', '--config', join(deploy, 'Caddyfile'), '--adapter', 'caddyfile'], folder)
  keepRunning('caddy', ['run', ...args], folder)
}

/** A file of deploy/, with the addresses and paths of a test. */
function adapt(name: string, changes: [from: string, to: string][]): string {
  const text = readFileSync(join(deploy, name), 'utf8')
  return changes.reduce((changed, [from, to]) => {
    expect(changed).toContain(from)
    return changed.replace(from, () => to)
  }, text)
}

function checkWith(program: string, args: string[], folder: string): void {
  const { status, stderr } = spawnSync(program, args, { cwd: folder, env: envOf(folder), encoding: 'utf8' })
  expect(status, stderr).toBe(0)
}

function keepRunning(program: string, args: string[], folder: string): void {
  const child = spawn(program, args, { cwd: folder, env: envOf(folder), stdio: 'ignore' })
  onTestFinished(async () => {
    if (child.kill()) await once(child, 'exit')
  })
}

/** Caddy keeps its state in the home directory. */
function envOf(folder: string) {
  return { PATH: process.env['PATH'], HOME: folder }
}
