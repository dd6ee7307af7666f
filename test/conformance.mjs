// A public contract tester, Specmatic, makes requests of all kinds out of the service's own description, and holds the
// answers against it: npm run conformance. It needs Java 17 or newer, and a network the first time, to fetch the tester.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request as send } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'

const tester = 'specmatic@2.55.1'
const root = join(import.meta.dirname, '..')
const plants = join(root, 'bin/plants.js')
const folder = mkdtempSync(join(tmpdir(), 'plants-conformance-'))
const store = join(folder, 'plants.db')

try {
  process.exitCode = spawnSync('java', ['-version']).status === 0 ? await judge() : fail('npm run conformance needs Java 17 or newer')
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function judge() {
  const jar = fetchTester()
  const { PLANTS_SERVE_TOKEN, ...env } = process.env
  const common = ['--store', store, '--output', 'text']
  const token = execFileSync(process.execPath, [plants, 'tokens', 'create', '--allow', 'create,read,update,delete', ...common], {
    env,
    encoding: 'utf8',
  }).trim()
  const args = [plants, 'serve', ...common, '--port', '0', '--log-level', 'warn']
  const service = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [line] = await Promise.race([once(service.stdout, 'data'), once(service, 'exit')])
    const address = String(line).trim()
    await describe(address)
    return report(await runTester(jar, token, await forgetful(address)))
  } finally {
    if (service.exitCode === null && service.kill()) await once(service, 'exit')
  }
}

/** The tester is no dependency: 90 MB for this alone. */
function fetchTester() {
  const cache = join(root, 'node_modules/.cache', tester)
  const jar = join(cache, 'node_modules/specmatic/specmatic.jar')
  const args = ['install', '--prefix', cache, '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', tester]
  if (!existsSync(jar)) execFileSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'], shell: process.platform === 'win32' })
  return jar
}

/**
 * Without what says that U+0000 is no text: to break a pattern the tester puts a "_" at its end, which breaks nothing here. And without
 * the stream, for which it does not ask.
 */
async function describe(address) {
  const answer = await fetch(`${address}/openapi.json`)
  const description = JSON.parse(await answer.text(), (key, value) => {
    const isHidden = key === 'application/x-ndjson' || (key === 'pattern' && value.includes('u0000'))
    return isHidden ? undefined : value
  })
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(description))
}

/**
 * Passes requests on to the service: to a store that has the plant that is asked for and no other, since the tester does not know which
 * ids and which entity tags there are, and that an id or a key can be taken.
 */
async function forgetful(address) {
  const db = new DatabaseSync(store)
  const proxy = createServer((request, response) => {
    db.exec('DELETE FROM plants')
    const id = /^\/plants\/(-?\d{1,18})$/.exec(request.url)?.[1]
    if (id !== undefined) db.prepare("INSERT INTO plants (id, name, tag) VALUES (?, 'Fern', 'shade')").run(BigInt(id))
    if ('if-match' in request.headers) request.headers['if-match'] = '*'
    const passed = send(address + request.url, { method: request.method, headers: request.headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.rawHeaders)
      answer.pipe(response)
    })
    request.pipe(passed)
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  proxy.unref()
  return `http://127.0.0.1:${proxy.address().port}`
}

async function runTester(jar, token, address) {
  const args = ['-jar', jar, 'test', 'openapi.json', `--testBaseURL=${address}`]
  const settings = { bearer: token, SPECMATIC_GENERATIVE_TESTS: 'true', SPECMATIC_DISABLE_TELEMETRY: 'true' }
  const java = spawn('java', args, { cwd: folder, env: { ...process.env, ...settings }, stdio: ['ignore', 'pipe', 'inherit'] })
  const output = java.stdout.toArray()
  const [status] = await once(java, 'close')
  return { status, output: Buffer.concat(await output).toString() }
}

/** Prints what the tester says in the end. The exit code is 0 when it has made requests, and every answer was right. */
function report({ status, output }) {
  const summary = /^Tests run: (\d+), Successes: (\d+), .*$/m.exec(output)
  const failures = /^Unsuccessful Scenarios:.*?(?=^Tests run)/ms.exec(output)
  process.stdout.write(`${failures?.[0] ?? ''}${summary?.[0] ?? output}\n`)
  return status === 0 && summary !== null && summary[1] > 0 && summary[1] === summary[2] ? 0 : 1
}

function fail(message) {
  process.stderr.write(`${message}\n`)
  return 2
}
