import { join } from 'node:path'
import { plants } from '../import/programs.mjs'
import { writeRows } from '../import/rows.mjs'
import { run } from '../import/run.mjs'
import { checkCount } from '../import/store.mjs'
import { thousands } from '../import/table.mjs'
import { processorOfFamily } from '../processor.mjs'
import { copier } from './copier.mjs'
import { printTable } from './table.mjs'

const programs = {
  plants: {
    title: 'plants export',
    argv: ({ url }) => [process.execPath, plants, 'export', '--store', url, '--out', '/dev/null'],
  },
  copy: copier.to,
}

const columns = [
  { head: 'rows/s', of: ({ rate }) => rate, digits: 0 },
  { head: 'plants export is', of: ({ rate }, all) => all.plants.rate / rate },
  { head: "server's CPU us", of: ({ databaseCpu }) => databaseCpu, digits: 1 },
]

/** Reads a database out into nowhere, in the order of ids. */
export async function measureExport(bench) {
  const database = await bench.server.database({ hasTables: true })
  const rows = join(bench.folder, 'export')
  await writeRows(`${rows}.ndjson`, { count: bench.rows, order: 'random', format: 'ndjson' })
  await run([process.execPath, plants, 'import', `${rows}.ndjson`, '--store', database.url], bench)
  checkCount({ title: 'plants import' }, await database.count(), bench.rows)
  const entries = Object.fromEntries(Object.entries(programs).map(([name, { title }]) => [name, { title, turns: [] }]))
  for (let round = 0; round < bench.rounds; round += 1) {
    for (const [name, program] of Object.entries(programs))
      entries[name].turns.push(await take(program, { rows, database }, bench))
  }
  await database.drop()
  printTable(
    'postgres export',
    `${thousands(bench.rows)} plants that came at random, to nowhere in the order of ids`,
    columns,
    entries,
  )
}

async function take(program, { rows, database }, bench) {
  const before = processorOfFamily(bench.server.pid)
  const { seconds } = await run(program.argv({ rows, url: database.url }), bench)
  await database.sql('SELECT 1') // by then the process behind the program has ended, and counts
  const databaseCpu = ((processorOfFamily(bench.server.pid) - before) * 1e6) / bench.rows
  return { rate: bench.rows / seconds, databaseCpu }
}
