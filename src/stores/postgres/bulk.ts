import { from as copyFrom } from 'pg-copy-streams'
import { textFields } from '../../plant/fields.js'
import { type NewPlant, type PlantPatch, patchedPlant } from '../../plant/plant.js'
import { isText, missingText, type PlantRows } from '../../plant/rows.js'
import type { PostgresAddress } from '../common/address.js'
import {
  comparesPlants,
  type ExistsPolicy,
  incompletePlant,
  type OnConflict,
  Outcome,
  type Resolution,
  resolveRecord,
} from '../common/conflict.js'
import type { Batch, CreateManyOptions } from '../common/store.js'
import type { Client } from './client.js'
import { driverError, isServerError, LeftOutError, maxIneffective, sqlState } from './errors.js'
import type { ConnectionPool } from './pool.js'
import {
  barrier,
  begin,
  commitStatement,
  copyStatement,
  type Entry,
  getStatement,
  insertStatement,
  keepCheckpointStatement,
  newWriteId,
  pinned,
  toPlant,
  updateStatement,
} from './sql.js'

/**
 * Runs a transaction.
 *
 * @param write returns whether to commit
 * @returns whether it was committed; also false when an id exists. Then the connection can be used again
 */
async function transact(client: Client, write: () => Promise<boolean>): Promise<boolean> {
  try {
    await client.ask(begin())
    const isComplete = await write()
    if (isComplete) await client.commit(commitStatement)
    else await client.ask(rollback)
    return isComplete
  } catch (error) {
    if (!isServerError(error)) throw error
    await client.ask(rollback).catch(() => undefined) // a lost connection must not hide the error
    if (sqlState(error) === uniqueViolation) return false
    throw error
  }
}

const rollback = { text: 'ROLLBACK' }
const uniqueViolation = '23505'

export async function createRows(connections: ConnectionPool, batch: Batch, options: CreateManyOptions): Promise<void> {
  const bulk = new BulkInsert(connections, batch, options)
  for (let rank = 0; rank < batch.rows.length && !options.stop.aborted; ) {
    const { rows, next } = nextRows(batch, rank)
    rank = next
    if (rows.length === 0) continue
    const isEnd = await bulk.create(rows)
    options.onProgress()
    if (isEnd) return
  }
}

/** the maximum bytes of text, and rows, of a transaction: about a tenth of a second */
const bytesAtOnce = 4_194_304
const rowsAtOnce = 65_536

function nextRows({ rows: plants, order, outcomes }: Batch, start: number) {
  const rows: number[] = []
  let bytes = 0
  let rank = start
  for (; rank < plants.length && rows.length < rowsAtOnce && bytes < bytesAtOnce; rank += 1) {
    const row = order?.[rank] ?? rank
    if (outcomes[row] !== Outcome.pending) continue
    rows.push(row)
    bytes += plants.sizeAt(row)
  }
  return { rows, next: rank }
}

/**
 * Creates rows together with the checkpoint of their import, one transaction per chunk. Uses COPY, which is by far the fastest, but creates
 * all rows or none. If some ids exist, looks them up first, and inserts the other rows.
 */
class BulkInsert {
  readonly #connections: ConnectionPool
  readonly #batch: Batch
  readonly #options: CreateManyOptions
  /** whether some ids of the last chunk existed, so that a lookup before COPY pays off */
  #meetsOthers = false

  constructor(connections: ConnectionPool, batch: Batch, options: CreateManyOptions) {
    this.#connections = connections
    this.#batch = batch
    this.#options = options
  }

  /** Creates rows, with retries while errors are transient. Returns true when a rejected row, or the stop signal, ends the batch. */
  async create(rows: number[]): Promise<boolean> {
    const { stop } = this.#options
    const limits = { ...this.#connections.limits(), signal: stop }
    const chunk = { rows, writeId: newWriteId() }
    try {
      return await this.#connections.run(async (client, { tries }) => {
        // COPY writes rows in the order of the file, which can deadlock with other writers. INSERT writes them in order of id, which cannot.
        const mayCopy = tries === 0 && !this.#meetsOthers && rows.every((row) => this.#batch.rows.isComplete(row))
        if (mayCopy && (await this.#transact(client, () => this.#copy(chunk, client)))) return false
        return this.#resolve(chunk, client)
      }, limits)
    } catch (error) {
      this.#reset(rows)
      if (stop.aborted && error === stop.reason) return true
      throw error
    }
  }

  #reset(rows: number[]): void {
    for (const row of rows) this.#batch.outcomes[row] = Outcome.pending
  }

