import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Certificate, certificate, hasOpenssl } from '../../helpers/certificates.js'
import { freePort } from '../../helpers/postgres/daemon.js'
import { plants } from '../../helpers/process.js'
import { isHere } from '../../helpers/programs.js'
import { addressOf, startService } from '../../helpers/service-process.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const deploy = join(import.meta.dirname, '../../../deploy')
const hasNginx = isHere('nginx') && hasOpenssl
const hasCaddy = isHere('caddy') && hasOpenssl

/** What a proxy needs to know of a test. */
interface Setup {
  folder: string
  socket: string
  port: number
  certificate: Certificate
}

describe('a service on a socket is used over TLS through', () => {
  test.skipIf(!hasNginx)('nginx (needs nginx and openssl)', async () => {
    expect(await useThrough(nginx)).toEqual({ codes: [0, 0], out: '{"id":1,"name":"Fern"}\n' })
  })

  test.skipIf(!hasCaddy)('Caddy (needs caddy and openssl)', async () => {
    expect(await useThrough(caddy)).toEqual({ codes: [0, 0], out: '{"id":1,"name":"Fern"}\n' })
  })
})

/** Creates a plant and lists it through a proxy with a certificate of its own. */
async function useThrough(proxy: (setup: Setup) => Promise<void>) {
  const folder = temporaryFolder()
  const token = (await plants(['tokens', 'create'], folder)).out.trim()
  const socket = join(folder, 'plants.sock')
  await addressOf(startService(['--socket', socket], folder))
  const setup = {
    folder,
    socket,
    port: await freePort(),
    certificate: certificate({ names: ['DNS:localhost'], isAuthority: true }),
  }
  await proxy(setup)
  const store = ['--store', `https://localhost:${setup.port}`, '--ca-cert', setup.certificate.path]
  const env = { PLANTS_TOKEN: token }
  const created = await plants(['create', '--id', '1', '--name', 'Fern', '--retry', '30s', ...store], folder, { env })
  const { code, out } = await plants(['list', '--output', 'ndjson', ...store], folder, { env })
  return { codes: [created.code, code], out }
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
  expect({ status, stderr }).toEqual({ status: 0, stderr: expect.anything() })
}

function keepRunning(program: string, args: string[], folder: string): void {
  const child = execa(program, args, {
    cwd: folder,
    env: envOf(folder),
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  })
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await child
  })
}

/** Caddy keeps its state in the home directory. */
function envOf(folder: string) {
  return { PATH: process.env['PATH'], HOME: folder }
}
