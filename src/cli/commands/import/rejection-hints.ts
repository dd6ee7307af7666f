/*
 * Chooses the hint of an import that has rejected records. Often all records are rejected for one
 * cause, and then one option, or one change of the input, helps for all of them.
 */

import type { RejectedRecord } from '../../../import/format-rejects.js'
import type { ImportPlan } from '../../../import/inputs.js'
import { quoteWord } from '../../../platform/shell.js'
import type { RejectionCause } from '../../../stores/change.js'

type Cause = RejectionCause | 'conflict'

export class RejectionHints {
  readonly #plan: ImportPlan
  /** The file of the first record that was rejected for each cause. */
  readonly #files = new Map<Cause, string>()
  #explainedCount = 0

  constructor(plan: ImportPlan) {
    this.#plan = plan
  }

  /** @param file the name of the input, for commands */
  noteRejections(rejections: readonly RejectedRecord[], file: string): void {
    for (const { error, rejectionCause } of rejections) {
      const cause = rejectionCause ?? (error === 409 ? 'conflict' : undefined)
      if (cause === undefined) continue
      // A row with surplus cells must be corrected like a record that no cause explains.
      if (cause !== 'surplusCells') this.#explainedCount += 1
      if (!this.#files.has(cause)) this.#files.set(cause, file)
    }
  }

  /**
   * Returns a hint for each cause.
   *
   * @param rejectedCount the number of records that were rejected, also by an interrupted run
   * @param isNothingStored whether all records were rejected
   * @param otherHint the hint for records that no cause explains
   */
  chooseHint(rejectedCount: number, isNothingStored: boolean, otherHint: string): string {
    const causes = [...this.#files]
    // An id that is wrong in one record of many is an error in that record.
    const areAllExplained = this.#explainedCount === rejectedCount
    const isCauseOfAll = areAllExplained && isNothingStored && causes.length === 1
    const hints = causes.map(([cause, file]) => this.#describe(cause, file, isCauseOfAll))
    const isExplained = areAllExplained && !hints.includes(undefined)
    return [...hints, isExplained ? undefined : otherHint].filter(Boolean).join('. ')
  }

  #describe(cause: Cause, file: string, isCauseOfAll: boolean): string | undefined {
    const { idFrom, map } = this.#plan
    switch (cause) {
      case 'conflict':
        if (idFrom !== undefined) return undefined
        return 'To keep or change plants that exist, add --if-exists skip or --if-exists update'
      case 'unreadableConflict':
        return idFrom === undefined ? unreadableConflictHint : undefined
      case 'surplusCells':
        return 'Put each cell that contains the delimiter in double quotes'
      case 'repeatedId':
        return 'Where an id occurs twice, give each plant an id of its own, or delete one of the records'
      case 'generatedId':
        return this.#describeGeneratedId()
      case 'missingId':
        return 'To generate ids for plants without one, add --id-from next'
      case 'quotedId':
        return describeUnquoting(file, map.id || 'id')
      case 'otherId':
        if (!isCauseOfAll || map.id) return undefined
        return `To ignore invalid ids, add --map id=${idFrom === undefined ? ' --id-from next' : ''}`
      case 'newName':
        return 'To create plants with new names, add --id-from next'
      case 'commonName':
        return 'If several plants have the name, put the id of the right one into a column or key id'
    }
  }

  /** The ids after the largest one are free, whatever ids the store and the input have. */
  #describeGeneratedId(): string | undefined {
    const { idFrom, dryRun, atomic, rejects } = this.#plan
    if (idFrom === undefined || idFrom === 'next') return undefined
    if (dryRun || atomic) return `Replace --id-from ${idFrom} by --id-from next`
    return `Import ${rejects ?? 'only the rejected records'} with --id-from next, and not ${idFrom}`
  }
}

const unreadableConflictHint =
  'The service does not let the token read plants, so a record is not compared with the plant ' +
  'that has its id. To skip plants that exist, add --if-exists skip, or use a token that may read'

/** Describes how quotes around the ids of JSON are removed. `jq` would round large ids. */
function describeUnquoting(file: string, key: string): string {
  if (!/^\w+$/.test(key) || file.endsWith('.gz'))
    return 'In JSON, write ids as numbers, without quotes'
  const pattern = key === 'id' ? '[iI][dD]' : key
  const command = `sed -E 's/("${pattern}" *: *)"(-?[0-9]+)"/\\1\\2/g'`
  const pipeAdvice = 'To write ids as numbers, as JSON needs them, pipe'
  if (file === 'stdin') return `${pipeAdvice} the input through this first: ${command}`
  return `${pipeAdvice} this into the same command, with - instead of ${file}: ${command} ${quoteWord(file)}`
}
