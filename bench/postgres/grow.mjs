import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { print, printColumns, textOf } from '../figures.mjs'
import { plants } from '../import/programs.mjs'
import { writeRows } from '../import/rows.mjs'
import { run } from '../import/run.mjs'
import { checkCount } from '../import/store.mjs'
import { thousands } from '../import/table.mjs'

const million = 1_000_000
const millions = 10

/** Imports a million after the other, and looks at what they take. */
export async function measureGrowth(bench) {
  for (const order of ['ordered', 'random']) await growInOrder(order, bench)
}

async function growInOrder(order, bench) {
  const database = await bench.server.database()
  const lines = []
  for (let index = 1; index <= millions; index += 1) {
    const rate = await takeMillion(order, index, database, bench)
    lines.push([
      thousands(index * million),
      thousands(rate),
      ...(await bytesOf(database, index * million)).map((size) => textOf(size, 1)),
    ])
  }
  await database.drop()
  print(
    `Ids ${order === 'ordered' ? 'in order' : 'at random'}, a million imported after the other; bytes are those of a plant`,
  )
  printColumns([['plants', 'rows/s', 'table', 'index of ids', 'index of keys', 'in all'], ...lines])
  print('')
}

/** Rows a second. */
async function takeMillion(order, index, database, bench) {
  const path = join(bench.folder, 'grow.ndjson')
  await writeRows(path, {
    count: millions * million,
    from: (index - 1) * million,
    most: million,
    order,
    format: 'ndjson',
  })
  const { seconds } = await run([process.execPath, plants, 'import', path, '--store', database.url], bench)
  rmSync(path)
  checkCount({ title: 'plants import' }, await database.count(), index * million)
  return million / seconds
}

/** Of a plant: in the table, in the index of ids, in that of keys, and in all. */
export async function bytesOf(database, count) {
  const sizes = ["pg_table_size('plant_store.plants')", "pg_relation_size('plant_store.plants_pkey')"]
    .concat(["pg_relation_size('plant_store.plants_idempotency_key')", "pg_total_relation_size('plant_store.plants')"])
    .map((size, index) => `${size}::float8 AS size${index}`)
  const [row] = await database.sql(`SELECT ${sizes}`)
  return Object.values(row).map((size) => size / count)
}
