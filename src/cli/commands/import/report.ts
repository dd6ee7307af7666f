import { must, PlantsError } from '../../../errors.js'
import { doneIn, type Position, rejectedIn } from '../../../import/checkpoint.js'
import type { Importer } from '../../../import/importer.js'
import type { ImportPlan } from '../../../import/inputs.js'
import type { RejectedRecord } from '../../../import/rejects-file.js'
import {
  describeChange,
  describePlant,
  unknownFields,
  writeAnswer,
} from '../../../output/output.js'
import { Progress } from '../../../output/progress.js'
import { equalFields, grouped, plantCount } from '../../../plant/plant.js'
import type { Outcome } from '../../../stores/change.js'
import { hasCapability } from '../../../stores/kinds.js'
import type { CommandContext } from '../../command-context.js'

const maxShown = 20

export class ImportReport {
  readonly #plan: ImportPlan
  readonly #context: CommandContext
  readonly #progress: Progress
  #rejectedShown = 0
  #changesShown = 0

  constructor(plan: ImportPlan, context: CommandContext) {
    const { io, reporter } = context
    this.#plan = plan
    this.#context = context
    this.#progress = new Progress(io, reporter.showsProgress, 0)
  }

  async writeChunk(
    outcomes: readonly Outcome[],
    rejected: readonly RejectedRecord[],
    { position: { counts, input }, progress }: Importer,
  ): Promise<void> {
    this.#progress.show({ done: doneIn(counts), rejected: rejectedIn(counts), part: progress })
    const { reporter } = this.#context
    const file = must(this.#plan.inputs[input]).name
    const shown = rejected.slice(0, reporter.isJson ? Infinity : maxShown - this.#rejectedShown)
    this.#rejectedShown += shown.length
    if (shown.length > 0) {
      await this.#progress.clear()
      await reporter.reportRejected(
        shown.map(({ line, error, message }) => ({ error, message, file, line })),
      )
    }
    if (this.#plan.dryRun) await this.#writeChanges(outcomes)
  }

  async #writeChanges(outcomes: readonly Outcome[]): Promise<void> {
    const { output, reporter, io } = this.#context
    if (output !== 'text' || reporter.isQuiet) return
    const style = await this.#context.style()
    for (const outcome of outcomes) {
      if (this.#changesShown === maxShown) return
      if (!('plant' in outcome)) continue
      const { plant } = outcome
      const before = outcome.type === 'updated' ? outcome.before : undefined
      if (before && equalFields(before, plant)) continue
      const line = before
        ? describeChange('Would update', before, plant, style)
        : `Would create ${describePlant(plant, style)}`
      this.#changesShown += 1
      await this.#progress.clear()
      await writeAnswer(io, `${line}\n`)
    }
  }

  async writeSummary(importer: Importer): Promise<void> {
    await this.#progress.clear()
    const { reporter } = this.#context
    const { dryRun } = this.#plan
    const { otherFields, emptyRows, position } = importer
    const { counts } = position
    const { skipped, unknown, ...changed } = counts
    const { created, updated } = importer.isRolledBack ? { created: 0, updated: 0 } : changed
    const rejected = rejectedIn(counts)
    const done = doneIn(counts)

    if (done === 0) await reporter.warn('The input contains no records', 'warning')
    if (emptyRows > 0)
      await reporter.warn(`Rows without an id, a name and a tag: ${grouped(emptyRows)}, left out`)
    if (otherFields.size > 0) await reporter.warn(unknownFields([...otherFields]), 'warning')

    const parts = Object.entries({ created, updated, skipped, rejected, unknown })
      .filter(([name, count]) => name === 'created' || count > 0)
      .map(([name, count]) => `${grouped(count)} ${name}`)
    const read = `${dryRun ? 'Dry run of' : 'Read'} ${plantCount(done)}`
    const reasons = rejected > 0 ? counts.rejected : undefined
    const rejects = rejectsIn(position)
    const fields = { dryRun, created, updated, skipped, rejected, reasons, unknown, rejects }
    await this.#context.print(fields, `${read}: ${parts.join(', ')}`)
  }

  assertComplete(importer: Importer): void {
    const { counts } = importer.position
    if (counts.unknown > 0) {
      const message = `The outcome of ${plantCount(counts.unknown)} is unknown`
      const isNumbered = this.#plan.idFrom !== undefined
      const hint = isNumbered ? 'Look in the store for them' : `Import them ${again}`
      throw new PlantsError('unknownOutcome', message, { hint })
    }
    const rejected = rejectedIn(counts)
    if (rejected === 0) return
    const stopped = importer.isComplete ? '' : ', and the import stopped there'
    const end = this.#plan.atomic ? ', so nothing was changed' : stopped
    const message = `Rejected ${plantCount(rejected)}${end}`
    throw new PlantsError('incomplete', message, { hint: this.#hintOf(importer) })
  }

  #hintOf({ isComplete, isResumable, position }: Importer): string {
    const { idFrom, dryRun, atomic } = this.#plan
    const rejects = rejectsIn(position)
    const areIds = Object.keys(position.counts.rejected).join() === '409'
    if (!isComplete && isResumable) return goOn
    if (areIds && idFrom === undefined) return 'For ids that exist, use --if-exists skip or update'
    if (dryRun || atomic) return 'Correct the input'
    if (rejects !== undefined)
      return `Correct them in ${rejects}, and import that with the same options, but another --rejects`
    if (idFrom !== undefined) return 'Correct them, and import them alone'
    return 'To keep them in a file, run it again with --rejects FILE'
  }

  async failed(error: unknown, importer: Importer): Promise<unknown> {
    await this.#progress.clear()
    if (!(error instanceof PlantsError) || error.kind === 'defect') return error
    const { atomic, dryRun, idFrom } = this.#plan
    const done = doneIn(importer.position.counts)
    const mayStore = !atomic && !dryRun
    if (error.kind === 'input' || error.kind === 'usage') {
      if (mayStore && done > 0) await this.writeSummary(importer)
      return error
    }
    // Without transactions, a store may have what is not done.
    const isPartial = !hasCapability(this.#context.address, 'transactions')
    const isStored = mayStore && (done > 0 || isPartial)
    const extent = isStored ? ` after ${plantCount(done)}` : ', nothing was changed'
    const repeated = idFrom === undefined ? `To go on, run it ${again}` : undefined
    const next = importer.isResumable ? goOn : repeated
    return new PlantsError(error.kind, error.message + (error.isInterruption ? extent : ''), {
      ...error,
      hint: [error.hint, isStored && next].filter(Boolean).join('. ') || undefined,
      cause: error,
    })
  }
}

function rejectsIn({ rejects }: Position): string | undefined {
  return rejects?.length ? rejects.path : undefined
}

const again = 'again: what is stored and equal is skipped'
const goOn = 'To resume, run the same command again'
