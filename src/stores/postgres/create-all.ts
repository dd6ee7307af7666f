import type { NewPlant } from '../../plant/plant.js'
import type { PostgresAddress } from '../address.js'
import type { OnConflict } from '../conflict.js'
import { isRefusal, LeftOutError, lostCommit, mostInVain } from './failure.js'
import { untilDone } from './retry.js'
import { Asking, type Use } from './session.js'
import { barrierStatement, durabilityCheck, getManyStatement, insertStatement, newAttempt, toPlant, updateStatement } from './sql.js'

/**
 * Creates plants in one transaction, all of them or none.
 *
 * @param pages gives them in the order of their ids, each time anew
 * @throws {PlantsError} what `onConflict` throws; `unavailable` when nothing was stored; `unknownOutcome` when that could not be found out
 */
export async function createAll(use: Use, pages: () => Iterable<NewPlant[]>, onConflict: OnConflict): Promise<void> {
  const { clock, timeout, allowAsyncCommit } = use.options
  const attempt = newAttempt()
  const turn = { deadline: clock.now() + timeout, signal: clock.signal }
  let isSent = false
  const once = async () => {
    const asking = await Asking.begin(use, turn)
    let isDone = false
    try {
      await asking.ask('BEGIN')
      for (const page of pages()) {
        clock.signal.throwIfAborted()
        await createPage(asking, page, { address: use.account.address, attempt, onConflict })
      }
      const mark = isSent ? `${barrierStatement()};` : ''
      isSent = true
      await asking.ask(`${durabilityCheck(allowAsyncCommit)}; ${mark} COMMIT`).catch((error: unknown) => {
        isSent = !isRefusal(error)
        throw error
      })
      isDone = true
    } finally {
      asking.end(isDone)
    }
  }
  await untilDone(turn, { account: use.account, clock }, once).catch((error: unknown) => {
    throw isSent ? lostCommit(use.account.address, error) : error
  })
}

interface PageOptions {
  address: PostgresAddress
  attempt: bigint
  onConflict: OnConflict
}

/** Creates those that are not there, and has the others judged, but for those of a try before this one. */
async function createPage(asking: Asking, page: NewPlant[], { address, attempt, onConflict }: PageOptions): Promise<void> {
  let left = page
  for (let inVain = 0; left.length > 0; ) {
    const entries = left.map((plant) => ({ plant, key: undefined }))
    const created = new Set((await asking.ask(insertStatement(entries, attempt, true))).map(([id]) => id))
    const others = left.filter(({ id }) => !created.has(String(id)))
    if (others.length === 0) return
    const rows = await asking.ask(getManyStatement(others.map(({ id }) => id)))
    const there = new Map(rows.map((row) => [row[0], row]))
    const changed = others.filter((plant) => {
      const row = there.get(String(plant.id))
      const old = row && row.at(-1) !== String(attempt) ? toPlant(row) : undefined
      return old && onConflict(plant, old)
    })
    if (changed.length > 0) await asking.ask(updateStatement(changed))
    const gone = others.filter(({ id }) => !there.has(String(id))) // which were deleted a moment ago
    inVain += Number(gone.length === left.length)
    if (inVain === mostInVain) throw new LeftOutError(address)
    left = gone
  }
}
