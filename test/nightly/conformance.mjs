// Checks the service against its own OpenAPI description with public programs: npm run conformance
// Specmatic, a contract tester, sends requests of all kinds that it makes from the description, also with each right
// missing. Prism checks the requests and responses of the commands as a proxy. It needs Java 17 or newer, and a network
// the first time, to fetch both.
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, request as send } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { DatabaseSync } from '@photostructure/sqlite'
import { fetchPackages } from '../../bench/packages.mjs'
import { findFreePort, startServer, waitForPort } from '../../bench/server.mjs'

// Neither is a dependency: the tester alone is 90 MB.
const tester = 'specmatic@2.55.1'
const mock = '@stoplight/prism-cli@5.14.2'
const root = join(import.meta.dirname, '../..')
const plants = join(root, 'bin/plants.js')
const folder = mkdtempSync(join(tmpdir(), 'plants-conformance-'))
const store = join(folder, 'plants.db')
const description = join(folder, 'openapi.json')
const tokens = new Map()
/** the rights, and the methods that need them */
const rights = { create: 'POST', read: 'GET', update: 'PATCH', delete: 'DELETE' }
const { PLANTS_SERVE_TOKEN: _, ...environment } = process.env
const env = { ...environment, HOME: folder, NO_COLOR: '1' }

/** Commands that go through Prism as a proxy, with their exit codes */
const proxied = [
  ['create --id 1 --name Fern --tag shade', 0],
  ['create --id 1 --name Moss', 1],
  ['create --id next --name Ivy', 0],
  ['get 1', 0],
  ['get 9', 1],
  ['list --search e --limit 1', 0],
  ['update 1 --tag dark', 0],
  ['delete 2 --yes', 0],
  ['delete 2 --yes', 1],
]

/** Commands that end with exit code 3 for a token without the right */
const refused = {
  create: 'create --id 3 --name Fir',
  read: 'get 1',
  update: 'update 1 --tag light',
  delete: 'delete 1 --yes',
}

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
  const prism = fetchPackages(mock, [mock], '.bin/prism')
  const all = Object.keys(rights)
  return serve(async (address) => {
    const failures = []
    const front = await forgetful(address)
    await describe(address, hideUntested)
    for (const missing of [undefined, ...all]) {
      const given = all.filter((right) => right !== missing)
      if (!report(given, await runTester(jar, tokenFor(given), front, rights[missing])))
        failures.push(`Specmatic, ${given}`)
    }
    await describe(address)
    new DatabaseSync(store).exec('DELETE FROM plants')
    const missing = all.map((right) => [
      refused[right],
      3,
      tokenFor(all.filter((other) => other !== right)),
    ])
    failures.push(...(await runCommands(prism, [...proxied, ...missing], address)))
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
  const service = await startServer([process.execPath, ...args], {
    env,
    log: join(folder, 'service.log'),
  })
  try {
    return await action(service.url)
  } finally {
    await service.stop()
  }
}

/** Returns the commands that end with another exit code than they should. */
async function runCommands(bin, commands, address) {
  const port = await findFreePort()
  // --errors: what does not fit the description is an error of the response, in place of a warning
  const args = [bin, 'proxy', description, address, '--errors', '--port', port]
  args.push('--verboseLevel', 'error') // it prints no address
  const options = { env, log: join(folder, 'prism.log'), address: waitForPort(port) }
  const prism = await startServer([process.execPath, ...args], options)
  const front = await frontOf(prism.url, async (request, response) => {
    if (request.url !== '/openapi.json') return false
    response.end(await (await fetch(`${address}/openapi.json`)).text()) // the description does not describe itself
    return true
  })
  const failures = []
  for (const [command, expected, token = tokenFor(Object.keys(rights))] of commands) {
    const args = [plants, ...command.split(' '), '--store', front, '--timeout', '5s']
    const run = promisify(execFile)(process.execPath, args, {
      env: { ...env, PLANTS_TOKEN: token },
    })
    const { code, stderr } = await run.catch((error) => error)
    if ((code ?? 0) !== expected)
      failures.push(`prism, plants ${command}: exit code ${code ?? 0}, not ${expected}\n${stderr}`)
  }
  process.stdout.write(
    `prism: ${commands.length - failures.length} of ${commands.length} commands\n`,
  )
  await prism.stop()
  return failures
}

async function describe(address, hide) {
  const answer = await fetch(`${address}/openapi.json`)
  writeFileSync(description, JSON.stringify(JSON.parse(await answer.text(), hide)))
}

/**
 * Leaves out that U+0000 is not allowed in a text, since the tester adds a "_" to break a pattern, which breaks nothing
 * here.
 */
function hideUntested(key, value) {
  const isHidden = key === 'pattern' && value.includes('u0000')
  return isHidden ? undefined : value
}

/**
 * A service in front of the service, whose store has the plant that is asked for and no other: the tester does not know
 * which ids and keys there are.
 */
async function forgetful(address) {
  const db = new DatabaseSync(store)
  return frontOf(address, (request) => {
    db.exec('DELETE FROM plants')
    const id = /^\/plants\/(-?\d{1,18})$/.exec(request.url)?.[1]
    if (id !== undefined)
      db.prepare("INSERT INTO plants (id, name, tag) VALUES (?, 'Fern', 'shade')").run(BigInt(id))
    // no description can say that one excludes the other
    if (/[?&]tag=/.test(request.url)) request.url = request.url.replace(/&?\bnoTag=true\b/, '')
    return false
  })
}

/** The address of a proxy. `prepare` changes requests, or answers them itself and returns true. */
async function frontOf(address, prepare) {
  const proxy = createServer(async (request, response) => {
    if (await prepare(request, response)) return
    const passed = send(
      address + request.url,
      { method: request.method, headers: request.headers },
      (answer) => {
        response.writeHead(Number(answer.statusCode), answer.rawHeaders)
        answer.pipe(response)
      },
    )
    request.pipe(passed)
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  proxy.unref()
  const { port } = /** @type {import('node:net').AddressInfo} */ (proxy.address())
  return `http://127.0.0.1:${port}`
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
  return status === 0 && summary !== null && Number(summary[1]) > 0 && summary[1] === summary[2]
}

function fail(message) {
  process.stderr.write(`${message}\n`)
  return 2
}
