// What the benchmarks share: processes that end with the benchmark, a folder that goes with it, and text for a terminal.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const children = new Set()

/** Notes a process that was started, until it has exited. */
export function track(child) {
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/** Runs a program to its end, and returns the seconds that took. Throws when its exit code is not 0. */
export async function run([command, ...args], env) {
  const start = performance.now()
  const child = track(spawn(command, args, { env, stdio: ['ignore', 'ignore', 'pipe'] }))
  const complaint = child.stderr.toArray()
  const [code, signal] = await once(child, 'exit')
  const seconds = (performance.now() - start) / 1000
  if (code !== 0)
    throw new Error(
      `${command} ${args.join(' ')}: ${code ?? signal}\n${Buffer.concat(await complaint)}`,
    )
  return seconds
}

/** Makes a folder that is removed when this process exits, after all tracked processes were killed. */
export function temporaryFolder(parent) {
  const folder = mkdtempSync(join(parent, 'plants-bench-'))
  process.once('exit', () => {
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  // Not once: npm passes on the signal that came from the terminal already, and the second would end the removal.
  for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }))
    process.on(signal, () => process.exit(code))
  return folder
}

/**
 * The environment without the user's settings, with the folder as the home, and without NODE_EXTRA_CA_CERTS, for which
 * Node 20 reads certificates at every start.
 */
export function environmentIn(folder) {
  const foreign = /^(CI$|NODE_EXTRA_CA_CERTS$|PLANTS_|XDG_|PG[A-Z]+$|no_proxy$|NO_PROXY$)/
  const own = Object.entries(process.env).filter(([name]) => !foreign.test(name))
  return {
    ...Object.fromEntries(own),
    HOME: folder,
    LOCALAPPDATA: folder,
    APPDATA: folder,
    NO_PROXY: '*',
  }
}

/** @returns {never} */
export function end(code, message) {
  process.stderr.write(`${message}\n`)
  process.exit(code)
}

export function print(line) {
  process.stdout.write(`${line}\n`)
}

/** Prints rows of text, the first column to the left and the others to the right. */
export function printColumns(rows) {
  const widths = rows[0].map((_, index) => Math.max(...rows.map((row) => row[index].length)))
  for (const row of rows) {
    const cells = row.map((cell, index) =>
      index ? cell.padStart(widths[index]) : cell.padEnd(widths[0]),
    )
    print(cells.join('  ').trimEnd())
  }
}