  /** Looks up which ids exist, and writes the other rows, until each has an outcome. Returns true when a rejected row ends the batch. */
  async #resolve(chunk: RowChunk, client: Client): Promise<boolean> {
    for (let before = Infinity, ineffective = 0; ; ) {
      const { free, changed, isEnd } = await this.#lookUp(chunk, client)
      this.#meetsOthers = free.length < chunk.rows.length
      if (free.length + changed.size === 0) {
        await this.#keepCheckpoint(client)
        return isEnd
      }
      ineffective += Number(free.length === before)
      if (ineffective === maxIneffective) throw new LeftOutError(this.#connections.account.address)
      before = free.length
      if (await this.#transact(client, () => this.#insertAndUpdate(free, changed, chunk.writeId, client))) return isEnd
    }
  }

  /** Writes rows, and commits them together with the checkpoint of the import. Returns false if an id exists, so that nothing was stored. */
  #transact(client: Client, write: () => Promise<boolean>): Promise<boolean> {
    return transact(client, async () => {
      const isComplete = await write()
      if (isComplete) await this.#keepCheckpoint(client)
      return isComplete
    })
  }

  async #copy({ rows, writeId }: RowChunk, client: Client): Promise<boolean> {
    const stream = client.query(copyFrom(copyStatement))
    const done = new Promise<void>((resolve, reject) => {
      stream.on('finish', resolve).on('error', (error) => reject(driverError(error)))
    })
    done.catch(() => undefined) // it is awaited below
    for (const piece of copyData(this.#batch.rows, rows, writeId))
      if (!stream.write(piece)) await Promise.race([new Promise((resolve) => stream.once('drain', resolve)), done])
    stream.end()
    await done
    if (stream.rowCount !== rows.length) throw new LeftOutError(this.#connections.account.address)
    for (const row of rows) this.#batch.outcomes[row] = Outcome.created
    return true
  }

  /**
   * Creates the rows whose id is free, then changes the plants that other rows change. Returns false if another writer
   * has meanwhile created one of the ids: the rows are looked up again, since their order matters.
   */
  async #insertAndUpdate(free: number[], changed: Changes, writeId: bigint, client: Client): Promise<boolean> {
    const { rows, outcomes } = this.#batch
    const entries = entriesOf(
      free.map((row) => rows.at(row)),
      writeId,
    )
    entries.sort((a, b) => (a.plant.id < b.plant.id ? -1 : 1))
    if (free.length > 0 && (await client.ask(insertStatement(entries))).length < free.length) return false
    for (const row of free) outcomes[row] = Outcome.created
    if (changed.size > 0) await client.ask(updateStatement([...changed.values()]))
    return true
  }

  async #keepCheckpoint(client: Client): Promise<void> {
    const checkpoint = this.#options.checkpoint?.()
    if (checkpoint) await client.ask(keepCheckpointStatement(checkpoint))
  }

  /**
   * Looks up which ids exist, and sets the outcomes of their rows, up to a rejected row that ends the batch. Returns the rows that are
   * still to be written.
   */
  async #lookUp({ rows: chunk, writeId }: RowChunk, client: Client): Promise<{ free: number[]; changed: Changes; isEnd: boolean }> {
    const { rows, outcomes, rejections } = this.#batch
    const { ifExists, stopsAtReject } = this.#options
    this.#reset(chunk)
    const ids = chunk.map((row) => rows.idAt(row))
    const found = await client.ask(getStatement(ids, comparesPlants(ifExists)))
    // By id: the plant in the table, or from an earlier row. `isOurs` is the row itself, stored by a commit whose response was lost.
    const taken = new Map(
      found.map((row): [string, Existing] => [
        row[0] ?? '',
        { isOurs: row.at(-1) === String(writeId), plant: row[1] == null ? undefined : toPlant(row) },
      ]),
    )
    // Rows of a commit whose response was lost may not be on the standbys yet. A later commit waits until they are.
    if ([...taken.values()].some(({ isOurs }) => isOurs)) await client.ask(pinned(barrier))
    const free: number[] = []
    const changed: Changes = new Map()
    for (const row of chunk) {
      const patch = rows.at(row)
      const id = String(patch.id)
      const existing = taken.get(id)
      const { outcome, plant } = resolve(ifExists, patch, existing)
      const isFree = outcome === Outcome.created && !existing
      outcomes[row] = isFree ? Outcome.pending : outcome
      if (isFree) free.push(row)
      if (outcome === Outcome.updated) changed.set(id, { ...changed.get(id), ...patch })
      if (outcome === Outcome.rejected) rejections.set(row, incompletePlant(patch))
      else taken.set(id, { isOurs: false, plant })
      if (stopsAtReject && outcome >= Outcome.exists) return { free, changed, isEnd: true }
    }
    return { free, changed, isEnd: false }
  }
}

interface RowChunk {
  rows: number[]
  writeId: bigint
}

interface Existing {
  isOurs: boolean
  /** its content, if the policy compares plants */
  plant: NewPlant | undefined
}

function resolve(policy: ExistsPolicy, patch: PlantPatch, existing: Existing | undefined): Resolution {
  if (existing?.isOurs) return { outcome: Outcome.created, plant: patchedPlant(patch) }
  return resolveRecord(policy, patch, existing && (existing.plant ?? true))
}

