import { PlantsError } from '../../../errors.js'
import {
  type Counts,
  countFinishedRecords,
  countRejectedRecords,
  countStoredRecords,
  createCounts,
} from '../../../import/counts.js'
import type { ImportPlan } from '../../../import/inputs.js'
import type { RejectsFile } from '../../../import/rejects.js'
import type { ImportStep } from '../../../import/run.js'
import { describeIgnoredFields, ignoreClosedPipe } from '../../../output/output.js'
import { Progress } from '../../../output/progress.js'
import { formatPlantCount, groupDigits, invalidPlantLabel } from '../../../plant/plant.js'
import type { CommandContext } from '../../context.js'
import { printOutcome } from '../../print.js'
import {
  type DryRunChanges,
  describeMore,
  maxShownChanges,
  showDryRunChanges,
} from './dry-run-changes.js'
import { chooseOutcomeHint, findHintCause, findMainCause, type HintCause } from './outcome-hints.js'

/** The number of rejected records that are printed for people. Programs get all of them. */
const maxShown = 20

interface ReportOptions {
  rejectsFile?: RejectsFile | undefined
  /** What the dialogue has printed, and the import does not print again. */
  shownLines: Set<string>
  /** Whether the dialogue shows what the import would do. */
  isPreview?: boolean
}

/** Prints the progress, the rejected records and the summary of an import. */
export class ImportReport {
  readonly #rejectsFile: RejectsFile | undefined
  readonly #progress: Progress
  /** The last step; undefined before the first one. */
  #step: ImportStep | undefined
  /** Whether all records have outcomes. */
  isComplete = false
  /** How many records were rejected for each cause. */
  readonly #causeCounts = new Map<HintCause, number>()
  /** The message of the first record that was rejected for each cause. */
  readonly #causeMessages = new Map<HintCause, string>()
  readonly #shownLines: Set<string>
  readonly #isPreview: boolean
  /** How many plants of the store a list lacks that changes the others. */
  #missing = 0
  readonly #maxRejections: number
  #listedRejectionCount = 0
  /** Undefined before the first step. */
  #changes: DryRunChanges | undefined
  /** The command that undoes the import; undefined if there is no copy of the previous contents. */
  #undoCommand: string | undefined

  constructor(
    private readonly plan: ImportPlan,
    private readonly context: CommandContext,
    { rejectsFile, shownLines, isPreview = false }: ReportOptions,
  ) {
    const { io, reporter } = context
    this.#rejectsFile = rejectsFile
    this.#progress = new Progress(io, reporter.showsProgress, 0)
    this.#shownLines = shownLines
    this.#isPreview = isPreview
    const maxForReader = reporter.isJson ? Infinity : maxShown
    this.#maxRejections = isPreview ? maxShownChanges : maxForReader
  }

  /** How many records have each outcome. */
  get counts(): Readonly<Counts> {
    return this.#step?.counts ?? createCounts()
  }

