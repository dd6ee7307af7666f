import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import { expect, onTestFinished } from 'vitest'
import type { Row } from './database.js'
import {
  createServerFolder,
  giveToServerUser,
  serverOptions,
  startDaemon,
  startOnFreePort,
} from './server.js'

// Starts two PostgreSQL servers of Debian that Patroni and etcd watch.

const bin = '/usr/lib/postgresql/15/bin'

/**
 * Runs Patroni in a PID namespace, so that PostgreSQL, which is not its child, is killed with it.
 */
const inOwnProcesses =
  'unshare --user --map-current-user --pid --ipc --fork --kill-child --mount-proc'.split(' ')

/** The shortest times, in seconds, that Patroni allows: a primary is replaced after `ttl`. */
const times = { ttl: 20, loop_wait: 2, retry_timeout: 3 }

export function hasPatroni(): boolean {
  const [command = '', ...args] = [...inOwnProcesses, 'sh', '-c', 'command -v patroni etcd']
  const { status } = spawnSync(command, args, serverOptions)
  return status === 0 && spawnSync(join(bin, 'postgres'), ['--version']).status === 0
}

/** Starts a primary, and a standby for which its commits wait. */
export async function startPatroniCluster(): Promise<[PatroniNode, PatroniNode]> {
  const folder = createServerFolder()
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const etcd = await startOnFreePort((port) => {
    const url = `http://127.0.0.1:${port}`
    const data = makeFolder(join(folder, `etcd-${port}`))
    const urls = `--listen-client-urls ${url} --advertise-client-urls ${url}`
    const peers = '--listen-peer-urls http://127.0.0.1:0'
    const command = ['etcd', '--data-dir', data, ...`${urls} ${peers}`.split(' ')]
    return startDaemon(command, data, /serving (?:insecure )?client/)
  })
  onTestFinished(() => etcd.end('SIGKILL'))
  const [primary, standby] = ['a', 'b'].map(
    (name) =>
      new PatroniNode(name, makeFolder(join(folder, name)), `http://127.0.0.1:${etcd.port}`),
  )
  if (!primary || !standby) throw new Error('There are two')
  await primary.start()
  await primary.waitForRole('primary')
  await primary.queryAsSuperuser('CREATE ROLE plants LOGIN', 'postgres')
  await primary.queryAsSuperuser('CREATE DATABASE plants OWNER plants', 'postgres')
  await standby.start()
  await standby.waitForRole('synchronous')
  return [primary, standby]
}

/** A process of Patroni with its PostgreSQL server. */
export class PatroniNode {
  port = 0
  #api = 0
  #end = async (_: NodeJS.Signals) => {}
  readonly #name: string
  readonly #folder: string
  readonly #etcd: string

  constructor(name: string, folder: string, etcd: string) {
    this.#name = name
    this.#folder = folder
    this.#etcd = etcd
    onTestFinished(() => this.kill())
  }

  /** Starts the node. After it was killed, it gets the same ports again. */
  async start(): Promise<void> {
    if (this.port === 0) [this.port, this.#api] = [await findFreePort(), await findFreePort()]
    const path = join(this.#folder, 'patroni.yml')
    writeFileSync(path, JSON.stringify(this.#buildConfiguration())) // which is YAML, too
    const command = [...inOwnProcesses, 'patroni', path]
    const end = await startDaemon(command, this.#folder, /INFO/)
    if (end) this.#end = end
  }

  /** Kills Patroni and PostgreSQL with SIGKILL. */
  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  /** Resolves when Patroni says that the node has the role. */
  async waitForRole(role: 'primary' | 'synchronous'): Promise<void> {
    const url = `http://127.0.0.1:${this.#api}/${role}`
    const hasRole = () =>
      fetch(url).then(
        ({ ok }) => ok,
        () => false,
      )
    await expect.poll(hasRole, { interval: 100, message: `${this.#name}: ${role}` }).toBe(true)
  }

  async queryAsSuperuser(statements: string, database = 'plants'): Promise<Row[]> {
    const types = new pg.TypeOverrides()
    types.setTypeParser(pg.types.builtins.INT8, BigInt)
    const endpoint = { host: '127.0.0.1', port: this.port, user: 'postgres', database }
    const client = new pg.Client({ ...endpoint, types })
    await client.connect()
    try {
      return (await client.query<Row>(statements)).rows
    } finally {
      await client.end()
    }
  }

  #buildConfiguration() {
    const address = `127.0.0.1:${this.port}`
    const api = `127.0.0.1:${this.#api}`
    const trust = '127.0.0.1/32 trust'
    return {
      scope: 'plants',
      name: this.#name,
      etcd3: { url: this.#etcd },
      restapi: { listen: api, connect_address: api },
      bootstrap: {
        dcs: { ...times, synchronous_mode: true, postgresql: { use_pg_rewind: true } },
        initdb: ['data-checksums', { encoding: 'UTF8' }, { locale: 'C' }],
      },
      postgresql: {
        listen: address,
        connect_address: address,
        bin_dir: bin,
        data_dir: join(this.#folder, 'data'),
        pgpass: join(this.#folder, 'pgpass'),
        basebackup: [{ checkpoint: 'fast' }],
        authentication: {
          superuser: { username: 'postgres' },
          replication: { username: 'replicator' },
        },
        parameters: {
          unix_socket_directories: this.#folder,
          dynamic_shared_memory_type: 'mmap',
        },
        pg_hba: ['local all all trust', `host all all ${trust}`, `host replication all ${trust}`],
      },
    }
  }
}

function makeFolder(path: string): string {
  mkdirSync(path, { mode: 0o700 })
  giveToServerUser(path)
  return path
}

/** Finds a port on which nothing listens now. */
async function findFreePort(): Promise<number> {
  const { port } = await startOnFreePort(async (candidate) => {
    const server = createServer()
    const isFree = await once(server.listen(candidate, '127.0.0.1'), 'listening').then(
      () => true,
      () => false,
    )
    server.close()
    return isFree ? async () => undefined : undefined
  })
  return port
}
