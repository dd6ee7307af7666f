import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { track } from './common.mjs'

const timeoutMs = 30_000 // A start and a stop may each take this long.

/**
 * Starts a server, with its stderr in the file `log`.
 *
 * @param {string[]} command
 * @param {{ env: NodeJS.ProcessEnv, log: string, address?: Promise<string> }} options `address`
 *   resolves with the URL once the server listens; without it, the server prints the URL as its
 *   first line
 */
export async function startServer([command, ...args], { env, log, address }) {
  const stderr = openSync(log, 'w')
  const child = track(spawn(command, args, { env, stdio: ['ignore', 'pipe', stderr] }))
  closeSync(stderr)
  const exit = once(child, 'exit')
  const waitUntilTimeout = () => wait(timeoutMs, undefined, { ref: false })
  const url = await Promise.race([
    address ?? readFirstLine(child),
    exit.then(() => undefined),
    waitUntilTimeout(),
  ])
  if (url === undefined)
    throw new Error(`${args.join(' ')} did not start: ${readFileSync(log, 'utf8').slice(-2000)}`)
  const stop = async () => {
    child.kill()
    await Promise.race([exit, waitUntilTimeout()])
  }
  return { url, pid: child.pid, stop }
}

async function readFirstLine({ stdout }) {
  const [line] = await once(createInterface(stdout), 'line')
  stdout.resume()
  return line
}

/**
 * Runs the load generator in its own process, and returns the figures that it has measured.
 *
 * @throws {Error} when the load failed
 */
export async function generateLoad(load, env) {
  const args = [join(import.meta.dirname, 'load.mjs'), JSON.stringify(load)]
  const generator = promisify(execFile)(process.execPath, args, { env, timeout: 120_000 })
  track(generator.child)
  const figures = JSON.parse((await generator).stdout)
  if (figures.failure) throw new Error(figures.failure)
  return figures
}

/** Finds a port of loopback for a program that cannot choose one and print it. */
export async function findFreePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  server.close()
  await once(server, 'close')
  return String(port)
}

/** Returns the URL of a port, as soon as something accepts connections there. */
export async function waitForPort(port) {
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const isUp = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    if (isUp) return `http://127.0.0.1:${port}`
    await wait(50)
  }
}
