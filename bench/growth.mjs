// Time and memory as a store grows: npm run bench:growth [-- FLAG...]
//   --plants 10000,1000000   the sizes of the store
//   --seconds 3     how long the service accepts creates
//   --folder PATH   where the temporary folder is made, and so which disk is written to
// Each is measured once, in a SQLite file. After each import it is checked that the plants are there.
import { randomBytes } from 'node:crypto'
import { rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { killAll } from './children.mjs'
import { note, print, printColumns, textOf } from './figures.mjs'
import { plants, programs } from './import/programs.mjs'
import { writeRows } from './import/rows.mjs'
import { run } from './import/run.mjs'
import { checkCount, countPlants, removeStore } from './import/store.mjs'
import { thousands } from './import/table.mjs'
import { printMachine } from './machine.mjs'
import { listOf, peers } from './peers.mjs'
import { cleanEnvironment, end, homeIn, temporaryFolder } from './place.mjs'
import { stream } from './reads.mjs'
import { load, start } from './server.mjs'

const plantSize = 400 // bytes on the disk, with room: an input row, and the store with its write-ahead log
const operations = ['import', 'export', 'list', 'serve']
const maxImportPeak = 150 // MB
const { values: flags } = parseArgs({
  options: {
    plants: { type: 'string', default: '10000,1000000' },
    seconds: { type: 'string', default: '3' },
    folder: { type: 'string', default: tmpdir() },
  },
})
const [counts, seconds] = [flags.plants.split(',').map(Number), Number(flags.seconds)]
if (!(seconds > 0 && counts.every((count) => Number.isSafeInteger(count) && count > 0))) {
  end(2, '--plants must be whole numbers from 1 up, --seconds above 0')
}
const { bavail, bsize } = statfsSync(flags.folder)
const needed = Math.max(...counts) * plantSize
if (bavail * bsize < needed) end(1, `${flags.folder} needs ${needed / 1e9} GB of space: give another --folder`)

const folder = temporaryFolder(flags.folder, killAll)
const token = randomBytes(16).toString('hex')
const env = { ...cleanEnvironment(), ...homeIn(folder), PLANTS_SERVE_TOKEN: token }
const store = join(folder, 'store.db')

printMachine(folder, 'Once each, ids in order')
const rows = []
for (const count of counts) rows.push(await take(count))
note('growth', { title: 'Plants', rows })
printColumns([
  ['plants', ...operations.flatMap((name) => [`${name} s`, 'peak MB']), 'creates/s'],
  ...rows.map(({ title, rate, ...row }) => [
    title,
    ...operations.flatMap((name) => [textOf(row[`${name}Time`], 2), textOf(row[`${name}Peak`], 0)]),
    textOf(rate, 0),
  ]),
])
const peak = Math.max(...rows.map(({ importPeak }) => importPeak))
const verdict = Number.isNaN(peak) ? 'not measured' : peak <= maxImportPeak ? 'met' : 'NOT MET'
print(`The peak of import is ${textOf(peak, 0)} MB (at most ${maxImportPeak}: ${verdict})`)

/** Seconds and MB of each operation, and creates a second into a store that has so many plants. */
async function take(count) {
  const [input, out] = [join(folder, 'plants'), join(folder, 'export.ndjson')]
  await writeRows(`${input}.ndjson`, { count, order: 'ordered', format: 'ndjson' })
  const node = process.execPath
  const imported = await run(programs.plants.argv({ node, rows: input, store }), { env, watchesMemory: true })
  checkCount(programs.plants, countPlants(store), count)
  rmSync(`${input}.ndjson`)
  const exported = await run([node, plants, 'export', '--store', store, '--out', out], { env, watchesMemory: true })
  rmSync(out)
  const listed = await run([node, ...listOf(store)], { env, watchesMemory: true })
  const served = await serve((server) => stream(server, count, env))
  const base = String((1n << 51n) + BigInt(`0x${randomBytes(6).toString('hex')}`))
  const created = await serve((server) =>
    load({ servers: [server], status: 200, base, warmUp: Math.min(1, seconds), seconds }, env),
  )
  removeStore(store)
  return {
    ...{ title: thousands(count), plants: count },
    ...{ importTime: imported.seconds, importPeak: imported.peak },
    ...{ exportTime: exported.seconds, exportPeak: exported.peak },
    ...{ listTime: listed.seconds, listPeak: listed.peak },
    ...{ serveTime: count / served.rate, servePeak: served.peak / 1000 },
    rate: created.rate,
  }
}

async function serve(ask) {
  const peer = { ...peers.serve, args: (turn) => [...peers.serve.args(turn), '--allow', 'create,read'] }
  const { url, pid, stop } = await start(peer, { folder, store, env })
  const found = await ask({ url, pid })
  await stop()
  if (found.failure) throw new Error(`${peer.title}: ${found.failure}`)
  return found
}