type Changes = Map<string, PlantPatch>

function entriesOf(patches: PlantPatch[], writeId: bigint): Entry[] {
  const plants = patches.flatMap((patch) => patchedPlant(patch) ?? [])
  return plants.map((plant) => ({ plant, key: undefined, writeId }))
}

/**
 * Creates and changes plants in one transaction, all or none. The timeout applies to each page.
 *
 * @param pages returns the records in ascending order of id, from the beginning with each call
 * @throws {PlantsError} the errors of `onConflict`; `unavailable` when nothing was stored; `unknownOutcome` when that is unknown
 */
export async function createAll(connections: ConnectionPool, pages: () => Iterable<PlantPatch[]>, onConflict: OnConflict): Promise<void> {
  const limits = connections.limits()
  const page = { address: connections.account.address, writeId: newWriteId(), onConflict }
  const createPages = async (client: Client, isLost: boolean) => {
    for (const patches of pages()) {
      limits.signal?.throwIfAborted()
      connections.setDeadline(client, connections.limits().deadline)
      await createPage(client, patches, page)
    }
    connections.setDeadline(client, connections.limits().deadline)
    if (isLost) await client.ask({ text: barrier })
    return true
  }
  await connections.run(async (client, { isLost }) => {
    if (!(await transact(client, () => createPages(client, isLost)))) throw new LeftOutError(page.address)
  }, limits)
}

interface PageOptions {
  address: PostgresAddress
  writeId: bigint
  onConflict: OnConflict
}

/** Creates the plants whose id is free, and calls `onConflict` for the others, except those that an earlier try has stored. */
async function createPage(client: Client, page: PlantPatch[], { address, writeId, onConflict }: PageOptions): Promise<void> {
  let left = page
  for (let ineffective = 0; left.length > 0; ) {
    const created = new Set((await client.ask(insertStatement(entriesOf(left, writeId)))).map(([id]) => id))
    const others = left.filter(({ id }) => !created.has(String(id)))
    if (others.length === 0) return
    const rows = await client.ask(getStatement(others.map(({ id }) => id)))
    const existing = new Map(rows.map((row) => [row[0], row]))
    const changed = others.filter((patch) => {
      const row = existing.get(String(patch.id))
      if (!row) return !patchedPlant(patch) && onConflict(patch, undefined)
      return row.at(-1) !== String(writeId) && onConflict(patch, toPlant(row))
    })
    if (changed.length > 0) await client.ask(updateStatement(changed))
    const gone = others.filter(({ id }) => !existing.has(String(id))) // they were deleted a moment ago
    ineffective += Number(gone.length === left.length)
    if (ineffective === maxIneffective) throw new LeftOutError(address)
    left = gone
  }
}

/**
 * Encodes rows in the binary format of COPY, with the columns id, attempt, and the texts
 * (https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.4), in pieces: the server processes one while the next is encoded.
 */
function* copyData(rows: PlantRows, which: number[], writeId: bigint): Generator<Uint8Array> {
  yield header
  for (let from = 0; from < which.length; from += rowsInPiece) yield pieceOf(rows, which.slice(from, from + rowsInPiece), writeId)
  yield trailer
}

/** about 50 bytes each */
const rowsInPiece = 1024

function pieceOf(rows: PlantRows, which: number[], writeId: bigint): Uint8Array {
  const bytes = Buffer.allocUnsafeSlow(sizeOf(rows, which))
  let at = 0
  for (const row of which) {
    bytes.writeUInt16BE(2 + textFields.length, at)
    bytes.writeUInt32BE(8, at + 2)
    bytes.writeInt32BE(rows.idHigh[row] ?? 0, at + 6)
    bytes.writeUInt32BE(rows.idLow[row] ?? 0, at + 10)
    bytes.writeUInt32BE(8, at + 14)
    bytes.writeBigInt64BE(writeId, at + 18)
    at += 26
    for (const { start, end } of rows.texts) {
      const from = start[row] ?? missingText
      at = isText(from) ? writeText(bytes, at, rows, from, end[row] ?? 0) : bytes.writeInt32BE(-1, at)
    }
  }
  return bytes.subarray(0, at)
}

function sizeOf(rows: PlantRows, which: number[]): number {
  let size = 0
  for (const row of which) size += 26 + 4 * textFields.length + rows.sizeAt(row)
  return size
}

function writeText(bytes: Buffer, start: number, rows: PlantRows, from: number, to: number): number {
  const base = from >= rows.bytes.length ? rows.bytes.length : 0
  const source = from >= rows.bytes.length ? rows.decoded : rows.bytes
  const at = bytes.writeUInt32BE(to - from, start)
  if (to - from > 64) bytes.set(source.subarray(from - base, to - base), at)
  else for (let index = 0; index < to - from; index += 1) bytes[at + index] = source[from - base + index] ?? 0
  return at + to - from
}

const header = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
const trailer = Buffer.from([0xff, 0xff])
