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
 * @returns the seconds that it took, and on Linux the seconds of processor time and the largest
 *   memory of the process in MB; elsewhere these two are NaN
 */
export async function run([program = '', ...args], env) {
  const startedAtMs = performance.now()
  const processorMsBefore = readChildrenProcessorTimeMs()
  const child = track(spawn(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'] }))
  const stderr = child.stderr.toArray()
  let peakMb = NaN
  const timer = setInterval(() => {
    peakMb = readPeakMb(child.pid) ?? peakMb
  }, 10)
  const [code, signal] = await once(child, 'exit')
  const seconds = (performance.now() - startedAtMs) / 1000
  clearInterval(timer)
  if (code !== 0)
    throw new Error(
      `${program} ${args.join(' ')}: ${code ?? signal}\n${Buffer.concat(await stderr)}`,
    )
  const processorSeconds = (readChildrenProcessorTimeMs() - processorMsBefore) / 1000
  return { seconds, processorSeconds, peakMb }
}

/**
 * Reads the processor time of all processes that this process has started and that have ended, in
 * milliseconds, from /proc (proc(5)). It is NaN where there is no /proc.
 */
export function readChildrenProcessorTimeMs() {
  if (process.platform !== 'linux') return NaN
  const fields = readFileSync('/proc/self/stat', 'latin1').split(') ')[1].split(' ')
  return (Number(fields[13]) + Number(fields[14])) * 10 // The clock has 100 ticks a second.
}

/**
 * Reads the peak memory of a process in MB from /proc (proc(5)). It is undefined where there is no
 * /proc, and after the process has ended.
 */
export function readPeakMb(pid) {
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
  const flags = Object.entries(values).map(([name, value]) => [
    name,
    parseFlag(name, value, defaults[name]),
  ])
  return { ...defaults, ...Object.fromEntries(flags) }
}

/** Parses a flag to the type of its default. 0 is accepted by a list whose default contains it. */
function parseFlag(name, value, defaultValue) {
  const isList = Array.isArray(defaultValue)
  const isNumeric = typeof (isList ? defaultValue[0] : defaultValue) === 'number'
  if (!isNumeric) return isList ? value.split(',') : value
  const numbers = value.split(',').map(Number)
  const minimum = isList && defaultValue.includes(0) ? 0 : 1
  const areWhole = numbers.every((number) => Number.isSafeInteger(number) && number >= minimum)
  if (!areWhole || (!isList && numbers.length > 1))
    end(2, `--${name} must be a whole number from ${minimum} up`)
  return isList ? numbers : numbers[0]
}

/** Lists this checkout, and the one to compare it with, which is built. */
export function listCheckouts(against) {
  const ownCheckout = { root: join(import.meta.dirname, '..'), suffix: '' }
  const comparedCheckouts = against ? [{ root: resolve(against), suffix: ', before' }] : []
  return [ownCheckout, ...comparedCheckouts].map(({ root, suffix }) => ({
    root,
    suffix,
    plants: join(root, 'bin/plants.js'),
  }))
}

/** Removes the files of a database, and returns its path, for a new database. */
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
  // npm passes on a signal that the terminal has sent to this process already. If these handlers
  // were called only once, the second signal would end the removal.
  for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }))
    process.on(signal, () => process.exit(code))
  return folder
}

/**
 * Returns the environment without the user's settings, with the folder as the home, and without
 * NODE_EXTRA_CA_CERTS, for which Node 20 reads certificates at every start.
 */
export function createEnvironment(folder) {
  const omittedNames = /^(CI$|NODE_EXTRA_CA_CERTS$|PLANTS_|XDG_|PG[A-Z]+$|no_proxy$|NO_PROXY$)/
  const keptVariables = Object.entries(process.env).filter(([name]) => !omittedNames.test(name))
  return {
    ...Object.fromEntries(keptVariables),
    HOME: folder,
    LOCALAPPDATA: folder,
    APPDATA: folder,
    NO_PROXY: '*',
  }
}

/**
 * Ends the benchmark with a message.
 *
 * @returns {never}
 */
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
