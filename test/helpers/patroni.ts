import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import {
  Daemon,
  freePort,
  identity,
  ownedFolder,
  serverFolder,
  writeOwned,
} from './postgres/server.js'
import { query, type Row } from './postgres.js'
import { isHere } from './programs.js'

/** Runs a program in PIDs of its own: when it is killed, so is PostgreSQL, which is no child of Patroni. */
const contained =
  'unshare --user --map-current-user --pid --ipc --fork --kill-child --mount-proc'.split(' ')

/** Patroni and etcd are Debian's: tests that need them say so in their names. */
export function hasPatroni(): boolean {
  const [program = '', ...args] = contained
  return (
    isHere('patroni') &&
    isHere('etcd') &&
    spawnSync(program, [...args, 'true'], identity()).status === 0
  )
}

/**
 * What Patroni has by default, in seconds: how long a primary stays one without a sign of life, and how often it looks.
 */
export const patroniDefaults = { ttl: 30, loop_wait: 10, retry_timeout: 10 }

/** Two servers, a primary and a standby that its commits wait for, over which Patroni and etcd watch. */
export async function patroniCluster(bin: string): Promise<[PatroniNode, PatroniNode]> {
  const folder = serverFolder()
  // with the WAL of both, on a busy disk
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const clients = `http://127.0.0.1:${await freePort()}`
  const data = ownedFolder(join(folder, 'etcd'))
  const args = `--listen-client-urls ${clients} --advertise-client-urls ${clients} --listen-peer-urls http://127.0.0.1:0`
  const etcd = new Daemon(['etcd', '--data-dir', data, ...args.split(' ')], folder)
  onTestFinished(() => etcd.end('SIGKILL'))
  await etcd.says(/serving insecure client requests/)
  const primary = await PatroniNode.start('a', { folder, bin, etcd: clients })
  await primary.becomes('primary')
  await primary.admin('CREATE ROLE plants LOGIN', 'postgres')
  await primary.admin('CREATE DATABASE plants OWNER plants', 'postgres')
  const standby = await PatroniNode.start('b', { folder, bin, etcd: clients })
  await standby.becomes('synchronous')
  return [primary, standby]
}

class PatroniNode {
  readonly port: number
  readonly #api: number
  readonly #folder: string
  #daemon: Daemon

  private constructor(folder: string, port: number, api: number) {
    this.#folder = folder
    this.port = port
    this.#api = api
    this.#daemon = this.#launch()
    onTestFinished(() => this.kill())
  }

  static async start(
    name: string,
    place: { folder: string; bin: string; etcd: string },
  ): Promise<PatroniNode> {
    const folder = ownedFolder(join(place.folder, name))
    const [port, api] = [await freePort(), await freePort()]
    const config = {
      ...{ scope: 'plants', name, etcd3: { url: place.etcd } },
      restapi: { listen: `127.0.0.1:${api}`, connect_address: `127.0.0.1:${api}` },
      bootstrap: {
        dcs: { ...patroniDefaults, synchronous_mode: true, postgresql: { use_pg_rewind: true } },
        initdb: ['data-checksums', { encoding: 'UTF8' }, { locale: 'C' }],
      },
      postgresql: {
        ...{ listen: `127.0.0.1:${port}`, connect_address: `127.0.0.1:${port}` },
        ...{ bin_dir: place.bin, data_dir: join(folder, 'data'), pgpass: join(folder, 'pgpass') },
        basebackup: [{ checkpoint: 'fast' }],
        authentication: {
          superuser: { username: 'postgres' },
          replication: { username: 'replicator' },
        },
        parameters: { unix_socket_directories: folder, dynamic_shared_memory_type: 'mmap' },
        pg_hba: [
          'local all all trust',
          'host all all 127.0.0.1/32 trust',
          'host replication all 127.0.0.1/32 trust',
        ],
      },
    }
    writeOwned(join(folder, 'patroni.yml'), [JSON.stringify(config)])
    return new PatroniNode(folder, port, api)
  }

  admin(text: string, database = 'plants'): Promise<Row[]> {
    return query({ socketFolder: this.#folder, port: this.port }, 'postgres', database, text)
  }

  /** Resolves when Patroni says so; a primary is killed or cut off for its ttl first. */
  async becomes(role: 'primary' | 'synchronous'): Promise<void> {
    const ask = () =>
      fetch(`http://127.0.0.1:${this.#api}/${role}`).then(
        ({ ok }) => ok,
        () => false,
      )
    await expect.poll(ask, { interval: 100, message: `${role}: ${this.#daemon.log}` }).toBe(true)
  }

  async kill(): Promise<void> {
    await this.#daemon.end('SIGKILL')
  }

  start(): void {
    this.#daemon = this.#launch()
  }

  #launch(): Daemon {
    return new Daemon([...contained, 'patroni', 'patroni.yml'], this.#folder)
  }
}
