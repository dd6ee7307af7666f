import pg from 'pg'
import { password } from './cluster.js'

export type Row = Record<string, unknown>

export interface Place {
  socketFolder: string
  port: number
}

/**
 * Runs one statement, or several, over a connection of its own, and gives the rows of the last. Each int8 is a bigint.
 */
export async function query(
  place: Place,
  user: string,
  database: string,
  text: string,
): Promise<Row[]> {
  const client = await connected(place, user, database)
  try {
    const result: pg.QueryResult<Row> | pg.QueryResult<Row>[] = await client.query<Row>(text)
    return (Array.isArray(result) ? result.at(-1) : result)?.rows ?? []
  } finally {
    await client.end()
  }
}

/**
 * Runs a statement as the superuser in a transaction that stays open, with all that it locks.
 *
 * @returns what ends it, by a rollback when nothing else is said
 */
export async function hold(
  place: Place,
  database: string,
  text: string,
): Promise<(how?: 'COMMIT') => Promise<void>> {
  const client = await connected(place, 'postgres', database)
  await client.query(`BEGIN; ${text}`)
  return async (how) => {
    await client.query(how ?? 'ROLLBACK')
    await client.end()
  }
}

async function connected(
  { socketFolder, port }: Place,
  user: string,
  database: string,
): Promise<pg.Client> {
  const types = new pg.TypeOverrides()
  types.setTypeParser(pg.types.builtins.INT8, BigInt)
  const client = new pg.Client({ host: socketFolder, port, user, database, password, types })
  client.on('error', () => undefined) // of a server that is stopped meanwhile
  await client.connect()
  return client
}
