import { createHash } from 'node:crypto'
import { createReadStream, statSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { installed, plants, programs } from './programs.mjs'
import { writeRows } from './rows.mjs'
import { run } from './run.mjs'
import { checkCount, countPlants, removeStore } from './store.mjs'
import { printRates, thousands } from './table.mjs'

/** Brings the same rows into new files, with each program that is installed. */
export async function measureImports(order, bench) {
  const present = installed(Object.values(programs), bench.env)
  const input = await prepare(order, bench, ['ndjson', 'csv'])
  const entries = present.map(({ title, bar }) => ({ title, bar: bar?.[order](bench.nodeMajor), rates: [] }))
  for (let round = 0; round < bench.rounds; round += 1) {
    for (const [index, program] of present.entries()) entries[index].rates.push(await takeImport(program, input, bench))
  }
  printRates(`import ${order}`, `${titleOf(order, input)}, into a new file`, entries)
}

/** Gives a store back as what it was made from, beside the import that made it. */
export async function measureExport(bench) {
  const input = await prepare('ordered', bench, ['ndjson'])
  const [source, out] = [`${input.rows}.ndjson`, join(bench.folder, 'export.ndjson')]
  const importing = { title: programs.plants.title, bar: 1, rates: [] }
  const exporting = { title: 'plants export --out', rates: [] }
  for (let round = 0; round < bench.rounds; round += 1) {
    importing.rates.push(await takeImport(programs.plants, input, bench, { keeps: true }))
    const { seconds } = await run([bench.node, plants, 'export', '--store', bench.store, '--out', out], bench)
    removeStore(bench.store)
    if ((await digestOf(out)) !== (await digestOf(source)))
      throw new Error('What was exported is not what was imported')
    exporting.rates.push(input.count / seconds)
  }
  printRates('export', `${titleOf('ordered', input)}, into a file and out again`, [exporting, importing])
}

async function prepare(order, { folder, rows: count }, formats) {
  const rows = join(folder, order)
  for (const format of formats) await writeRows(`${rows}.${format}`, { count, order, format })
  return { rows, count }
}

/** Rows a second of one run; the file goes again, unless it is kept. */
async function takeImport(program, { rows, count }, bench, { keeps = false } = {}) {
  const { seconds } = await run(program.argv({ ...bench, rows }), bench)
  if (program.stores) checkCount(program, countPlants(bench.store), count)
  if (!keeps) removeStore(bench.store)
  return count / seconds
}

function titleOf(order, { rows, count }) {
  const size = statSync(`${rows}.ndjson`).size / 1e6
  return `${thousands(count)} plants, ids ${order === 'ordered' ? 'in order' : 'at random'}, ${size.toFixed(1)} MB as NDJSON`
}

async function digestOf(path) {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}
