import { join } from 'node:path'
import postgres from 'postgres'
import { password } from './cluster.js'

export type Row = Record<string, unknown>

/** Where a server's socket is. */
export interface Place {
  socketFolder: string
  port: number
}

/** Runs one statement, or several, over a connection of its own, and gives the rows of the last. Each int8 is a bigint. */
export async function query(place: Place, user: string, database: string, text: string): Promise<Row[]> {
  const client = clientOf(place, user, database)
  try {
    const result = await client.unsafe(text)
    return [...lastOf(result)]
  } finally {
    await client.end()
  }
}

/**
 * Runs a statement as the superuser in a transaction that stays open, with all that it locks.
 *
 * @returns what ends it, by a rollback when nothing else is said
 */
export async function hold(place: Place, database: string, text: string): Promise<(how?: 'COMMIT') => Promise<void>> {
  const client = clientOf(place, 'postgres', database)
  await client.unsafe(`BEGIN; ${text}`)
  return async (how) => {
    await client.unsafe(how ?? 'ROLLBACK')
    await client.end()
  }
}

function clientOf({ socketFolder, port }: Place, user: string, database: string): postgres.Sql<{ bigint: bigint }> {
  const path = join(socketFolder, `.s.PGSQL.${port}`)
  const types = { bigint: postgres.BigInt }
  return postgres({ path, user, database, password, types, max: 1, fetch_types: false, onnotice: () => undefined })
}

/** Several statements have a list of results, one has its rows. */
function lastOf(result: Row[] | Row[][]): Row[] {
  const last = result.at(-1)
  return Array.isArray(last) ? last : (result as Row[])
}
