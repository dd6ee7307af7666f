// Checks the service against its own OpenAPI description: npm run conformance
// Specmatic, a contract tester, sends requests of all kinds that it makes from the description, also with each right
// missing. It needs Java 17 or newer, and a network the first time, to fetch it.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request as send } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { fetchPackages } from '../bench/packages.mjs'
import { start } from '../bench/server.mjs'

const tester = 'specmatic@2.55.1' // no dependency: it has 90 MB
const root = join(import.meta.dirname, '..')
const plants = join(root, 'bin/plants.js')
const folder = mkdtempSync(join(tmpdir(), 'plants-conformance-'))
const store = join(folder, 'plants.db')
const tokens = new Map()
/** the rights, and the methods that need them */
const rights = { create: 'POST', read: 'GET', update: 'PATCH', delete: 'DELETE' }
const { PLANTS_SERVE_TOKEN: _, ...environment } = process.env
const env = { ...environment, HOME: folder, PLANTS_STATE_DIR: folder, NO_COLOR: '1' }

try {
  process.exitCode =
    spawnSync('java', ['-version']).status === 0
      ? await judge()
      : fail('npm run conformance needs Java 17 or newer')
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function judge() {
  const jar = fetchPackages(tester, [tester], 'specmatic/specmatic.jar')
  const all = Object.keys(rights)
  return serve(async (address) => {
    const failures = []
    const front = await forgetful(address)
    await describe(address)
    for (const missing of [undefined, ...all]) {
      const given = all.filter((right) => right !== missing)
      if (!report(given, await runTester(jar, tokenFor(given), front, rights[missing])))
        failures.push(`Specmatic, ${given}`)
    }
    for (const failure of failures) process.stdout.write(`Failed: ${failure}\n`)
    return failures.length > 0 ? 1 : 0
  })
}

function tokenFor(given) {
  const allow = given.join()
  const args = [plants, 'tokens', 'create', '--allow', allow, '--store', store, '--output', 'text']
  if (!tokens.has(allow))
    tokens.set(allow, execFileSync(process.execPath, args, { env, encoding: 'utf8' }).trim())
  return tokens.get(allow)
}

async function serve(action) {
  tokenFor(Object.keys(rights)) // creates the store
  const args = [plants, 'serve', '--store', store, '--port', '0', '--log-level', 'warn']
  const service = await start([process.execPath, ...args], {
    env,
    log: join(folder, 'service.log'),
  })
  try {
    return await action(service.url)
  } finally {
    await service.stop()
  }
}

/**
 * Leaves out that U+0000 is not allowed in a text, since the tester adds a "_" to break a pattern, which breaks nothing
 * here.
 */
async function describe(address) {
  const text = await (await fetch(`${address}/openapi.json`)).text()
  const hide = (key, value) => (key === 'pattern' && value.includes('u0000') ? undefined : value)
  writeFileSync(join(folder, 'openapi.json'), JSON.stringify(JSON.parse(text, hide)))
}

/**
 * A service in front of the service, whose store has the plant that is asked for and no other: the tester does not know
 * which ids and keys there are.
 */
async function forgetful(address) {
  const db = new DatabaseSync(store)
  const proxy = createServer((request, response) => {
    db.exec('DELETE FROM plants')
    const id = /^\/plants\/(-?\d{1,18})$/.exec(request.url)?.[1]
    if (id !== undefined)
      db.prepare("INSERT INTO plants (id, name, tag) VALUES (?, 'Fern', 'shade')").run(BigInt(id))
    // no description can say that one excludes the other
    const path = /[?&]tag=/.test(request.url)
      ? request.url.replace(/&?\bnoTag=true\b/, '')
      : request.url
    const { method, headers } = request
    const passed = send(address + path, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.rawHeaders)
      answer.pipe(response)
    })
    request.pipe(passed)
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  proxy.unref()
  return `http://127.0.0.1:${proxy.address().port}`
}

/** @param leftOut the method that the token has no right to */
async function runTester(jar, token, address, leftOut) {
  const filter = leftOut === undefined ? [] : [`--filter=METHOD!='${leftOut}'`]
  const args = ['-jar', jar, 'test', 'openapi.json', `--testBaseURL=${address}`, ...filter]
  const settings = {
    bearer: token,
    SPECMATIC_GENERATIVE_TESTS: 'true',
    SPECMATIC_DISABLE_TELEMETRY: 'true',
  }
  const java = spawn('java', args, {
    cwd: folder,
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const output = java.stdout.toArray()
  const [status] = await once(java, 'close')
  return { status, output: Buffer.concat(await output).toString() }
}

/** Prints the summary of the tester. Returns whether every response was right. */
function report(given, { status, output }) {
  const summary = /^Tests run: (\d+), Successes: (\d+), .*$/m.exec(output)
  const failures = /^Unsuccessful Scenarios:.*?(?=^Tests run)/ms.exec(output)
  process.stdout.write(`${failures?.[0] ?? ''}Specmatic, ${given}: ${summary?.[0] ?? output}\n`)
  return status === 0 && summary !== null && summary[1] > 0 && summary[1] === summary[2]
}

function fail(message) {
  process.stderr.write(`${message}\n`)
  return 2
}
