/* Says what became of each record of a chunk, from the outcomes of the changes. */
import { assertDefined } from '../errors.js'
import type { Chunk } from '../formats/chunk.js'
import { haveEqualNameAndTag } from '../plant/plant.js'
import { getTargetId, type Outcome } from '../stores/change.js'
import type { Counts } from './counts.js'
import type { RejectedRecord } from './format-rejects.js'
import type { MappedChange } from './mapped-change.js'
import type { RecordOutcome, RecordProblem } from './rejection-cause.js'

/**
 * Returns an outcome for each record of a chunk. A record that could not be mapped to a change is
 * rejected. Any other record has the outcome of its change.
 *
 * @param results for each record, its change, or the reason why it has none
 * @param outcomes the outcomes of the changes
 */
export function mergeOutcomes(
  chunk: Chunk,
  results: readonly (MappedChange | RecordProblem)[],
  outcomes: readonly Outcome[],
): RecordOutcome[] {
  let changeCount = 0
  const mergedOutcomes = results.map((result) => {
    if ('error' in result) return rejectRecord(result)
    const outcome = assertDefined(outcomes[changeCount])
    changeCount += 1
    const isUnreadable = 'problem' in outcome && outcome.problem.isUnreadable
    return isUnreadable ? rejectRecord(outcome.problem, 'unreadableConflict') : outcome
  })
  return explainConflicts(mergedOutcomes, results, chunk)
}

function rejectRecord(
  problem: RecordProblem,
  rejectionCause = problem.rejectionCause,
): RecordOutcome {
  return { type: 'rejected', problem: { ...problem, rejectionCause } }
}

/**
 * Says of a conflict that the id was generated, or that the plant with the id is that of an earlier
 * record of the chunk. Whether an earlier chunk has the id is not known: to remember all ids would
 * need too much memory.
 */
function explainConflicts(
  outcomes: RecordOutcome[],
  results: readonly (MappedChange | RecordProblem)[],
  { lines }: Chunk,
): RecordOutcome[] {
  if (!outcomes.some(isConflict)) return outcomes
  // A repeated import skips what it has created before, and says the same.
  const firstLines = new Map<bigint, number>()
  return outcomes.map((outcome, index) => {
    const result = assertDefined(results[index])
    if ('error' in result) return outcome
    const id = getTargetId(result)
    const isStored = outcome.type === 'created' || outcome.type === 'skipped'
    if (isStored && !firstLines.has(id)) firstLines.set(id, assertDefined(lines[index]))
    if (result.isGenerated) return explainGeneratedId(outcome, id)
    const firstLine = firstLines.get(id)
    if (firstLine === undefined || !isConflict(outcome)) return outcome
    return explainRepetition(outcome, result, firstLine)
  })
}

/** @param firstLine the line of the first record that equals the plant of the change */
function explainRepetition(
  { problem }: Extract<RecordOutcome, { problem: RecordProblem }>,
  change: MappedChange,
  firstLine: number,
): RecordOutcome {
  if (change.isFoundByName) {
    const message = `${problem.message}; it is the plant of line ${firstLine}`
    return rejectRecord({ ...problem, message }, 'repeatedName')
  }
  const message = `The id ${getTargetId(change)} also occurs in line ${firstLine}, with a different plant`
  return rejectRecord({ ...problem, message }, 'repeatedId')
}

/**
 * Says of a conflict that the record has no id, so that nobody looks for the id in the input. If
 * the conflict has a cause already, the plant with the id may be that of the record.
 */
function explainGeneratedId(outcome: RecordOutcome, id: bigint): RecordOutcome {
  if (!isConflict(outcome) || outcome.problem.rejectionCause !== undefined) return outcome
  const message = `The record has no id, and another plant has the generated id ${id}`
  return rejectRecord({ ...outcome.problem, message }, 'generatedId')
}

function isConflict(
  outcome: RecordOutcome,
): outcome is Extract<RecordOutcome, { problem: RecordProblem }> {
  return outcome.type === 'rejected' && outcome.problem.kind === 'conflict'
}

/** Whether a service has said what became of the record. */
export function isAnswered({ type }: RecordOutcome): boolean {
  return type !== 'notSent' && type !== 'unknown'
}

/** @param outcomes for each record of the chunk */
export function findRejections(
  { records, lines }: Chunk,
  outcomes: readonly RecordOutcome[],
): RejectedRecord[] {
  const rejections: RejectedRecord[] = []
  for (const [index, outcome] of outcomes.entries()) {
    if (outcome.type !== 'rejected') continue
    const { kind, error, message, rejectionCause } = outcome.problem
    rejections.push({
      line: assertDefined(lines[index]),
      raw: assertDefined(records[index]),
      kind,
      error,
      message,
      rejectionCause,
    })
  }
  return rejections
}

export function addOutcomes(counts: Counts, outcomes: readonly RecordOutcome[]): void {
  for (const outcome of outcomes)
    if (outcome.type === 'rejected') {
      const { error } = outcome.problem
      counts.rejected[error] = (counts.rejected[error] ?? 0) + 1
    } else {
      const type = findCountedType(outcome)
      if (type !== undefined) counts[type] += 1
    }
}

/**
 * An update that changes nothing counts as skipped, and so does a create that an earlier run has
 * sent.
 */
function findCountedType(
  outcome: RecordOutcome,
): 'created' | 'updated' | 'skipped' | 'unknown' | undefined {
  switch (outcome.type) {
    case 'created':
      return outcome.isReplayed ? 'skipped' : 'created'
    case 'updated':
      return outcome.before && haveEqualNameAndTag(outcome.plant, outcome.before)
        ? 'skipped'
        : 'updated'
    case 'skipped':
    case 'unknown':
      return outcome.type
    default:
      return undefined
  }
}
