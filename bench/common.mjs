// The benchmarks share this: processes that end with the benchmark, a folder that is removed with
// it, and text for a terminal.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const children = new Set()

/** Notes a process that was started, until it has exited. */
export function track(child) {
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/**
 * Runs a program to its end. Throws when its exit code is not 0.
 *
 * @param {string[]} command
 * @returns the seconds that it took, and on Linux the seconds of processor time (`busy`) and the
 *   largest memory of the process in MB (`peak`)
 */
export async function run([program = '', ...args], env) {
  const [start, busyBefore] = [performance.now(), readProcessorTimeOfChildren()]
  const child = track(spawn(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'] }))
  const complaint = child.stderr.toArray()
  let peak = NaN
  const watch = setInterval(() => {
    peak = readPeak(child.pid) ?? peak
  }, 10)
  const [code, signal] = await once(child, 'exit')
  const seconds = (performance.now() - start) / 1000
  clearInterval(watch)
  if (code !== 0)
    throw new Error(
      `${program} ${args.join(' ')}: ${code ?? signal}\n${Buffer.concat(await complaint)}`,
    )
  return { seconds, busy: (readProcessorTimeOfChildren() - busyBefore) / 1000, peak }
}

/**
 * Reads how many ms of processor time the processes have taken that this one has started, and that
 * have ended, by proc(5). It is NaN where there is no /proc.
 */
export function readProcessorTimeOfChildren() {
  if (process.platform !== 'linux') return NaN
  const fields = readFileSync('/proc/self/stat', 'latin1').split(') ')[1].split(' ')
  return (Number(fields[13]) + Number(fields[14])) * 10 // The clock has 100 ticks a second.
}

/** Returns MB, by proc(5), or undefined elsewhere and once the process has ended. */
export function readPeak(pid) {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1')
    const [, size] = /VmHWM:\s+(\d+) kB/.exec(status) ?? []
    return size === undefined ? undefined : (Number(size) * 1024) / 1e6
  } catch {
    return undefined
  }
}

/**
 * Parses the flags of this process. Each has the type of its default: a whole number, a list, a
 * text, or a switch.
 *
 * @template {Record<string, unknown>} T
 * @param {T} defaults
 * @returns {T}
 */
export function parseFlags(defaults) {
  const options = {}
  for (const [name, value] of Object.entries(defaults))
    options[name] = { type: typeof value === 'boolean' ? 'boolean' : 'string' }
  const { values } = parseArgs({ options })
  const given = Object.entries(values).map(([name, text]) => [
    name,
    parseFlag(name, text, defaults[name]),
  ])
  return { ...defaults, ...Object.fromEntries(given) }
}

function parseFlag(name, text, like) {
  const isList = Array.isArray(like)
  if (typeof (isList ? like[0] : like) !== 'number') return isList ? text.split(',') : text
  const numbers = text.split(',').map(Number)
  const least = isList && like.includes(0) ? 0 : 1
  const areWhole = numbers.every((number) => Number.isSafeInteger(number) && number >= least)
  if (!areWhole || (!isList && numbers.length > 1))
    end(2, `--${name} must be a whole number from ${least} up`)
  return isList ? numbers : numbers[0]
}

/** Lists this checkout, and the one to compare it with, which is built. */
export function listCheckouts(against) {
  const own = { root: join(import.meta.dirname, '..'), suffix: '' }
  const others = against ? [{ root: resolve(against), suffix: ', before' }] : []
  return [own, ...others].map((each) => ({ ...each, plants: join(each.root, 'bin/plants.js') }))
}

/** Removes the files of a database, and returns its path. */
export function removeFiles(file) {
  for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true })
  return file
}

/** The folder is removed when this process exits, after all tracked processes were killed. */
export function createTemporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'plants-bench-'))
  process.once('exit', () => {
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  // A handler that is called once would let the second signal end the removal: npm passes on the
  // signal that came from the terminal already.
  for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }))
    process.on(signal, () => process.exit(code))
  return folder
}

/**
 * Returns the environment without the user's settings, with the folder as the home, and without
 * NODE_EXTRA_CA_CERTS, for which Node 20 reads certificates at every start.
 */
export function createEnvironment(folder) {
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
