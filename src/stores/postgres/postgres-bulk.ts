import { pipeline } from 'node:stream/promises'
import { from as copyFrom } from 'pg-copy-streams'
import { textNames } from '../../plant/fields.js'
import { type NewPlant, type PlantPatch, patchedPlant } from '../../plant/plant.js'
import type { PlantRows } from '../../plant/rows.js'
import { incompletePlant, type OnConflict, Outcome, resolveRecord } from '../common/conflict.js'
import type { Batch, CreateManyOptions } from '../common/store.js'
import type { ConnectionPool } from './pool.js'
import type { Client } from './postgres-client.js'
import { driverError, isServerError, leftOut } from './postgres-errors.js'
import {
  barrier,
  begin,
  commitStatement,
  copyStatement,
  getStatement,
  keepCheckpointStatement,
  newAttempt,
  toPlant,
  updateStatement,
} from './sql.js'

/**
 * Uses one transaction, with the checkpoint of the import. The first try assumes that all ids are free, which saves a
 * lookup: otherwise COPY fails, and the next try looks them up.
 */
export async function createRows(connections: ConnectionPool, batch: Batch, options: CreateManyOptions): Promise<void> {
  const { rows, order, outcomes } = batch
  const { checkpoint, onProgress, stop } = options
  const pending = [...(order ?? outcomes.keys())].filter((row) => outcomes[row] === Outcome.pending)
  if (pending.length === 0 || stop.aborted) return
  const setAll = (outcome: Outcome) => {
    for (const row of pending) outcomes[row] = outcome
  }
  const areComplete = pending.every((row) => rows.isComplete(row))
  try {
    await transact(connections, stop, async (transaction, isFirst) => {
      if (isFirst && areComplete) {
        for (let from = 0; from < pending.length; from += rowsAtOnce) {
          await copy(transaction, patchesOf(rows, pending.slice(from, from + rowsAtOnce)))
        }
        setAll(Outcome.created)
      } else {
        setAll(Outcome.pending)
        await resolveRows(transaction, batch, pending, options)
      }
      const state = checkpoint?.()
      if (state) await transaction.client.ask(keepCheckpointStatement(state))
    })
    onProgress()
  } catch (error) {
    setAll(Outcome.pending)
    if (!stop.aborted || error !== stop.reason) throw error
  }
}

/** The timeout applies to each statement. */
const rowsAtOnce = 65_536

function* patchesOf(rows: PlantRows, pending: number[]): Iterable<PlantPatch> {
  for (const row of pending) yield rows.at(row)
}

async function resolveRows(
  transaction: Transaction,
  batch: Batch,
  pending: number[],
  options: CreateManyOptions,
): Promise<void> {
  const { rows, outcomes, rejections } = batch
  const ids = pending.map((row) => rows.idAt(row))
  const stored = await find(transaction, ids)
  const seen = new Map<bigint, NewPlant | undefined>()
  const created: NewPlant[] = []
  const changed = new Map<bigint, PlantPatch>()
  for (const row of pending) {
    const patch = rows.at(row)
    const found = seen.get(patch.id) ?? stored.get(patch.id)
    const { outcome, plant } = resolveRecord(options, patch, found === 'ours' ? undefined : found)
    outcomes[row] = outcome
    if (outcome === Outcome.rejected) rejections.set(row, incompletePlant(patch))
    else seen.set(patch.id, plant)
    if (outcome === Outcome.created && plant && !found) created.push(plant)
    if (outcome === Outcome.updated) changed.set(patch.id, { ...changed.get(patch.id), ...patch })
    if (options.stopsAtReject && outcome >= Outcome.exists) break
  }
  await write(transaction, created, [...changed.values()])
}

/** See `StagedStore`. */
export async function createAll(
  connections: ConnectionPool,
  pages: () => Iterable<PlantPatch[]>,
  onConflict: OnConflict,
): Promise<void> {
  const { signal } = connections.options.clock
  await transact(connections, signal, async (transaction) => {
    for (const patches of pages()) {
      signal.throwIfAborted()
      const ids = patches.map(({ id }) => id)
      const stored = await find(transaction, ids)
      const created = patches.flatMap((patch) => (!stored.has(patch.id) && patchedPlant(patch)) || [])
      const changed = patches.filter((patch) => {
        const found = stored.get(patch.id)
        return found === undefined
          ? !patchedPlant(patch) && onConflict(patch, undefined)
          : found !== 'ours' && onConflict(patch, found)
      })
      await write(transaction, created, changed)
    }
  })
}

interface Transaction {
  client: Client
  connections: ConnectionPool
  attempt: bigint
}

/** Repeats the transaction as a whole when another writer has created one of the ids meanwhile. */
async function transact(
  connections: ConnectionPool,
  signal: AbortSignal,
  action: (transaction: Transaction, isFirst: boolean) => Promise<void>,
): Promise<void> {
  const attempt = newAttempt()
  const limits = { ...connections.limits(), signal }
  await connections.run(async (client, { tries, isLost }) => {
    try {
      await client.ask(begin)
      await action({ client, connections, attempt }, tries === 0)
      // Rows of a commit whose response was lost may not be on the standbys yet. This commit waits until they are.
      if (isLost) await client.ask({ text: barrier })
      await client.commit(commitStatement)
    } catch (error) {
      if (isServerError(error)) await client.ask({ text: 'ROLLBACK' }).catch(() => undefined) // must not hide the error
      throw error
    }
  }, limits)
}

/** `ours` was stored by this transaction, in a commit whose response was lost. */
async function find({ client, connections, attempt }: Transaction, ids: bigint[]) {
  connections.setDeadline(client)
  const found = await client.ask(getStatement(ids))
  return new Map<bigint, NewPlant | 'ours'>(
    found.map((row) => {
      const plant = toPlant(row)
      return [plant.id, row.at(-1) === String(attempt) ? 'ours' : plant]
    }),
  )
}

async function write(transaction: Transaction, created: NewPlant[], changed: PlantPatch[]): Promise<void> {
  created.sort((a, b) => (a.id < b.id ? -1 : 1)) // as all writers do, which prevents deadlocks
  if (created.length > 0) await copy(transaction, created)
  if (changed.length > 0) await transaction.client.ask(updateStatement(changed))
}

/** COPY is by far the fastest way. It fails if one of the ids exists. */
async function copy({ client, connections, attempt }: Transaction, plants: Iterable<PlantPatch>): Promise<void> {
  connections.setDeadline(client)
  const stream = client.query(copyFrom(copyStatement))
  let count = 0
  function* pieces() {
    let piece = ''
    for (const plant of plants) {
      count += 1
      piece += lineOf(plant, attempt)
      if (piece.length < pieceSize) continue
      yield piece
      piece = ''
    }
    yield piece
  }
  await pipeline(pieces, stream).catch((error: unknown) => {
    throw driverError(error)
  })
  if (stream.rowCount !== count) throw leftOut(connections.account.address)
}

/** The server processes a piece while the next is encoded. */
const pieceSize = 65_536

/** A row for `copyStatement`, in PostgreSQL's CSV, where NULL is an empty cell without quotes. */
function lineOf(plant: PlantPatch, attempt: bigint): string {
  let line = `${plant.id},${attempt}`
  for (const name of textNames) {
    const text = plant[name]
    line += text == null ? ',' : `,"${text.includes('"') ? text.replaceAll('"', '""') : text}"`
  }
  return `${line}\n`
}
