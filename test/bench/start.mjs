// What a whole process costs, from exec to exit, beside programs that everybody knows: npm run bench:start [-- RUNS]
// The commands take turns, so that a machine that slows down slows all of them; the medians and their ratios count.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const runs = Number.parseInt(process.argv[2] ?? '20', 10)
const folder = mkdtempSync(join(tmpdir(), 'plants-bench-'))
const plants = join(import.meta.dirname, '../../bin/plants.js')
const token = 'plants_bench-token'

// With NODE_EXTRA_CA_CERTS Node 20 reads certificates at every start, which would be measured instead.
const { NODE_EXTRA_CA_CERTS, XDG_CONFIG_HOME, XDG_DATA_HOME, ...inherited } = process.env
const environment = Object.fromEntries(Object.entries(inherited).filter(([name]) => !name.startsWith('PLANTS_')))
const env = { ...environment, HOME: folder, LOCALAPPDATA: folder, APPDATA: folder }
/** Settings with 20 stores, of which one is the service, with a saved token. */
const settled = { ...env, PLANTS_CONFIG_DIR: join(folder, 'settled') }

let id = 1 // this one is made first, to be found and refused
const create = (...flags) => {
  id += 1
  return [process.execPath, plants, 'create', '--id', String(id), '--name', 'Fern', ...flags]
}
const names = {
  bare: 'node -e 0',
  create: 'plants create, flags',
  settled: 'plants create, 20 stores saved',
  variable: 'plants create, remote, PLANTS_TOKEN',
  saved: 'plants create, remote, saved token',
}
let address = '' // of the service, when it runs
const commands = [
  { name: names.bare, argv: () => [process.execPath, '-e', '0'] },
  { name: 'plants --version', argv: () => [process.execPath, plants, '--version'] },
  { name: names.create, argv: () => create() },
  { name: names.settled, argv: () => create(), env: settled },
  {
    name: 'sh: printf | plants create',
    argv: () => ['sh', '-c', `printf '{"id":%s,"name":"Fern"}' "$5" | "$1" "$2" create`, 'sh', ...create()],
  },
  { name: 'plants create, refused (409)', argv: () => [process.execPath, plants, 'create', '--id', '1', '--name', 'Fern'], status: 1 },
  { name: names.variable, argv: () => create('--store', address), env: { ...env, PLANTS_TOKEN: token } },
  { name: names.saved, argv: () => create('--store', 'team'), env: settled },
  { name: 'plants get 1', argv: () => [process.execPath, plants, 'get', '1'] },
  { name: 'plants stores list', argv: () => [process.execPath, plants, 'stores', 'list'], env: settled },
  { name: 'plants config set', argv: () => [process.execPath, plants, 'config', 'set', 'timeout', '30s'], env: settled },
  { name: 'curl --version', argv: () => ['curl', '--version'] },
  {
    name: 'sqlite3 insert',
    argv: () => [
      'sqlite3',
      join(folder, 'peer.db'),
      'CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO t (name) VALUES (1)',
    ],
  },
]
/** What a part of a start adds to it. */
const differences = [
  { what: 'settings file', more: names.settled, less: names.create },
  { what: 'remote store', more: names.variable, less: names.create },
  { what: 'saved token, through a name', more: names.saved, less: names.variable },
]

const service = spawn(process.execPath, [plants, 'serve', '--port', '0', '--log-level', 'silent', '--store', join(folder, 'served.db')], {
  env: { ...env, PLANTS_SERVE_TOKEN: token },
  stdio: ['ignore', 'pipe', 'inherit'],
})
try {
  address = await addressOf(service)
  prepare()
  const present = commands.filter(({ argv }) => spawnSync(argv()[0], ['--version'], { env }).error === undefined)
  const times = present.map(() => [])
  for (let run = -2; run < runs; run += 1) {
    for (const [index, command] of present.entries()) times[index].push(...measure(command, run))
  }
  print(present, times)
} finally {
  const ended = service.exitCode ?? once(service, 'exit')
  service.kill()
  await ended
  rmSync(folder, { recursive: true, force: true })
}

async function addressOf({ stdout }) {
  const lines = createInterface(stdout)
  const first = await Promise.race([once(lines, 'line'), once(lines, 'close')])
  if (first.length === 0) throw new Error('plants serve did not start')
  return first[0]
}

function prepare() {
  call(['create', '--id', '1', '--name', 'Fern'], env)
  for (let number = 1; number < 20; number += 1) call(['stores', 'add', `store-${number}`, `https://${number}.example.com/v1`], settled)
  call(['stores', 'add', 'team', address], settled)
  call(['auth', 'login', '--store', 'team', '--with-token'], settled, token)
}

function call(args, env, input = '') {
  const { status, stderr } = spawnSync(process.execPath, [plants, ...args], { env, input })
  if (status !== 0) throw new Error(`plants ${args.join(' ')} ended with ${status}: ${stderr}`)
}

/** Milliseconds of one run; of the first ones, which warm the caches, nothing. */
function measure({ name, argv, status = 0, env: own = env }, run) {
  const [command, ...args] = argv()
  const start = performance.now()
  const result = spawnSync(command, args, { env: own })
  const time = performance.now() - start
  if (result.status !== status) throw new Error(`${name} ended with ${result.status}: ${result.stderr}`)
  return run < 0 ? [] : [time]
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]
}

function print(present, times) {
  const medians = times.map(median)
  const width = Math.max(...present.map(({ name }) => name.length))
  const indexOf = (name) => present.findIndex((command) => command.name === name)
  const bases = [medians[indexOf(names.bare)], medians[indexOf('curl --version')]]
  const lines = present.map(({ name }, index) => {
    const ratios = bases.map((base) => (base === undefined ? '-' : (medians[index] / base).toFixed(2)).padStart(8))
    return `${name.padEnd(width)} ${medians[index].toFixed(1).padStart(8)} ms ${ratios.join(' ')}`
  })
  const added = differences.map(({ what, more, less }) => {
    // of each run by itself: what slows the machine down for a while, slows both
    const time = median(times[indexOf(more)].map((own, run) => own - times[indexOf(less)][run]))
    return `${what}: ${time < 0 ? '-' : '+'}${Math.abs(time).toFixed(1)} ms (${more}, against ${less})`
  })
  process.stdout.write(
    `Node ${process.versions.node}, ${process.platform} ${process.arch}, medians of ${runs} runs in turn, without NODE_EXTRA_CA_CERTS\n`,
  )
  process.stdout.write(`${' '.repeat(width)} ${'median'.padStart(11)} ${'x node'.padStart(8)} ${'x curl'.padStart(8)}\n`)
  process.stdout.write(`${[...lines, '', ...added].join('\n')}\n`)
}
