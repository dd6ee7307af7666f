import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { devNull } from 'node:os'
import { track } from '../children.mjs'

const memoryStep = 10 // ms

/**
 * Runs a program to its end.
 *
 * @param input the path of what it gets on stdin
 * @param keepsOut whether `out` is what it wrote to stdout; it writes to nowhere otherwise
 * @returns the seconds from its start to its end, and the most resident memory in MB where the system tells
 * @throws when it does not end with 0
 */
export async function run([command, ...args], { env, input = devNull, keepsOut = false, watchesMemory = false }) {
  const stdin = openSync(input)
  const start = performance.now()
  const child = track(spawn(command, args, { env, stdio: [stdin, keepsOut ? 'pipe' : 'ignore', 'pipe'] }))
  closeSync(stdin)
  const closed = once(child, 'close')
  const memory = watchesMemory ? watch(child.pid) : undefined
  let out = ''
  child.stdout?.on('data', (chunk) => {
    out += chunk
  })
  let complaint = ''
  child.stderr.on('data', (chunk) => {
    complaint = `${complaint}${chunk}`.slice(-2000)
  })
  const [code, signal] = await once(child, 'exit')
  const seconds = (performance.now() - start) / 1000
  const peak = memory?.end()
  await closed
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code ?? signal}: ${complaint}`)
  return { seconds, out, peak }
}

/** proc(5): the system keeps the peak, so only what comes in the last moment of a process is missed. */
function watch(pid) {
  let peak = Number.NaN
  const timer = setInterval(() => {
    const status = existsSync(`/proc/${pid}/status`) ? readFileSync(`/proc/${pid}/status`, 'latin1') : ''
    const kibibytes = /VmHWM:\s+(\d+)/.exec(status)?.[1]
    if (kibibytes !== undefined) peak = (Number(kibibytes) * 1024) / 1e6
  }, memoryStep)
  const end = () => {
    clearInterval(timer)
    return peak
  }
  return { end }
}
