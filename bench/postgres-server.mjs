import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { runnerImport } from 'vite'

const root = join(import.meta.dirname, '..')
// Debian has a script in PATH that finds this one, and takes its time.
const debian = '/usr/lib/postgresql/15/bin/psql'
const psql = existsSync(debian) ? debian : 'psql'

/** Builds a command line of psql, which the tests' PostgreSQL does not have. */
export function buildPsqlCommand(url, text) {
  const flags = '--no-psqlrc --quiet --tuples-only --no-align --set ON_ERROR_STOP=1 -c'
  return [psql, ...flags.split(' '), text, url]
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
  const path = join(root, 'test/helpers/postgres/server.ts')
  /** @type {{ module: typeof import('../test/helpers/postgres/server.js') }} */
  const { module } = await runnerImport(path, { configFile: false, logLevel: 'error', root })
  const template = await module.makeTemplate(module.installations[0], home)
  const server = await module.startServer(template, {})
  const buildUrl = (user, name) => `postgres://${user}@127.0.0.1:${server.port}/${name}`
  const ask = (address, text) => {
    const [command, ...args] = buildPsqlCommand(address, text)
    const quiet = { ...env, PGOPTIONS: '-c client_min_messages=warning' }
    return execFileSync(command, args, { env: quiet, encoding: 'utf8' }).trim()
  }
  const admin = (text) => ask(buildUrl('postgres', 'postgres'), text)
  /**
   * Makes an empty database with the tables of a store, after a checkpoint, so that no turn pays
   * for the one before.
   */
  const makeStore = (name = 'bench') => {
    const address = buildUrl('plants', name)
    admin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    admin(`CREATE DATABASE ${name} OWNER plants TEMPLATE template0`)
    execFileSync(process.execPath, [join(root, 'bin/plants.js'), 'stores', 'init', address], {
      env,
      stdio: 'ignore',
    })
    admin('CHECKPOINT')
    return address
  }
  const remove = async () => {
    await server.remove()
    rmSync(template.folder, { recursive: true })
  }
  return { version: admin('SHOW server_version'), ask, makeStore, remove }
}
