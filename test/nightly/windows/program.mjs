/*
 * Runs the program as the checks on Windows need it: as a process of its own, with pipes of Windows
 * and a home of its own.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'

/** The path of the program, an empty folder for the checks, and the words of their names. */
export const [bin, folder, ...nameWords] = process.argv.slice(2)

const home = join(folder, 'home')
const localAppData = join(home, 'AppData', 'Local')
const roamingAppData = join(home, 'AppData', 'Roaming')
export const dataFolder = join(localAppData, 'plants/Data')
export const configFolder = join(roamingAppData, 'plants/Config')
export const environment = {
  ...process.env,
  LOCALAPPDATA: localAppData,
  APPDATA: roamingAppData,
  USERPROFILE: home,
  NODE_NO_WARNINGS: '1',
}

/** The token that every service of the checks accepts. */
export const token = 'a-token-that-is-long-enough'

/** Creates the home, and enters the folder of the checks. */
export function enterFolder() {
  for (const path of [localAppData, roamingAppData]) mkdirSync(path, { recursive: true })
  process.chdir(folder)
}

const splitWords = (args) => (typeof args === 'string' ? args.split(' ') : args)

/** @param {import('node:child_process').SpawnSyncOptions} [options] */
export function runPlants(args, options = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...splitWords(args)], {
    input: '',
    ...options,
    env: { ...environment, ...options.env },
    encoding: 'utf8',
    timeout: 300_000,
  })
  return { code: status, out: stdout, err: stderr }
}

/** Runs a command that must succeed. Returns its stdout. */
export function expectSuccess(args, options) {
  const { code, out, err } = runPlants(args, options)
  const command = splitWords(args).join(' ')
  assert.equal(code, 0, `plants ${command}: exit code ${code}: ${err}${out}`.trim())
  return out
}

/** Runs a command that must fail with this exit code, and with this message on stderr. */
export function expectFailure(args, code, message, options) {
  const { out, err, ...result } = runPlants(args, options)
  assert.deepEqual([result.code, out], [code, ''], err)
  assert(err.includes(message), `${err} does not contain ${message}`)
}

/**
 * Starts a command that runs while a check goes on.
 *
 * @param {'pipe' | 'ignore'} [stderr]
 */
export function startPlants(args, env = {}, stderr = 'pipe') {
  const child = spawn(process.execPath, [bin, ...splitWords(args)], {
    env: { ...environment, ...env },
    stdio: ['ignore', 'pipe', stderr],
  })
  const result = { out: '', err: '' }
  child.stdout?.setEncoding('utf8').on('data', (text) => {
    result.out += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    result.err += text
  })
  const ended = new Promise((resolve) => child.on('close', (code) => resolve({ ...result, code })))
  return { child, result, ended }
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 20))

/** Waits for what a running command does, of which this process gets no event. */
export async function waitUntil(what, isDone, running) {
  for (const end = Date.now() + 300_000; !isDone(); await pause()) {
    assert(Date.now() < end, `Not within five minutes: ${what}`)
    assert(running?.child.exitCode == null, `The process ended without: ${what}`)
  }
}

let storeCount = 0

/** Creates a store with plants of these ids. Returns it as it is given to `--store`. */
export function createStore(...ids) {
  storeCount += 1
  const store = `.\\store${storeCount}.db`
  expectSuccess(['import', '-', '--store', store], {
    input: ids.map((id) => `{"id":${id},"name":"Fern ${id}"}\n`).join(''),
  })
  return store
}

/** Starts a service with every right. */
export async function serve(store) {
  // Nobody reads its log: `spawnSync` keeps this process from it, and a full pipe would stop the
  // service.
  const args = ['serve', '--store', store, '--port', '0', '--allow', 'create,read,update,delete']
  const service = startPlants(args, { PLANTS_SERVE_TOKEN: token }, 'ignore')
  await waitUntil('an address', () => service.result.out.includes('\n'), service)
  return { ...service, address: service.result.out.trim() }
}

export async function stop({ child, ended }) {
  child.kill()
  await ended
}

/** Runs a command line in PowerShell. Returns undefined without one: that of wine does nothing. */
export function runPowerShell(command) {
  const env = { ...environment, Path: `${join(bin, '../../../.bin')};${process.env.Path}` }
  for (const name of ['pwsh', 'powershell']) {
    const args = ['-NoProfile', '-ExecutionPolicy', 'Bypass', '-Command', command]
    const { stdout } = spawnSync(name, args, { encoding: 'utf8', env })
    if (stdout?.trim()) return stdout.trim()
  }
  return undefined
}
