import type { Call, ConnectionPool } from './pool.js'
import type { Connection } from './postgres-connection.js'

interface Batch<Item, Result> {
  items: Item[]
  characters: number
  result: Promise<Result>
}

/**
 * Calls that come before a connection is free share it, and a statement. Several batches run concurrently.
 *
 * @param perform releases the connection
 * @returns what adds an item to a batch, and resolves with the result of the batch and the index of the item in it
 */
export function batching<Item, Result>(
  pool: ConnectionPool,
  { maxItems, maxCharacters = Infinity }: { maxItems: number; maxCharacters?: number },
  perform: (connection: Connection, items: Item[], call: Call) => Promise<Result>,
) {
  let next: Batch<Item, Result> | undefined

  const send = async (items: Item[]): Promise<Result> => {
    const call = pool.newCall()
    await new Promise(setImmediate) // for simultaneous calls
    return pool.retry(call, async () => {
      const connection = await pool.lease(call).finally(() => {
        if (next?.items === items) next = undefined
      })
      return perform(connection, items, call)
    })
  }

  const begin = (): Batch<Item, Result> => {
    const items: Item[] = []
    return { items, characters: 0, result: send(items) }
  }

  return async (item: Item, characters = 0): Promise<{ result: Result; index: number }> => {
    next ??= begin()
    const batch = next
    const index = batch.items.push(item) - 1
    batch.characters += characters
    if (batch.items.length >= maxItems || batch.characters > maxCharacters) next = undefined
    return { result: await batch.result, index }
  }
}
