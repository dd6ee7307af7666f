import { peers } from '../peers.mjs'
import { bytesOf } from './grow.mjs'
import { printTable } from './table.mjs'
import { underLoad } from './turn.mjs'

const million = 1_000_000
const few = 2000

/**
 * What callers choose: whether ids come in order or at random, and whether there are keys, which then come at random.
 */
const shapes = {
  ordered: { title: 'ids in order', id: 'n', orders: {} },
  keyed: { title: 'ids in order, with keys', id: 'n', orders: { hasKeys: true } },
  random: {
    title: 'ids at random, with keys',
    id: `1000000000000000 + abs(hashint8extended(n, 0) % 8000000000000000)`, // the range that load.mjs has
    orders: { hasKeys: true, isRandom: true },
  },
}

const columns = [
  { head: 'creates/s', of: ({ rate }) => rate, digits: 0 },
  { head: 'CPU us', of: ({ cpu }) => cpu, digits: 1 },
  { head: "server's", of: ({ databaseCpu }) => databaseCpu, digits: 1 },
  { head: 'a commit', of: ({ perCommit }) => perCommit, digits: 0 },
  { head: 'table B', of: ({ table }) => table, digits: 0 },
  { head: 'ids B', of: ({ ids }) => ids, digits: 0 },
  { head: 'keys B', of: ({ keys }) => keys, digits: 0 },
  { head: 'WAL B', of: ({ wal }) => wal, digits: 0 },
  { head: 'with pages', of: ({ walWithPages }) => walWithPages, digits: 0 },
  { head: 'others %', of: ({ others }) => others * 100, digits: 0 },
]

/**
 * What a create and a plant take in a table of a million. The first creates after a checkpoint write whole pages to the
 * WAL.
 */
export async function measureCapacity(bench) {
  const entries = Object.fromEntries(Object.entries(shapes).map(([name, { title }]) => [name, { title, turns: [] }]))
  for (let round = 0; round < bench.rounds; round += 1)
    for (const [name, shape] of Object.entries(shapes)) entries[name].turns.push(await take(shape, bench))
  printTable(
    'postgres capacity',
    `In a table of a million; WAL of ${few} creates without whole pages, and with them after a checkpoint`,
    columns,
    entries,
  )
}

async function take({ id, orders }, bench) {
  const { admin, database: make } = bench.server
  const database = await make({ hasTables: true })
  const key = orders.hasKeys ? 'md5(n::text)::uuid::text' : 'NULL'
  await database.sql(`INSERT INTO plant_store.plants (id, name, tag, idempotency_key)
    SELECT ${id}, 'Boston Fern', 'shade', ${key} FROM generate_series(1, ${million}) AS n`)
  await database.sql('VACUUM plant_store.plants') // which would else write to the WAL meanwhile
  const [table, ids, keys] = await bytesOf(database, million)
  await admin('CHECKPOINT')
  const { wal: walWithPages } = await create(database, bench, { ...orders, count: few })
  const found = await create(database, bench, orders)
  await admin('ALTER SYSTEM SET full_page_writes = off')
  await admin('SELECT pg_reload_conf()')
  const { wal } = await create(database, bench, { ...orders, count: few })
  await admin('ALTER SYSTEM RESET full_page_writes')
  await admin('SELECT pg_reload_conf()')
  await database.drop()
  return { ...found, table, ids, keys, wal, walWithPages }
}

/** Bytes of WAL of a create, and creates in a commit, besides what `load` finds. */
async function create(database, bench, orders) {
  const before = await database.count()
  const [start] = await database.sql(position)
  const countPlants = async () => (await database.count()) - before
  const found = await underLoad(peers.serve, { store: database.url, countPlants }, bench, orders)
  const [end] = await database.sql(position)
  return {
    ...found,
    wal: (end.wal - start.wal) / found.acknowledged,
    perCommit: found.acknowledged / (end.commits - start.commits),
  }
}

const position = `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS wal,
  pg_snapshot_xmax(pg_current_snapshot())::text::float8 AS commits`
