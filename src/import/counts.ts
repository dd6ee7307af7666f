/* Counts the records of an import by their outcomes, and the plants that `--sync` deletes. */
import { haveEqualNameAndTag } from '../plant/plant.js'
import type { Outcome } from '../stores/change.js'
import type { RecordOutcome } from './outcomes.js'

/** How many records have each outcome. */
export interface Counts {
  created: number
  updated: number
  skipped: number
  /** How many records were rejected for each `error`, such as `409` for an id that exists. */
  rejected: Record<string, number>
  /** How many records were sent, and have no answer that says whether they are stored. */
  unknown: number
  /** How many plants of the store were deleted, because no record stands for them. */
  deleted: number
  /** How many more plants no record stands for. */
  missing: number
}

export function createCounts(missing = 0): Counts {
  return { created: 0, updated: 0, skipped: 0, rejected: {}, unknown: 0, deleted: 0, missing }
}

export function countRejectedRecords({ rejected }: Counts): number {
  return Object.values(rejected).reduce((sum, count) => sum + count, 0)
}

/** Counts the records of which something is stored. */
export function countStoredRecords({ created, updated }: Counts): number {
  return created + updated
}

/** Counts the records that have an outcome. */
export function countFinishedRecords(counts: Counts): number {
  return countStoredRecords(counts) + counts.skipped + countRejectedRecords(counts)
}

export function addOutcomes(counts: Counts, outcomes: readonly RecordOutcome[]): void {
  for (const outcome of outcomes) {
    if (outcome.type === 'rejected') {
      const { error } = outcome.problem
      counts.rejected[error] = (counts.rejected[error] ?? 0) + 1
      continue
    }
    const type = hasChangedNothing(outcome) ? 'skipped' : outcome.type
    if (type !== 'notSent') counts[type] += 1
  }
}

/** A plant that is gone already counts as deleted. One that was changed since stays missing. */
export function addDeletion(counts: Counts, outcome: Outcome): void {
  if (outcome.type === 'unknown') counts.unknown += 1
  const isGone = outcome.type === 'rejected' && outcome.problem.kind === 'notFound'
  if (outcome.type !== 'deleted' && !isGone) return
  counts.deleted += 1
  counts.missing -= 1
}

/** An update may change nothing, and neither does a create that an earlier run has sent. */
function hasChangedNothing(outcome: RecordOutcome): boolean {
  if (outcome.type === 'created') return outcome.isReplayed === true
  if (outcome.type !== 'updated' || !outcome.before) return false
  return haveEqualNameAndTag(outcome.plant, outcome.before)
}
