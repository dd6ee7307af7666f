import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { password } from './postgres/cluster.js'
import { Daemon, onFreePort } from './postgres/daemon.js'
import { serverFolder, writeOwned } from './postgres/identity.js'
import type { Installation } from './postgres/installation.js'
import { type Database, reusedDatabase } from './postgres.js'

const program = '/usr/sbin/pgbouncer'

/** PgBouncer is Debian's: tests that need it say so in their names. */
export const hasPgBouncer = existsSync(program)

/**
 * PgBouncer in transaction mode before the one database that all tests of a file or a group have, as `reusedDatabase`
 * gives it. There are few connections for everybody: what a transaction leaves behind is seen.
 */
export function reusedPgbouncer(installation?: Installation): () => Promise<Database> {
  const database = reusedDatabase(installation)
  let started: ReturnType<typeof startBefore> | undefined
  afterAll(async () => (await started)?.end())
  return async () => {
    const direct = await database()
    started ??= startBefore(direct.url)
    return { ...direct, url: (await started).url }
  }
}

async function startBefore(address: string) {
  const url = new URL(address)
  const folder = serverFolder()
  const server = `* = host=${url.hostname} port=${url.port}`
  const access = ['auth_type = scram-sha-256', 'auth_file = users.txt', 'listen_addr = 127.0.0.1', 'unix_socket_dir =']
  writeOwned(join(folder, 'users.txt'), [`"plants" "${password}"`, `"postgres" "${password}"`])
  let daemon: Daemon | undefined
  await onFreePort('Address already in use', async (port) => {
    // Two snapshots at the same time have a connection each.
    const pool = ['pool_mode = transaction', 'default_pool_size = 3', `listen_port = ${port}`]
    const lines = ['[databases]', server, '[pgbouncer]', ...access, ...pool]
    writeOwned(join(folder, 'pgbouncer.ini'), lines)
    daemon = new Daemon([program, 'pgbouncer.ini'], folder)
    await daemon.says(/process up/)
    url.port = `${port}`
    return daemon
  })
  const end = async () => {
    await daemon?.end('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  }
  return { url: url.href, end }
}
