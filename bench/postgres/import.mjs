import { join } from 'node:path'
import { plants } from '../import/programs.mjs'
import { writeRows } from '../import/rows.mjs'
import { run } from '../import/run.mjs'
import { checkCount } from '../import/store.mjs'
import { thousands } from '../import/table.mjs'
import { processorOfFamily } from '../processor.mjs'
import { copier } from './copier.mjs'
import { printTable } from './table.mjs'

const singleRows = 10_000 // which are enough for a statement a row

const programs = {
  plants: {
    title: 'plants import',
    argv: ({ rows, url }) => [process.execPath, plants, 'import', `${rows}.ndjson`, '--store', url],
  },
  copy: copier.from,
  single: {
    title: 'a statement a row, prepared',
    most: singleRows,
    argv: ({ rows, url }) => [
      process.execPath,
      join(import.meta.dirname, 'single.mjs'),
      url,
      `${rows}.ndjson`,
      String(singleRows),
    ],
  },
}

const columns = [
  { head: 'rows/s', of: ({ rate }) => rate, digits: 0 },
  { head: 'plants import is', of: ({ rate }, all) => all.plants.rate / rate },
  { head: "server's CPU us", of: ({ databaseCpu }) => databaseCpu, digits: 1 },
]

const bars = [
  { what: 'plants import / COPY', least: 0.5, of: ({ plants: ours, copy }) => ours.rate / copy.rate },
  { what: 'plants import / a statement a row', least: 10, of: ({ plants: ours, single }) => ours.rate / single.rate },
]

/** Brings the same rows into new databases. */
export async function measureImports(order, bench) {
  const rows = join(bench.folder, order)
  for (const format of ['ndjson', 'tsv']) await writeRows(`${rows}.${format}`, { count: bench.rows, order, format })
  const entries = Object.fromEntries(Object.entries(programs).map(([name, { title }]) => [name, { title, turns: [] }]))
  for (let round = 0; round < bench.rounds; round += 1) {
    for (const [name, program] of Object.entries(programs)) entries[name].turns.push(await take(program, rows, bench))
  }
  printTable(
    `postgres ${order}`,
    `${thousands(bench.rows)} plants, ids ${order === 'ordered' ? 'in order' : 'at random'}, into an empty database`,
    columns,
    entries,
    bars,
  )
}

/** Rows a second of one run. */
async function take(program, rows, bench) {
  const count = Math.min(bench.rows, program.most ?? Infinity)
  const database = await bench.server.database({ hasTables: true })
  const before = processorOfFamily(bench.server.pid)
  const { seconds } = await run(program.argv({ rows, url: database.url }), bench)
  await database.sql('SELECT 1') // by then the process behind the program has ended, and counts
  const databaseCpu = ((processorOfFamily(bench.server.pid) - before) * 1e6) / count
  checkCount(program, await database.count(), count)
  await database.drop()
  return { rate: count / seconds, databaseCpu }
}
