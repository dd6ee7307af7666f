import { rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { programs } from './programs.mjs'
import { writeRows } from './rows.mjs'
import { run } from './run.mjs'
import { checkCount, countPlants, removeStore } from './store.mjs'
import { printPeaks, thousands } from './table.mjs'

const counts = [1_000_000, 10_000_000]
const rowSize = 400 // bytes on the disk, with room: an input row, and the store with its write-ahead log
const bar = 150 // MB

/** What a long import needs: memory must not grow with the input. */
export async function measureMemory(bench) {
  const { bavail, bsize } = statfsSync(bench.folder)
  const needed = Math.max(...counts) * rowSize
  if (bavail * bsize < needed) throw new Error(`${bench.folder} needs ${needed / 1e9} GB of space: give another --folder`)
  const entries = []
  for (const count of counts) entries.push(await takePeak(count, bench))
  printPeaks(`plants import, ${counts.map(thousands).join(' and ')} ids in order, once: peak of resident memory`, entries, bar)
}

async function takePeak(count, bench) {
  const rows = join(bench.folder, 'memory')
  await writeRows(`${rows}.ndjson`, { count, order: 'ordered', format: 'ndjson' })
  const { seconds, peak } = await run(programs.plants.argv({ ...bench, rows }), { env: bench.env, watchesMemory: true })
  checkCount(programs.plants, countPlants(bench.store), count)
  removeStore(bench.store)
  rmSync(`${rows}.ndjson`)
  return { lines: count, seconds, peak }
}
