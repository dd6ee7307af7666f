import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { runnerImport } from 'vite'
import { fetchPostgres } from './embedded-postgres.mjs'

const root = join(import.meta.dirname, '..')
// Debian has a script in PATH that finds this one, and takes its time.
const debianPath = '/usr/lib/postgresql/15/bin/psql'
const psql = existsSync(debianPath) ? debianPath : 'psql'

/** Builds a command line of psql, which the tests' PostgreSQL does not have. */
export function buildPsqlCommand(url, sql) {
  const flags = '--no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 -c'
  return [psql, ...flags.split(' '), sql, url]
}

/**
 * Starts the PostgreSQL of the tests in the folder, without settings, and so with the durability of
 * the default.
 */
export async function startPostgres(folder, env) {
  // The server is another user where this one is root.
  chmodSync(folder, 0o711)
  const home = mkdtempSync(join(folder, 'postgres-'))
  chmodSync(home, 0o711)
  fetchPostgres()
  const path = join(root, 'test/helpers/postgres/server.ts')
  /** @type {{ module: typeof import('../test/helpers/postgres/server.js') }} */
  const { module } = await runnerImport(path, { configFile: false, logLevel: 'error', root })
  const template = await module.createTemplate(module.installations[0], home)
  const server = await module.startServer(template, {})
  const buildUrl = (user, name) => `postgres://${user}@127.0.0.1:${server.port}/${name}`
  const execute = (address, sql) => {
    const [command, ...args] = buildPsqlCommand(address, sql)
    const quietEnv = { ...env, PGOPTIONS: '-c client_min_messages=warning' }
    return execFileSync(command, args, { env: quietEnv, encoding: 'utf8' }).trim()
  }
  const executeAsAdmin = (sql) => execute(buildUrl('postgres', 'postgres'), sql)
  /**
   * Makes an empty database with the tables of a store, after a checkpoint, so that no turn pays
   * for the one before.
   */
  const makeStore = (name = 'bench') => {
    const address = buildUrl('plants', name)
    executeAsAdmin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    executeAsAdmin(`CREATE DATABASE ${name} OWNER plants TEMPLATE template0`)
    execFileSync(process.execPath, [join(root, 'bin/plants.js'), 'stores', 'init', address], {
      env,
      stdio: 'ignore',
    })
    executeAsAdmin('CHECKPOINT')
    return address
  }
  const remove = async () => {
    await server.remove()
    rmSync(template.folder, { recursive: true })
  }
  return { version: executeAsAdmin('SHOW server_version'), execute, makeStore, remove }
}
