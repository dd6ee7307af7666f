import type { PlantsError } from '../../platform/errors.js'
import { Outcome } from '../conflict.js'
import type { Batch, CreateManyOptions } from '../store.js'
import { explainDatabase, lostCommit, mayPass } from './failure.js'
import { pause } from './retry.js'
import { Transaction, type Work } from './transaction.js'
import type { Use } from './use.js'

/** Creates the rows of a batch that are pending, some thousands in a transaction. */
export async function createRows(use: Use, batch: Batch, options: CreateManyOptions): Promise<void> {
  const work: Work = { use, batch, options, meetsOthers: false }
  for (let rank = 0; rank < batch.rows.length && !options.stop.aborted; ) {
    const { rows, next } = nextRows(batch, rank)
    rank = next
    if (rows.length === 0) continue
    const isEnd = await createSome(work, rows)
    options.onProgress()
    if (isEnd) return
  }
}

/** bytes of texts, and rows, of a transaction: about a tenth of a second */
const bytesAtOnce = 4_194_304
const rowsAtOnce = 65_536

function nextRows({ rows: plants, order, outcomes }: Batch, from: number) {
  const rows: number[] = []
  let bytes = 0
  let rank = from
  for (; rank < plants.length && rows.length < rowsAtOnce && bytes < bytesAtOnce; rank += 1) {
    const row = order?.[rank] ?? rank
    if (outcomes[row] !== Outcome.pending) continue
    rows.push(row)
    bytes += plants.sizeAt(row)
  }
  return { rows, next: rank }
}

/** Creates rows, again for as long as what fails may pass. True when one was refused that ends it, or when it was told to stop. */
async function createSome(work: Work, rows: number[]): Promise<boolean> {
  const { account, pool, options } = work.use
  const { stop } = work.options
  const attempts: bigint[] = []
  const turn = { deadline: options.clock.now() + options.timeout, signal: stop }
  for (let tries = 0; ; tries += 1) {
    try {
      return await pool.own(turn, (connection) => new Transaction(work, rows, { connection, attempts }).run())
    } catch (error) {
      for (const row of rows) work.batch.outcomes[row] = Outcome.pending
      if (stop.aborted && attempts.length === 0) return true
      const isOver = stop.aborted || options.clock.now() >= turn.deadline
      if (isOver || !mayPass(error)) throw failureOf(error, attempts, account)
    }
    await pause(tries, options.clock)
  }
}

/** What is told: rows that were sent under an attempt may be stored. */
function failureOf(error: unknown, attempts: bigint[], account: Use['account']): PlantsError {
  return attempts.length > 0 ? lostCommit(account.address, error) : explainDatabase(error, account)
}
