/*
 * Computes the result of a chunk from the outcomes of its changes: the rejected records, the counts
 * and the next position.
 */
import { assertDefined } from '../errors.js'
import type { Chunk, FormatReader } from '../formats/chunk.js'
import { haveEqualNameAndTag } from '../plant/plant.js'
import { getTargetId, type Outcome, toError } from '../stores/change.js'
import { movePosition } from './checkpoint.js'
import type { Counts } from './counts.js'
import { formatRejectedRecords, type RejectedRecord } from './format-rejects.js'
import type { MappedChunk } from './map-chunks.js'
import type { MappedChange } from './mapped-change.js'
import type { Position } from './parse-checkpoint.js'
import type { RecordOutcome, RecordProblem } from './rejection-cause.js'

/** The outcomes of a chunk, with the position that follows from them. */
export interface ChunkResult {
  /** The outcome of each record. */
  outcomes: readonly RecordOutcome[]
  rejections: readonly RejectedRecord[]
  /** The position after the chunk. */
  position: Position
}

/**
 * Computes the outcomes of the records of a chunk, and the position after them. It changes nothing,
 * because the transaction of the chunk may be repeated.
 *
 * @param changeOutcomes the outcomes of the changes, in their order
 * @param input.position the position before the chunk
 */
export function computeChunkResult(
  { chunk, results, nextId }: MappedChunk,
  changeOutcomes: readonly Outcome[],
  input: { reader: FormatReader; position: Position },
): ChunkResult {
  const outcomes = explainConflicts(mergeOutcomes(results, changeOutcomes), results, chunk)
  const rejections = findRejections(chunk, outcomes)
  const rejectedRows = input.position.rejects ? formatRejectedRecords(rejections, input.reader) : ''
  const position = {
    ...movePosition(input.position, outcomes.length, rejectedRows),
    counts: addOutcomes(input.position.counts, outcomes),
    nextId: nextId?.toString(),
  }
  return { outcomes, rejections, position }
}

/**
 * Returns an outcome for each record of a chunk. A record that could not be mapped to a change is
 * rejected. Any other record has the outcome of its change.
 *
 * @param results for each record, its change, or the reason why it has none
 * @param outcomes the outcomes of the changes
 * @throws {PlantsError} if the import should end before the chunk counts as finished
 */
function mergeOutcomes(
  results: readonly (MappedChange | RecordProblem)[],
  outcomes: readonly Outcome[],
): RecordOutcome[] {
  const remainingOutcomes = outcomes.values()
  return results.map((result) => {
    if ('error' in result) return rejectRecord(result)
    const outcome = assertDefined(remainingOutcomes.next().value)
    assertAnswered(outcome)
    const isUnreadable = 'problem' in outcome && outcome.problem.isUnreadable
    return isUnreadable ? rejectRecord(outcome.problem, 'unreadableConflict') : outcome
  })
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
  const createdLines = new Map<bigint, number>()
  return outcomes.map((outcome, index) => {
    const result = assertDefined(results[index])
    if ('error' in result) return outcome
    const id = getTargetId(result)
    if (outcome.type === 'created') createdLines.set(id, assertDefined(lines[index]))
    if (result.idSource === 'generated') return explainGeneratedId(outcome, id)
    const firstLine = createdLines.get(id)
    if (firstLine === undefined || !isConflict(outcome)) return outcome
    return explainRepetition(outcome, result, firstLine)
  })
}

/** @param firstLine the line of the record that has created the plant of the change */
function explainRepetition(
  { problem }: Extract<RecordOutcome, { problem: RecordProblem }>,
  change: MappedChange,
  firstLine: number,
): RecordOutcome {
  if (change.isFoundByName) {
    const message = `${problem.message}; it is the plant of line ${firstLine}`
    return rejectRecord({ ...problem, message })
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

/**
 * Ends the import before the chunk counts as finished, if the service was not asked, or gave no
 * answer that can be used. A resumed import sends the chunk again. The idempotency keys then show
 * which of its plants are stored.
 *
 * @throws {PlantsError} why the outcome of the change is not known
 */
function assertAnswered(outcome: RecordOutcome): void {
  if (outcome.type === 'notSent' || outcome.type === 'unknown') throw toError(outcome.problem)
}

/** @param outcomes for each record of the chunk */
function findRejections(
  { records, lines }: Chunk,
  outcomes: readonly RecordOutcome[],
): RejectedRecord[] {
  const rejections: RejectedRecord[] = []
  for (const [index, outcome] of outcomes.entries()) {
    if (!('problem' in outcome)) continue
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

/** Adds outcomes to the counts. An update that changes nothing counts as skipped. */
function addOutcomes(countsBefore: Counts, outcomes: readonly RecordOutcome[]): Counts {
  const counts = { ...countsBefore, rejected: { ...countsBefore.rejected } }
  for (const outcome of outcomes) {
    const { type } = outcome
    if (type === 'rejected') {
      const { error } = outcome.problem
      counts.rejected[error] = (counts.rejected[error] ?? 0) + 1
    } else if (type === 'updated' && outcome.before) {
      counts[haveEqualNameAndTag(outcome.plant, outcome.before) ? 'skipped' : 'updated'] += 1
    } else if (type === 'created' || type === 'updated' || type === 'skipped') counts[type] += 1
  }
  return counts
}
