import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { runnerImport } from 'vite'
import { plants } from '../import/programs.mjs'

const root = join(import.meta.dirname, '../..')

/**
 * Starts the PostgreSQL of the tests in a folder, with the durability that it has by default.
 *
 * @returns `pid` of the process that all its others come from; `database` makes one, see there
 */
export async function startServer(folder, env) {
  process.env.TMPDIR = folder // where its helpers make what they need
  const [{ installations }, { makeTemplate }, { PostgresServer }] = await Promise.all([
    source('test/helpers/postgres/installation.ts'),
    source('test/helpers/postgres/cluster.ts'),
    source('test/helpers/postgres/server.ts'),
  ])
  const server = await PostgresServer.start(await makeTemplate(installations[0]))
  if (!server.folder.startsWith(folder))
    throw new Error(`The server has no place in ${folder}: give a --folder that has a short path`)
  const url = (user, name) => `postgres://${user}@127.0.0.1:${server.port}/${name}`
  const [{ version }] = await ask(url('postgres', 'postgres'), "SELECT current_setting('server_version') AS version")
  return {
    version: `PostgreSQL ${version}`,
    pid: Number.parseInt(readFileSync(join(server.folder, 'postmaster.pid'), 'latin1'), 10),
    admin: (text) => ask(url('postgres', 'postgres'), text),
    database: (options) => makeDatabase(url, env, options),
    remove: () => server.remove(),
  }
}

/**
 * Makes an empty database, behind a checkpoint, so that no turn pays for the one before.
 *
 * @param hasTables whether the tables are there that a store has; `attempt` is then 0 for who does not give it
 */
async function makeDatabase(url, env, { hasTables = false } = {}) {
  const name = `bench${Date.now()}`
  const admin = url('postgres', 'postgres')
  await ask(admin, `CREATE DATABASE ${name} OWNER plants TEMPLATE template0`)
  const database = {
    url: url('plants', name),
    sql: (text) => ask(url('plants', name), text),
    count: async () => Number((await ask(url('plants', name), 'SELECT count(*) FROM plant_store.plants'))[0].count),
    drop: () => ask(admin, `DROP DATABASE ${name} WITH (FORCE)`),
  }
  if (hasTables) {
    execFileSync(process.execPath, [plants, 'stores', 'init', database.url], {
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    await database.sql("ALTER TABLE plant_store.plants ALTER attempt SET DEFAULT '0'")
  }
  await ask(admin, 'CHECKPOINT')
  return database
}

async function ask(url, text) {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

async function source(path) {
  const { module } = await runnerImport(join(root, path), { configFile: false, logLevel: 'error', root })
  return module
}
