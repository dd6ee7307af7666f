import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, onTestFinished } from 'vitest'
import { password } from './postgres/cluster.js'
import { Daemon, onFreePort } from './postgres/daemon.js'
import { identity, serverFolder, writeOwned } from './postgres/identity.js'
import type { Installation } from './postgres/installation.js'
import { type Database, reusedDatabase } from './postgres.js'

const program = '/usr/sbin/pgbouncer'

/** PgBouncer is Debian's: tests that need it say so in their names. */
export const hasPgBouncer = existsSync(program)

/**
 * Puts PgBouncer before a database, in transaction mode, with two connections for everybody: what a transaction leaves
 * behind is seen.
 */
export async function pgbouncer(database: Database): Promise<Database> {
  const { through, end } = await startBefore(database)
  onTestFinished(end)
  return through
}

/** The same for all tests of a file or a group, with the one database that they have as `reusedDatabase` gives it. */
export function reusedPgbouncer(installation?: Installation): () => Promise<Database> {
  const database = reusedDatabase(installation)
  let started: ReturnType<typeof startBefore> | undefined
  afterAll(async () => (await started)?.end())
  return async () => {
    const direct = await database()
    started ??= startBefore(direct, 3) // two snapshots at the same time have one each
    return (await started).through
  }
}

async function startBefore(database: Database, size = 2): Promise<{ through: Database; end: () => Promise<void> }> {
  const url = new URL(database.url)
  const user = identity()
  const folder = serverFolder(user)
  const server = `* = host=${url.hostname} port=${url.port}`
  const access = ['auth_type = scram-sha-256', 'auth_file = users.txt', 'listen_addr = 127.0.0.1', 'unix_socket_dir =']
  writeOwned(join(folder, 'users.txt'), [`"plants" "${password}"`, `"postgres" "${password}"`], user)
  let daemon: Daemon | undefined
  await onFreePort('Address already in use', async (port) => {
    const pool = ['pool_mode = transaction', `default_pool_size = ${size}`, `listen_port = ${port}`]
    const lines = ['[databases]', server, '[pgbouncer]', ...access, ...pool]
    writeOwned(join(folder, 'pgbouncer.ini'), lines, user)
    daemon = new Daemon([program, 'pgbouncer.ini'], folder, user)
    await daemon.says(/process up/)
    url.port = `${port}`
    return daemon
  })
  const end = async () => {
    await daemon?.end('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  }
  return { through: { ...database, url: url.href, env: { PGPASSWORD: password } }, end }
}
