import { appendFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { serverEnv, type Template } from './cluster.js'
import { Daemon, onFreePort } from './daemon.js'
import { identity, ownedFolder, writeOwned } from './identity.js'

export interface ServerOptions {
  /** lines of postgresql.conf */
  settings?: string[]
  /** lines of pg_hba.conf, which come before ours */
  access?: string[]
  /** whether everybody is asked for the password, by scram-sha-256; else nobody is */
  asksPassword?: boolean
  /** for connections that ask for TLS; `access` says who must */
  tls?: { cert: string; key: string }
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

  static async start(template: Template, options: ServerOptions = {}): Promise<PostgresServer> {
    const server = new PostgresServer(template)
    const user = { ...identity(), cwd: server.socketFolder, env: serverEnv, extendEnv: false }
    await execa('cp', ['-R', template.data, server.folder], user)
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

  async start(): Promise<void> {
    const daemon = await this.#listen()
    if (!daemon.isUp) throw new Error(`PostgreSQL has not started: ${daemon.log}`)
  }

  /** Ends every connection; "immediate" is as if it had crashed: what it was doing is recovered when it starts. */
  async stop(how: keyof typeof signals = 'fast'): Promise<void> {
    await this.#daemon?.end(signals[how])
  }

  async remove(): Promise<void> {
    await this.stop('immediate')
    rmSync(this.socketFolder, { recursive: true, force: true })
  }

  async #listen(): Promise<Daemon> {
    const args = ['-D', this.folder, '-k', this.socketFolder, '-p', `${this.port}`]
    this.#daemon = new Daemon([join(this.#bin, 'postgres'), ...args], this.socketFolder)
    await this.#daemon.says(/ready to accept connections/)
    return this.#daemon
  }

  #configure({ settings = [], access = [], asksPassword = false, tls }: ServerOptions): void {
    const method = asksPassword ? 'scram-sha-256' : 'trust'
    const everybody = [`local all all ${method}`, `host all all all ${method}`]
    const write = (name: string, lines: string[]) => writeOwned(join(this.folder, name), lines)
    write('pg_hba.conf', ['local all postgres trust', ...access, ...everybody])
    if (tls) write('server.crt', [tls.cert])
    if (tls) write('server.key', [tls.key])
    const defaults = [
      `listen_addresses = '${this.host}'`,
      "lc_messages = 'C'",
      `ssl = ${tls ? 'on' : 'off'}`,
    ]
    appendFileSync(
      join(this.folder, 'postgresql.conf'),
      `${[...defaults, ...settings].join('\n')}\n`,
    )
  }
}
