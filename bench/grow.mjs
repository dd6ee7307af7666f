// How the cost of a command grows with the number of plants: npm run bench:grow [-- FLAG...]
//   --sizes 10000,100000,1000000,10000000  --runs 5
//   --record        writes bench/README.md
// Each is a whole process with its start; the stores take turns.
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { lineChart } from './charts.mjs'
import { environmentIn, flagsOf, peakOf, run, temporaryFolder } from './common.mjs'
import { median, numberText, reporterOf, spread } from './report.mjs'
import { writeRows } from './rows.mjs'
import { load, start } from './server.mjs'

const { sizes, runs, record } = flagsOf({
  sizes: [10_000, 100_000, 1_000_000, 10_000_000],
  runs: 5,
  record: false,
})
const folder = temporaryFolder()
const env = { ...environmentIn(folder), PLANTS_SERVE_TOKEN: 'a-token-of-the-benchmark' }
const plants = [process.execPath, join(import.meta.dirname, '../bin/plants.js')]
const more = join(folder, 'more.csv')
const columns = ['--columns', 'id,name,tag']
const report = reporterOf(
  folder,
  `one import and service each; medians of ${runs} runs in turn`,
  record,
)
let nextId = 1

const stores = []
for (const size of sizes) stores.push(await storeOf(size))
const commands = {
  'create, ms': () => ['create', '--id', idOfNext(), '--name', 'Fern'],
  'get, ms': ({ middle }) => ['get', middle],
  'page in the middle, ms': ({ middle }) => ['list', '--after', middle, '--limit', '50'],
  'search, ms': () => ['list', '--search', 'xyz'],
}
for (let index = 0; index < runs; index += 1)
  for (const store of stores)
    for (const [title, argsOf] of Object.entries(commands)) await note(store, title, argsOf(store))
for (const store of stores) store.memory = await memoryOf(store)
await writeRows(more, 100_000, 'csv', { shift: 1n })
const importing = 'import of another 100,000, ms'
for (const store of stores) await note(store, importing, ['import', more, ...columns])

const titles = [...Object.keys(commands), importing]
const rows = stores.map(({ size, bytes, times, memory }) => [
  size.toLocaleString('en-US'),
  numberText(bytes / 1e6),
  numberText(bytes / size),
  ...titles.map((title) => spread(times[title])),
  numberText(memory),
])
const heading = ['plants', 'file, MB', 'bytes a plant', ...titles, 'memory of a service, MB']
const lines = titles.map((title) => ({
  label: title.replace(', ms', ''),
  points: stores.map(({ size, times }) => [size, median(times[title])]),
}))
const chart = lineChart('Milliseconds of a command', 'plants in the store', lines)
report('growth', [[heading, ...rows]], chart)

/** A store with so many plants, and the id in their middle. */
async function storeOf(size) {
  const [file, input] = [join(folder, `${size}.db`), join(folder, `${size}.csv`)]
  await writeRows(input, size, 'csv')
  await run([...plants, 'import', input, ...columns, '--store', file], env)
  rmSync(input)
  const step = 2n ** 64n / BigInt(size)
  const middle = String(BigInt(Math.floor(size / 2)) * step - 2n ** 63n)
  return { size, file, middle, bytes: statSync(file).size, times: {}, memory: NaN }
}

async function note({ file, times }, title, args) {
  const { seconds } = await run([...plants, ...args, '--store', file], env)
  times[title] = [...(times[title] ?? []), seconds * 1000]
}

/** The largest of a service that creates 20,000 plants. */
async function memoryOf({ file }) {
  const log = join(folder, 'server.log')
  const serve = ['serve', '--port', '0', '--store', file]
  const { url, pid, stop } = await start([...plants, ...serve], { env, log })
  await load({ url, base: '1000000', connections: 64, isKept: true, count: 20_000 }, env)
  const peak = peakOf(pid) ?? NaN
  await stop()
  return peak
}

function idOfNext() {
  nextId += 1
  return String(nextId)
}
