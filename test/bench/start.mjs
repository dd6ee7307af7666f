// What a whole process costs, from exec to exit, beside programs that everybody knows: npm run bench:start [-- RUNS]
// The commands take turns, so that a machine that slows down slows all of them; the medians and their ratios count.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const runs = Number.parseInt(process.argv[2] ?? '20', 10)
const folder = mkdtempSync(join(tmpdir(), 'plants-bench-'))
const plants = join(import.meta.dirname, '../../bin/plants.js')

// With NODE_EXTRA_CA_CERTS Node 20 reads certificates at every start, which would be measured instead.
const { NODE_EXTRA_CA_CERTS, PLANTS_DATA_DIR, PLANTS_STORE, XDG_DATA_HOME, ...environment } = process.env
const env = { ...environment, HOME: folder, LOCALAPPDATA: folder }

let id = 1 // this one is made first, to be found and refused
const create = () => {
  id += 1
  return [process.execPath, plants, 'create', '--id', String(id), '--name', 'Fern']
}
const commands = [
  { name: 'node -e 0', argv: () => [process.execPath, '-e', '0'] },
  { name: 'plants --version', argv: () => [process.execPath, plants, '--version'] },
  { name: 'plants create, flags', argv: create },
  {
    name: 'sh: printf | plants create',
    argv: () => ['sh', '-c', `printf '{"id":%s,"name":"Fern"}' "$5" | "$1" "$2" create`, 'sh', ...create()],
  },
  { name: 'plants create, refused (409)', argv: () => [process.execPath, plants, 'create', '--id', '1', '--name', 'Fern'], status: 1 },
  { name: 'plants get 1', argv: () => [process.execPath, plants, 'get', '1'] },
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

try {
  const present = commands.filter(({ argv }) => spawnSync(argv()[0], ['--version'], { env }).error === undefined)
  const times = present.map(() => [])
  spawnSync(process.execPath, [plants, 'create', '--id', '1', '--name', 'Fern'], { env })
  for (let run = -2; run < runs; run += 1) {
    for (const [index, command] of present.entries()) times[index].push(...measure(command, run))
  }
  print(present, times.map(median))
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Milliseconds of one run; of the first ones, which warm the caches, nothing. */
function measure({ name, argv, status = 0 }, run) {
  const [command, ...args] = argv()
  const start = performance.now()
  const result = spawnSync(command, args, { env })
  const time = performance.now() - start
  if (result.status !== status) throw new Error(`${name} ended with ${result.status}: ${result.stderr}`)
  return run < 0 ? [] : [time]
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]
}

function print(present, medians) {
  const width = Math.max(...present.map(({ name }) => name.length))
  const [bare] = medians
  const curl = medians[present.findIndex(({ name }) => name.startsWith('curl'))]
  const lines = present.map(({ name }, index) => {
    const ratios = [bare, curl].map((base) => (base === undefined ? '-' : (medians[index] / base).toFixed(2)).padStart(8))
    return `${name.padEnd(width)} ${medians[index].toFixed(1).padStart(8)} ms ${ratios.join(' ')}`
  })
  process.stdout.write(
    `Node ${process.versions.node}, ${process.platform} ${process.arch}, medians of ${runs} runs in turn, without NODE_EXTRA_CA_CERTS\n`,
  )
  process.stdout.write(
    `${' '.repeat(width)} ${'median'.padStart(11)} ${'x node'.padStart(8)} ${'x curl'.padStart(8)}\n${lines.join('\n')}\n`,
  )
}
