import { assertDefined, type ErrorKind, PlantsError } from '../../../errors.js'
import { listNames } from '../../../formats/columns.js'
import { InvalidCheckpointError } from '../../../import/checkpoint.js'
import {
  countFinishedRecords,
  countRejectedRecords,
  countStoredRecords,
} from '../../../import/counts.js'
import { describeRejectedRecord, type RejectedRecord } from '../../../import/format-rejects.js'
import type { Importer } from '../../../import/importer.js'
import type { InputNotes } from '../../../import/input-notes.js'
import type { ImportPlan, InputReader } from '../../../import/inputs.js'
import type { Position } from '../../../import/parse-checkpoint.js'
import {
  describeChange,
  describePlant,
  describeUnknownFields,
  ignoreClosedPipe,
  writeStdout,
} from '../../../output/output.js'
import { Progress } from '../../../output/progress.js'
import { formatPlantCount, groupDigits, haveEqualNameAndTag } from '../../../plant/plant.js'
import type { Outcome } from '../../../stores/change.js'
import { hasCapability } from '../../../stores/kinds.js'
import { CheckpointMovedError } from '../../../stores/store.js'
import type { CommandContext } from '../../command-context.js'
import { describeUnreadCells } from '../../describe-unread-cells.js'
import {
  againHint,
  newNamesHint,
  OutcomeHints,
  restartHint,
  skippedSentence,
} from './outcome-hints.js'

/**
 * The number of rejected records, and of changes of a dry run, that are printed for people.
 * Programs get all of them.
 */
const maxShown = 20

/** Prints the progress, the rejected records and the summary of an import. */
export class ImportReport {
  readonly #plan: ImportPlan
  readonly #context: CommandContext
  readonly #progress: Progress
  readonly #hints: OutcomeHints
  #shownRejectionCount = 0
  /** How many rejected records were not printed, because there are too many. */
  #unlistedRejectionCount = 0
  #shownChangeCount = 0

  constructor(plan: ImportPlan, context: CommandContext) {
    const { io, reporter } = context
    this.#plan = plan
    this.#context = context
    this.#progress = new Progress(io, reporter.showsProgress, 0)
    this.#hints = new OutcomeHints(plan)
  }

