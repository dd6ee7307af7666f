// How the cost of a command grows with the number of plants: npm run bench:grow [-- FLAG...]
//   --sizes 10000,100000,1000000,10000000  --runs 5
//   --record        writes bench/README.md
// Each is a whole process with its start. The stores take turns.
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { drawLineChart } from './charts.mjs'
import { createEnvironment, createTemporaryFolder, parseFlags, readPeakMb, run } from './common.mjs'
import { createReporter, findMedian, formatNumber, formatSpread } from './report.mjs'
import { writeRows } from './rows.mjs'
import { generateLoad, startServer } from './server.mjs'

const { sizes, runs, record } = parseFlags({
  sizes: [10_000, 100_000, 1_000_000, 10_000_000],
  runs: 5,
  record: false,
})
const folder = createTemporaryFolder()
const env = { ...createEnvironment(folder), PLANTS_SERVE_TOKEN: 'a-token-of-the-benchmark' }
const plants = [process.execPath, join(import.meta.dirname, '../bin/plants.js')]
const furtherPlants = join(folder, 'more.csv')
const columns = ['--columns', 'id,name,tag']
const report = createReporter(
  folder,
  `one import and one service for each size; medians and ranges of ${runs} interleaved runs`,
  record,
)
let nextId = 1

const stores = []
for (const size of sizes) stores.push(await makeFilledStore(size))
const commands = {
  'create, ms': () => ['create', '--id', takeNextId(), '--name', 'Fern'],
  'get, ms': ({ middle }) => ['get', middle],
  'page in the middle, ms': ({ middle }) => ['list', '--after', middle, '--limit', '50'],
  'search, ms': () => ['list', '--search', 'xyz'],
}
for (let index = 0; index < runs; index += 1)
  for (const store of stores)
    for (const [title, buildArgs] of Object.entries(commands))
      await measureCommand(store, title, buildArgs(store))
for (const store of stores) store.memoryMb = await measureMemoryMb(store)
await writeRows(furtherPlants, 100_000, 'csv', { shift: 1n })
const importTitle = 'import of another 100,000, ms'
for (const store of stores)
  await measureCommand(store, importTitle, ['import', furtherPlants, ...columns])

const titles = [...Object.keys(commands), importTitle]
const rows = stores.map(({ size, bytes, timesMs, memoryMb }) => [
  size.toLocaleString('en-US'),
  formatNumber(bytes / 1e6),
  formatNumber(bytes / size),
  ...titles.map((title) => formatSpread(timesMs[title])),
  formatNumber(memoryMb),
])
const heading = ['plants', 'file, MB', 'bytes per plant', ...titles, 'memory of a service, MB']
const lines = titles.map((title) => ({
  label: title.replace(', ms', ''),
  points: stores.map(({ size, timesMs }) => [size, findMedian(timesMs[title])]),
}))
const chart = drawLineChart('Duration of a command in milliseconds', 'plants in the store', lines)
const processorRows = stores.map(({ size, processorTimesMs }) => [
  size.toLocaleString('en-US'),
  ...titles.map((title) => formatSpread(processorTimesMs[title])),
])
const tables = [
  [heading, ...rows],
  [['plants (processor time)', ...titles], ...processorRows],
]
report('growth', tables, chart)

/** Makes a store with this number of plants, and computes the id of the plant in the middle. */
async function makeFilledStore(size) {
  const [file, input] = [join(folder, `${size}.db`), join(folder, `${size}.csv`)]
  await writeRows(input, size, 'csv')
  await run([...plants, 'import', input, ...columns, '--store', file], env)
  rmSync(input)
  const step = 2n ** 64n / BigInt(size)
  const middle = String(BigInt(Math.floor(size / 2)) * step - 2n ** 63n)
  const bytes = statSync(file).size
  return { size, file, middle, bytes, timesMs: {}, processorTimesMs: {}, memoryMb: NaN }
}

/** Runs a command on a store, and adds its times to those of the store. */
async function measureCommand({ file, timesMs, processorTimesMs }, title, args) {
  const { seconds, processorSeconds } = await run([...plants, ...args, '--store', file], env)
  timesMs[title] = [...(timesMs[title] ?? []), seconds * 1000]
  processorTimesMs[title] = [...(processorTimesMs[title] ?? []), processorSeconds * 1000]
}

/** Measures the largest memory of a service that creates 20,000 plants. */
async function measureMemoryMb({ file }) {
  const log = join(folder, 'server.log')
  const serve = ['serve', '--port', '0', '--store', file]
  const { url, pid, stop } = await startServer([...plants, ...serve], { env, log })
  await generateLoad(
    { url, firstId: '1000000', connections: 64, keepsConnections: true, count: 20_000 },
    env,
  )
  const peakMb = readPeakMb(pid) ?? NaN
  await stop()
  return peakMb
}

function takeNextId() {
  nextId += 1
  return String(nextId)
}
