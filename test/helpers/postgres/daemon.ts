import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { serverEnv } from './cluster.js'
import { identity } from './identity.js'

/**
 * Below the ports that systems give to whoever asks for any, so that a server that is stopped finds its own free again.
 */
const ports = [20_000, 32_000] as const

/**
 * Becomes the server, and leaves behind what ends it at once when the pipe from us closes, be it that we were killed.
 * That is no child of the server, which would wonder at it.
 */
const script =
  'exec 3<&0; ( { cat <&3; kill -QUIT $$; } >/dev/null 2>&1 & ); exec "$@" 3<&- </dev/null'

/** A server that writes a log to stderr, and ends with this process. */
export class Daemon {
  /** its last 100,000 characters */
  log = ''
  isUp = false
  readonly #process: ChildProcess
  readonly #exit: Promise<unknown>

  constructor(command: string[], folder: string, user = identity()) {
    this.#process = spawn('/bin/sh', ['-c', script, 'sh', ...command], {
      ...user,
      cwd: folder,
      env: serverEnv,
      stdio: ['pipe', 'ignore', 'pipe'],
    })
    this.#exit = once(this.#process, 'close')
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.log = (this.log + text).slice(-100_000)
    })
  }

  /** Resolves when the log says that it is up, or when it has ended before. */
  async says(pattern: RegExp): Promise<void> {
    const ended = this.#exit.then(() => false)
    const more = () => once(this.#process.stderr ?? this.#process, 'data').then(() => true)
    let isMore = true
    while (isMore && !pattern.test(this.log)) isMore = await Promise.race([more(), ended])
    this.isUp = pattern.test(this.log)
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    this.#process.kill(signal)
    await this.#exit
  }
}

/**
 * Starts a daemon on one port after the other, as long as its log says that the port was taken: nobody knows before
 * that one is free.
 *
 * @throws {Error} with the log, when it ends for another reason
 */
export async function onFreePort(
  taken: string,
  start: (port: number) => Promise<Daemon>,
): Promise<void> {
  let daemon = await start(randomInt(...ports))
  for (let attempt = 1; attempt < 20 && !daemon.isUp && daemon.log.includes(taken); attempt += 1)
    daemon = await start(randomInt(...ports))
  if (!daemon.isUp) throw new Error(`It has not started: ${daemon.log}`)
}

/** A port that nobody listens on now, for what is not a daemon that ends where its port is taken. */
export async function freePort(): Promise<number> {
  const server = createServer()
  const port = randomInt(...ports)
  const isFree = await once(server.listen(port, '127.0.0.1'), 'listening').then(
    () => true,
    () => false,
  )
  server.close()
  return isFree ? port : freePort()
}