  async reportChunk(
    outcomes: readonly Outcome[],
    rejections: readonly RejectedRecord[],
    { position: { counts, input }, progress }: Importer,
  ): Promise<void> {
    this.#progress.show({
      done: countFinishedRecords(counts),
      rejected: countRejectedRecords(counts),
      part: progress,
    })
    const { reporter } = this.#context
    const file = assertDefined(this.#plan.inputs[input]).name
    this.#hints.noteRejections(rejections, file)
    const newRejections = this.#omitShownRejections(rejections, file)
    const maxRejections = reporter.isJson ? Infinity : maxShown - this.#shownRejectionCount
    const reportedRejections = newRejections.slice(0, maxRejections)
    this.#shownRejectionCount += reportedRejections.length
    this.#unlistedRejectionCount += newRejections.length - reportedRejections.length
    if (reportedRejections.length > 0) {
      await this.#progress.clear()
      await reporter.reportRejected(
        reportedRejections.map(({ line, error, message }) => ({ error, message, file, line })),
      )
    }
    if (this.#plan.dryRun) await this.#writeChanges(outcomes)
  }

  /** Omits the records that the dialogue has shown. Programs get all rejected records. */
  #omitShownRejections(
    rejections: readonly RejectedRecord[],
    file: string,
  ): readonly RejectedRecord[] {
    const { shownRejections } = this.#plan
    if (shownRejections === undefined || this.#context.reporter.isJson) return rejections
    return rejections.filter(
      ({ line, message }) => !shownRejections.has(describeRejectedRecord(file, line, message)),
    )
  }

  async #writeChanges(outcomes: readonly Outcome[]): Promise<void> {
    const { output, reporter, io } = this.#context
    if (output !== 'text' || reporter.isQuiet) return
    const style = await this.#context.createStreamStyle()
    for (const outcome of outcomes) {
      if (this.#shownChangeCount === maxShown) return
      if (!('plant' in outcome)) continue
      const { plant } = outcome
      const before = outcome.type === 'updated' ? outcome.before : undefined
      if (before && haveEqualNameAndTag(before, plant)) continue
      const line = before
        ? describeChange('Would update', before, plant, style)
        : `Would create ${describePlant(plant, style)}`
      this.#shownChangeCount += 1
      await this.#progress.clear()
      await writeStdout(io, `${line}\n`)
    }
  }

  async reportInputEnd(reader: InputReader, file: string): Promise<void> {
    const { reporter } = this.#context
    // The dialogue has shown these warnings. Programs get them with the other warnings.
    if (this.#plan.hasShownWarnings && !reporter.isJson) return
    const warnings = describeUnreadCells(reader, file, this.#plan)
    if (warnings.length > 0) await this.#progress.clear()
    for (const warning of warnings) await reporter.warn(warning)
  }

  async writeSummary(importer: Importer): Promise<void> {
    await this.#progress.clear()
    const { notes, position } = importer
    const { counts } = position
    const finishedCount = countFinishedRecords(counts)
    if (finishedCount === 0)
      await this.#context.reporter.warn(describeEmptyInput(this.#plan), 'warning')
    await this.#warnOfNotes(notes)

    const { dryRun } = this.#plan
    const { skipped } = counts
    const created = importer.isRolledBack ? 0 : counts.created
    const updated = importer.isRolledBack ? 0 : counts.updated
    const rejected = countRejectedRecords(counts)
    const parts = Object.entries({ created, updated, skipped, rejected })
      .filter(([name, count]) => name === 'created' || count > 0)
      .map(([name, count]) => `${groupDigits(count)} ${name}`)
    const subject = `${dryRun ? 'Dry run of' : 'Read'} ${formatPlantCount(finishedCount)}`
    const reasons = rejected > 0 ? counts.rejected : undefined
    const rejects = findRejectsPath(position)
    // If an outcome is unknown, the import ends without a summary.
    const unknown = 0
    const fields = { dryRun, created, updated, skipped, rejected, reasons, unknown, rejects }
    const isKept = !dryRun && !importer.isRolledBack
    // A reader of stdout that has left must not hide why the import fails after its summary.
    await this.#context
      .printOutcome(fields, `${subject}: ${parts.join(', ')}`, { isKept })
      .catch(ignoreClosedPipe)
  }

  async #warnOfNotes(notes: InputNotes): Promise<void> {
    const { emptyRows } = notes
    if (emptyRows > 0)
      await this.#context.reporter.warn(
        `Skipped ${countRows(emptyRows)} without an id, a name and a tag`,
      )
    await this.#warnOfUnusedOptions(notes)
    await this.#warnOfGuessedHeaders(notes)
    await this.#warnOfMultilineRows(notes)
    await this.#warnOfOtherSheets(notes)
    await this.#warnOfIgnoredCells(notes)
    await this.#warnOfOtherNames(notes)
  }

  async #warnOfUnusedOptions({ unusedOptions }: InputNotes): Promise<void> {
    for (const { file, options } of unusedOptions) {
      const [verb, end] = options.length === 1 ? ['does', 'was'] : ['do', 'were']
      await this.#context.reporter.warn(
        `${options.join(' and ')} ${verb} not apply to ${file}, and ${end} ignored`,
      )
    }
  }

  async #warnOfGuessedHeaders({ guessedHeaders }: InputNotes): Promise<void> {
    for (const { file, header } of guessedHeaders)
      await this.#context.reporter.warn(
        `Line ${header.guessedLine} of ${file} is read as the header: ${listNames(header.names)}. ` +
          'If it is a plant, name the columns with --columns',
      )
  }

  async #warnOfMultilineRows({ multilineRows }: InputNotes): Promise<void> {
    for (const { file, line } of multilineRows)
      await this.#context.reporter.warn(
        `${file}:${line}: A quoted cell spans several lines. ` +
          'If quotes are ordinary characters in this table, add --no-quotes',
      )
  }

  async #warnOfOtherNames({ otherColumns, otherFields }: InputNotes): Promise<void> {
    const { reporter } = this.#context
    if (otherColumns.size > 0)
      await reporter.warn(describeUnknownFields([...otherColumns], 'column'), 'warning')
    if (otherFields.size > 0)
      await reporter.warn(describeUnknownFields([...otherFields]), 'warning')
  }

  async #warnOfOtherSheets({ otherSheets }: InputNotes): Promise<void> {
    for (const { file, sheet } of otherSheets)
      await this.#context.reporter.warn(
        `The sheet ${listNames([sheet])} of ${file} has the columns, too. To import it, add --sheet`,
      )
  }

  async #warnOfIgnoredCells({ surplusRows }: InputNotes): Promise<void> {
    if (surplusRows > 0)
      await this.#context.reporter.warn(
        `Ignored the cells to the right of the header in ${countRows(surplusRows)}`,
      )
  }

  assertComplete(importer: Importer): void {
    const { counts } = importer.position
    const rejectedCount = countRejectedRecords(counts)
    if (rejectedCount === 0) return
    const stopClause = importer.isComplete ? '' : ', and the import stopped there'
    const outcomeClause = this.#plan.atomic ? ', so nothing was changed' : stopClause
    const listClause = this.#describeUnlisted()
    const message = `Rejected ${formatPlantCount(rejectedCount)}${listClause}${outcomeClause}`
    throw new PlantsError('incomplete', message, { hint: this.#chooseHint(importer) })
  }

  #describeUnlisted(): string {
    const count = this.#unlistedRejectionCount
    return count === 0 ? '' : ` (the first ${maxShown} are above, and ${groupDigits(count)} more)`
  }

  #chooseHint({ isComplete, isResumable, position }: Importer): string {
    if (!isComplete && isResumable) return this.#chooseContinueHint()
    const { counts } = position
    return this.#hints.chooseHint({
      rejectedCount: countRejectedRecords(counts),
      isNothingStored: countStoredRecords(counts) + counts.skipped === 0,
      rejects: findRejectsPath(position),
      areAllListed: this.#unlistedRejectionCount === 0,
    })
  }

  /**
   * Adds to an error how many plants are stored, and how to continue. If the input is the cause of
   * the error, the summary is printed before the error.
   */
  async explainFailure(error: unknown, importer: Importer): Promise<unknown> {
    await this.#progress.clear()
    if (!(error instanceof PlantsError) || error.kind === 'internalError') return error
    // Nothing was stored, and the same command would fail again.
    if (error instanceof InvalidCheckpointError) return error
    const { atomic, dryRun } = this.#plan
    const finishedCount = countFinishedRecords(importer.position.counts)
    const storesEachChunk = !atomic && !dryRun
    if (error.kind === 'input' || error.kind === 'usage') {
      if (!storesEachChunk || finishedCount === 0) return error
      await this.writeSummary(importer)
      const hint = [error.hint, this.#chooseRestartHint(importer)].filter(Boolean).join('. ')
      return new PlantsError(error.kind, error.message, { ...error, hint, cause: error })
    }
    const mayHaveStored =
      storesEachChunk && (finishedCount > 0 || this.#mayHaveStoredChunk(error.kind))
    const extent = mayHaveStored
      ? ` after ${formatPlantCount(finishedCount)}`
      : ', nothing was changed'
    const message = error.isInterruption ? error.message + extent : error.message
    const nextHint = mayHaveStored ? this.#chooseNextHint(importer) : chooseRepeatHint(error)
    const hint = [error.hint, nextHint].filter(Boolean).join('. ') || undefined
    return new PlantsError(error.kind, message, { ...error, hint, cause: error })
  }

  /** Whether plants of the chunk that failed may be stored. */
  #mayHaveStoredChunk(kind: ErrorKind): boolean {
    if (kind === 'unknownOutcome') return true
    // At such an address, no create can succeed.
    if (kind === 'accessDenied' || kind === 'rejected') return false
    return !hasCapability(this.#context.address, 'direct')
  }

  /** A part is stored, and the input must be changed, so the import cannot resume. */
  #chooseRestartHint(importer: Importer): string | undefined {
    if (!importer.isResumable) return this.#chooseNextHint(importer)
    // Records with generated ids would be stored again under other ids.
    return this.#plan.idFrom === undefined ? restartHint : undefined
  }

  /** Too many records were rejected: a resumed import does not read these records again. */
  #chooseContinueHint(): string {
    const continueHint = 'To continue without the rejected records, run the same command again'
    if (this.#plan.idFrom !== undefined) return continueHint
    return `${continueHint}. If you correct the input, add --restart. ${skippedSentence}`
  }

  #chooseNextHint({ isResumable }: Importer): string | undefined {
    if (isResumable) return resumeHint
    // Records with generated ids would be stored again under other ids.
    if (this.#plan.idFrom !== undefined && this.#plan.match === undefined) return newNamesHint
    return `To continue, run the command ${againHint}`
  }
}

/** Chooses the second half of a hint, such as `Free some space`, if nothing is stored. */
function chooseRepeatHint(error: PlantsError): string | undefined {
  const { kind, hint } = error
  const isTemporary = kind === 'unavailable' || error instanceof CheckpointMovedError
  // A hint that names an option proposes another command already.
  const isSameCommand = isTemporary && hint !== undefined && !hint.includes('--')
  return isSameCommand ? 'Then run the same command again' : undefined
}

function describeEmptyInput({ inputs: [first, ...others] }: ImportPlan): string {
  return others.length === 0
    ? `${assertDefined(first).name} contains no records`
    : `None of the ${others.length + 1} files contains a record`
}

function countRows(count: number): string {
  return `${groupDigits(count)} ${count === 1 ? 'row' : 'rows'}`
}

function findRejectsPath({ rejects }: Position): string | undefined {
  return rejects?.length ? rejects.path : undefined
}

const resumeHint = 'To resume, run the same command again'