  /** How many rejected records were not printed, because there are too many. */
  get #unlistedRejectionCount(): number {
    return countRejectedRecords(this.counts) - this.#listedRejectionCount
  }

  /** Whether nothing of an import with `--atomic` is stored. */
  get isRolledBack(): boolean {
    const isRejected = countRejectedRecords(this.counts) > 0
    return this.plan.atomic === true && (isRejected || !this.isComplete)
  }

  /** Whether the import has changed the store, or may have. */
  get hasChangedStore(): boolean {
    const { unknown, deleted } = this.counts
    return !this.isRolledBack && countStoredRecords(this.counts) + unknown + deleted > 0
  }

  /** Says how to undo the import, now and with the summary. */
  async announceUndo(command: string): Promise<void> {
    this.#undoCommand = command
    await this.#progress.clear()
    await this.context.reporter.warn(describeUndo(command))
  }

  /** Shows what has become of a chunk. */
  async show(step: ImportStep): Promise<void> {
    const { outcomes, rejections, counts, progress, file } = step
    this.#step = step
    this.#progress.show({
      done: countFinishedRecords(counts),
      rejected: countRejectedRecords(counts),
      part: progress,
    })
    const { reporter } = this.context
    for (const rejection of rejections) {
      const cause = findHintCause(rejection)
      const count = this.#causeCounts.get(cause) ?? 0
      if (count === 0) this.#causeMessages.set(cause, rejection.message)
      this.#causeCounts.set(cause, count + 1)
    }
    const listedRejections = rejections.slice(0, this.#maxRejections - this.#listedRejectionCount)
    this.#listedRejectionCount += listedRejections.length
    const newRejections = listedRejections.filter(({ line, message }) =>
      this.#isNewLine(`${file}:${line}: ${message}`),
    )
    if (newRejections.length > 0) {
      await this.#progress.clear()
      await reporter.reportRejected(
        newRejections.map(({ line, error, message }) => ({ error, message, file, line })),
      )
    }
    if (!this.plan.dryRun) return
    this.#changes ??= await showDryRunChanges(this.context, this.#isPreview)
    await this.#changes?.add(outcomes)
  }

  /** Whether the dialogue has not printed the line before. */
  #isNewLine(line: string): boolean {
    if (this.#isPreview) this.#shownLines.add(line)
    return this.#isPreview || !this.#shownLines.has(line)
  }

  async #warn(text: string, label?: 'warning'): Promise<void> {
    if (this.#isNewLine(text)) await this.context.reporter.warn(text, label)
  }

  async writeSummary(): Promise<void> {
    await this.#progress.clear()
    await this.#changes?.end()
    const { counts, isComplete, isRolledBack } = this
    const finishedCount = countFinishedRecords(counts)
    if (finishedCount === 0 && isComplete) {
      const names = this.plan.inputs.map(({ name }) => name).join(', ')
      await this.context.reporter.warn(`There are no records in ${names}`, 'warning')
    }
    await this.#writeWarnings()

    const { dryRun } = this.plan
    const { skipped, unknown } = counts
    const created = isRolledBack ? 0 : counts.created
    const updated = isRolledBack ? 0 : counts.updated
    const rejected = countRejectedRecords(counts)
    const otherCounts = this.#countOtherPlants()
    const reasons = rejected > 0 ? counts.rejected : undefined
    // The reasons follow the number that they explain.
    const numbers = { created, updated, skipped, rejected, reasons, unknown, ...otherCounts }
    const parts = Object.entries(numbers).flatMap(([name, count]) =>
      typeof count === 'number' && (name === 'created' || count > 0)
        ? `${groupDigits(count)} ${name}`
        : [],
    )
    const subject = `${dryRun ? 'Dry run of' : 'Read'} ${formatPlantCount(finishedCount)}`
    const rejects = this.#findRejectsPath()
    const undo = this.hasChangedStore ? this.#undoCommand : undefined
    const fields = { dryRun, ...numbers, rejects, undo }
    const isKept = !dryRun && !isRolledBack
    // A reader of stdout that has left must not hide why the import fails after its summary.
    const sentence = `${subject}: ${parts.join(', ')}`
    await printOutcome(fields, sentence, this.context, { isKept }).catch(ignoreClosedPipe)
    if (this.#missing > 0) await this.context.reporter.warn(describeMissing(this.#missing))
    if (undo !== undefined) await this.context.reporter.warn(describeUndo(undo))
  }

  /** The most frequent reason of the rejected records; undefined if none is rejected. */
  get rejectionReason(): string | undefined {
    return this.#describeCause(findMainCause(this.#causeCounts))
  }

  /** Notes how many plants of the store a list lacks that has at least half of them. */
  noteMissing(missing: number, storeCount: number): void {
    const isRejected = countRejectedRecords(this.counts) > 0
    if (!isRejected && missing * 2 <= storeCount) this.#missing = missing
  }

  /** Counts the plants of the store for which no record stands. */
  #countOtherPlants(): Partial<Record<'deleted' | 'missing', number>> {
    if (!this.plan.sync) return this.#missing > 0 ? { missing: this.#missing } : {}
    const deleted = this.isRolledBack ? 0 : this.counts.deleted
    const missing = this.counts.missing + this.counts.deleted - deleted
    return missing > 0 ? { ...(deleted > 0 && { deleted }), missing } : { deleted }
  }

  /** Ends a preview: it has no summary, because the last question has the numbers. */
  async endPreview(): Promise<void> {
    await this.#progress.clear()
    if (this.#unlistedRejectionCount > 0)
      await this.context.reporter.warn(describeMore(this.#unlistedRejectionCount, 'rejected'))
    await this.#changes?.end()
    await this.#writeWarnings()
  }

  /** Warns of what was not read in the inputs, or was read otherwise than a person may expect. */
  async #writeWarnings(): Promise<void> {
    const notes = this.#step?.notes
    if (!notes) return
    for (const sentence of notes.list()) await this.#warn(sentence)
    const { otherColumns, otherFields } = notes
    if (otherColumns.size > 0)
      await this.#warn(describeIgnoredFields([...otherColumns], 'column'), 'warning')
    if (otherFields.size > 0) await this.#warn(describeIgnoredFields([...otherFields]), 'warning')
  }

  #findRejectsPath(): string | undefined {
    return this.#rejectsFile?.isComplete ? this.#rejectsFile.path : undefined
  }

  /** @throws {PlantsError} `incomplete` if records were rejected, or plants were not deleted */
  assertComplete(): void {
    const rejectedCount = countRejectedRecords(this.counts)
    const { atomic, sync } = this.plan
    if (rejectedCount === 0) {
      const { missing } = this.counts
      if (!sync || missing === 0) return
      const text = `Did not delete ${formatPlantCount(missing)}, changed by somebody during the import`
      throw new PlantsError('incomplete', text, { hint: 'Run the same command again' })
    }
    const keptClause = sync ? ', so nothing was deleted' : ''
    const outcomeClause = atomic ? ', so nothing was changed' : keptClause
    const message = `Rejected ${formatPlantCount(rejectedCount)}${this.#describeUnlisted()}${outcomeClause}`
    const recordCount = countFinishedRecords(this.counts)
    const rejects = this.#findRejectsPath()
    const isRejectsFile = this.#step?.reader.isRejects === true
    const options = { plan: this.plan, recordCount, rejects, isRejectsFile }
    const hint = chooseOutcomeHint(this.#causeCounts, options)
    throw new PlantsError('incomplete', message, { hint, details: this.#describeCauses() })
  }

  /** If there are several causes, counts the records of each, with the reason of the first one. */
  #describeCauses(): string[] {
    if (this.#causeCounts.size < 2) return []
    return [...this.#causeCounts]
      .toSorted((a, b) => b[1] - a[1])
      .map(([cause, count]) => `${groupDigits(count)} such as: ${this.#describeCause(cause)}`)
  }

  #describeCause(cause: HintCause): string | undefined {
    return this.#causeMessages.get(cause)?.replace(invalidPlantLabel, '')
  }

  #describeUnlisted(): string {
    const count = this.#unlistedRejectionCount
    return count === 0 ? '' : ` (the first ${maxShown} are above, and ${groupDigits(count)} more)`
  }

  /**
   * Prints the summary of an import that an error has ended, if something may be stored, and adds
   * to the error how to continue.
   */
  async explainFailure(error: unknown): Promise<unknown> {
    await this.#progress.clear()
    if (!(error instanceof PlantsError) || error.kind === 'internalError') return error
    const { atomic, dryRun } = this.plan
    const { counts } = this
    const finishedCount = countFinishedRecords(counts)
    const mayHaveStored = !atomic && !dryRun && finishedCount + counts.unknown > 0
    if (mayHaveStored)
      await this.writeSummary().catch((outputError: unknown) => {
        // A terminal that has closed, which interrupts the import, can show nothing any more.
        if (!error.isInterruption) throw outputError
      })
    // The hint of such an error says what to correct.
    if (error.kind === 'input' || error.kind === 'usage') return error
    const extent = mayHaveStored
      ? ` after ${formatPlantCount(finishedCount)}`
      : ', nothing was changed'
    const message = error.isInterruption ? error.message + extent : error.message
    const nextHint = mayHaveStored ? this.#describeRest(error) : undefined
    const hint = [error.hint, nextHint].filter(Boolean).join('. ') || undefined
    return new PlantsError(error.kind, message, { ...error, hint, cause: error })
  }

  /**
   * Whether the same command stores the rest. It does not at a service that neither knows the keys
   * of creates nor lets the token read, because it cannot be asked what it has stored.
   */
  mayBeRepeated(error: unknown): boolean {
    const isKeyIgnored = error instanceof PlantsError && error.isKeyIgnored
    return !isKeyIgnored || !this.#causeCounts.has('unreadableConflict')
  }

  #describeRest(error: PlantsError): string | undefined {
    if (this.isComplete) return undefined
    const { file, unansweredLine } = this.#step ?? {}
    if (unansweredLine === undefined || this.mayBeRepeated(error)) {
      // The next run must not overwrite the rejects file of this one.
      const clause = this.#rejectsFile?.isComplete ? ' with a new --rejects file' : ''
      return `To continue, run the same command again${clause}`
    }
    return `The import ended at ${file}:${unansweredLine}: import the rest from there`
  }
}

function describeUndo(command: string): string {
  return `To undo, with all that was stored since: ${command}`
}

function describeMissing(count: number): string {
  const fact = `The list lacks ${formatPlantCount(count)} of the store`
  return `${fact}. To delete what it lacks, use --sync instead of --if-exists update`
}
