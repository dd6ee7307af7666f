import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { track } from './children.mjs'

const patience = 30_000 // ms, for a start and for a stop

/** Starts a peer, with its stderr in a file of the folder; `stop` gives the exit code. */
export async function start(peer, { folder, store, env, node = process.execPath }) {
  peer.prepare?.({ folder, env })
  const port = peer.package && (await freePort())
  const log = openSync(join(folder, 'server.log'), 'w')
  const child = track(spawn(node, peer.args({ folder, store, port }), { env, stdio: ['ignore', 'pipe', log] }))
  closeSync(log)
  const exited = once(child, 'exit')
  const url = await Promise.race([port ? answering(port) : announced(child), exited.then(() => undefined), late()])
  if (url === undefined) throw new Error(`${peer.title} did not start: ${tailOf(folder)}`)
  const stop = async () => {
    child.kill()
    await Promise.race([exited, late()])
    return child.exitCode
  }
  return { url, pid: child.pid, stop }
}

/** The end of what the last server had to say. */
export function tailOf(folder) {
  return readFileSync(join(folder, 'server.log'), 'utf8').slice(-2000)
}

/** Runs the load generator; gives what it found, see there. What it could not find is not a number. */
export async function load(orders, env) {
  const running = promisify(execFile)(
    process.execPath,
    [join(import.meta.dirname, 'load.mjs'), JSON.stringify(orders)],
    { env },
  )
  track(running.child)
  const { stdout } = await running
  return JSON.parse(stdout, (_, value) => value ?? Number.NaN)
}

/** How many lines Node prints when it is started with these arguments. */
export async function countLines(args, env) {
  const child = track(spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] }))
  const exited = once(child, 'close')
  let complaint = ''
  child.stderr.on('data', (chunk) => {
    complaint += chunk
  })
  let count = 0
  for await (const chunk of child.stdout) for (const byte of chunk) if (byte === 10) count += 1
  const [code] = await exited
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${complaint}`)
  return count
}

function late() {
  return wait(patience, undefined, { ref: false })
}

async function announced({ stdout }) {
  const [line] = await once(createInterface(stdout), 'line')
  stdout.resume()
  return line
}

/** The address of a server that does not tell when it is ready. */
async function answering(port) {
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const [isUp] = await Promise.race([once(socket, 'connect').then(() => [true]), once(socket, 'error')])
    socket.destroy()
    if (isUp === true) return `http://127.0.0.1:${port}`
    await wait(50)
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return String(port)
}
