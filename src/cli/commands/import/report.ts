import {
  describeChange,
  describePlant,
  unknownFields,
  writeAnswer,
} from '../../../output/output.js'
import { clockOf, Progress } from '../../../output/progress.js'
import { toJson } from '../../../plant/exact-json.js'
import { equalFields, grouped, plantCount, plantOf } from '../../../plant/plant.js'
import { must, PlantsError } from '../../../platform/errors.js'
import type { Outcome } from '../../../stores/common/change.js'
import { CheckpointMovedError } from '../../../stores/common/checkpoint-state.js'
import type { FormatReader } from '../../../transfer/formats/chunk.js'
import { doneIn, rejectedIn } from '../../../transfer/import/checkpoint.js'
import type { Importer, ImportObserver } from '../../../transfer/import/importer.js'
import type { ImportPlan } from '../../../transfer/import/input.js'
import type { RejectedRecord } from '../../../transfer/import/rejects.js'
import type { CommandContext } from '../../command-context.js'
import type { ImportOptions } from './import-options.js'

/** The greatest numbers of rejected records, and of changes of a dry run, that are printed as text. */
const maxShown = 20

/** What an import prints. */
export class ImportReport implements ImportObserver {
  readonly #plan: ImportPlan
  readonly #options: ImportOptions
  readonly #isResumable: boolean
  readonly #context: CommandContext
  readonly #progress: Progress
  readonly #startMs: number
  #rejectedShown = 0
  #changesShown = 0

  constructor(
    plan: ImportPlan,
    options: ImportOptions,
    isResumable: boolean,
    context: CommandContext,
  ) {
    const { io, reporter } = context
    this.#plan = plan
    this.#options = options
    this.#isResumable = isResumable
    this.#context = context
    this.#progress = new Progress(io, reporter.showsProgress, 0)
    this.#startMs = io.now()
  }

  async onOpened({ headerLine = 1 }: FormatReader, input: string): Promise<void> {
    if (headerLine > 1) await this.#context.warn(`The header of ${input} is in line ${headerLine}`)
  }

  async onChunk(
    outcomes: readonly Outcome[],
    rejected: readonly RejectedRecord[],
    importer: Importer,
  ): Promise<void> {
    const { position, progress } = importer
    this.#progress.show({
      done: doneIn(position.counts),
      rejected: rejectedIn(position.counts),
      part: progress,
    })
    await this.#reportRejected(rejected, must(this.#plan.inputs[position.input]).name)
    if (this.#options.dryRun) await this.#writeChanges(outcomes)
  }

  async #reportRejected(rejected: readonly RejectedRecord[], file: string): Promise<void> {
    const { reporter } = this.#context
    const limit = reporter.isJson ? Infinity : maxShown
    const shown = rejected.slice(0, limit - this.#rejectedShown)
    this.#rejectedShown += shown.length
    if (shown.length === 0) return
    await this.#progress.clear()
    await reporter.reportRejected(
      shown.map(({ line, element, error, message }) => ({ error, message, file, line, element })),
    )
  }

  /** Of a dry run: all changes as NDJSON, or the first ones as text. */
  async #writeChanges(outcomes: readonly Outcome[]): Promise<void> {
    const { output, reporter, io } = this.#context
    const isText = output === 'text'
    const ofText = isText && !reporter.isQuiet ? maxShown : 0
    const limit = this.#options.output === 'ndjson' ? Infinity : ofText
    const changes = outcomes.flatMap((outcome) => {
      if (outcome.type !== 'created' && outcome.type !== 'updated') return []
      const before = outcome.type === 'updated' ? outcome.before : undefined
      return before && equalFields(before, outcome.plant) ? [] : [{ before, after: outcome.plant }]
    })
    const shown = changes.slice(0, limit - this.#changesShown)
    this.#changesShown += shown.length
    if (shown.length === 0) return
    const style = await this.#context.style()
    const lines = shown.map(({ before, after }) => {
      const change = { id: after.id, before: before && plantOf(before), after: plantOf(after) }
      if (!isText) return `${toJson({ dryRun: true, ...change })}\n`
      if (before) return `${describeChange('Would update', before, after, style)}\n`
      return `Would create ${describePlant(after, style)}\n`
    })
    await this.#progress.clear()
    await writeAnswer(io, lines.join(''))
  }

  async writeSummary(importer: Importer): Promise<void> {
    await this.#progress.clear()
    await this.#warnOfRest(importer)
    const { dryRun, rejects: file } = this.#options
    const { rejected: reasons, skipped, unknown, ...changed } = importer.position.counts
    const isRolledBack = this.isRolledBack(importer)
    const { created, updated } = isRolledBack ? { created: 0, updated: 0 } : changed
    const rejected = rejectedIn(importer.position.counts)
    const seconds = Math.round(this.#context.io.now() - this.#startMs) / 1000

    const why = Object.entries(reasons).map(
      ([error, count]) => `${grouped(count)} ${words[error] ?? `with error ${error}`}`,
    )
    const parts = Object.entries({ created, updated, skipped, rejected, unknown })
      .filter(([name, count]) => name === 'created' || count > 0)
      .map(([name, count]) => `${grouped(count)} ${name}`)
      .map((part) => (part.endsWith('rejected') ? `${part} (${why.join(', ')})` : part))
    const time = seconds < 90 ? `${seconds.toFixed(1)} s` : clockOf(seconds)
    const plants = plantCount(doneIn(importer.position.counts))
    const text = `${dryRun ? 'Dry run of' : 'Read'} ${plants} in ${time}: ${parts.join(', ')}`
    const rejects = rejected > 0 && !dryRun ? file : undefined
    const fields = { created, updated, skipped, rejected, reasons, unknown, seconds, rejects }
    await this.#context.print({ ...(dryRun && { dryRun }), ...fields }, text)
  }

  /** What the input had besides, and what was not printed. */
  async #warnOfRest(importer: Importer): Promise<void> {
    const { dryRun } = this.#options
    const { reporter, output } = this.#context
    const { position, otherFields, emptyRows, rejected } = importer
    const { created, updated } = position.counts
    if (doneIn(position.counts) === 0) {
      const [input, ...others] = this.#plan.inputs
      const name = others.length === 0 ? must(input).name : 'The input'
      await reporter.warn(`${name} contains no records`, 'warning')
    }
    if (emptyRows > 0) {
      const rows = emptyRows === 1 ? '1 row has' : `${grouped(emptyRows)} rows have`
      await reporter.warn(
        `${rows} no id, name and tag, and ${emptyRows === 1 ? 'is' : 'are'} left out`,
      )
    }
    if (otherFields.size > 0) await reporter.warn(unknownFields([...otherFields.keys()]), 'warning')
    if (rejected > maxShown && !reporter.isJson)
      await reporter.warn(`Only the first ${maxShown} rejected records are shown`)
    if (dryRun && output === 'text' && created + updated > maxShown)
      await reporter.warn(`Only the first ${maxShown} changes are shown. For all: --output ndjson`)
  }

  /** Whether `--atomic` has undone all. */
  isRolledBack({ rejected, isComplete }: Importer): boolean {
    return this.#options.atomic === true && (rejected > 0 || !isComplete)
  }

  /** Throws `unknownOutcome` or `incomplete` unless all records are done well. */
  assertComplete(importer: Importer): void {
    const { counts } = importer.position
    if (counts.unknown > 0) {
      const plants = `${plantCount(counts.unknown)} ${counts.unknown === 1 ? 'is' : 'are'}`
      throw new PlantsError('unknownOutcome', `Whether ${plants} stored is unknown`, {
        hint:
          this.#options.idFrom === undefined
            ? 'Import them again: what is stored and equal is skipped'
            : 'Look in the store for what is stored',
      })
    }
    const rejected = rejectedIn(counts)
    if (rejected === 0) return
    const verb = this.#options.dryRun ? 'would be' : rejected === 1 ? 'was' : 'were'
    const stopped = importer.isComplete ? '' : ', and the import stopped there'
    const undone = this.isRolledBack(importer) ? ', so nothing was changed' : ''
    const message = `${plantCount(rejected)} ${verb} rejected${stopped}${undone}`
    throw new PlantsError('incomplete', message, { hint: this.#hintOfRejected(importer) })
  }

  #hintOfRejected({ isComplete, position }: Importer): string {
    const { rejects, ifExists, idFrom, dryRun, atomic } = this.#options
    const mayDiffer = ifExists === 'error' || ifExists === 'same'
    const areIds = Object.keys(position.counts.rejected).join() === '409'
    if (!isComplete && this.#isResumable) return goOn
    if (areIds && mayDiffer && idFrom === undefined)
      return 'For ids that exist, use --if-exists skip or update'
    if (dryRun || atomic) return 'Correct the input: nothing was changed'
    if (rejects !== undefined)
      return `Correct them in ${rejects}, and import that with the same options, but another --rejects`
    if (idFrom !== undefined) return 'Correct them, and import them alone'
    return 'To keep the rejected records in a file, run it again with --rejects FILE: what is stored is skipped'
  }

  /** What is thrown after an error: with the summary first if what is stored stays. */
  async failed(error: unknown, importer: Importer): Promise<unknown> {
    await this.#progress.clear()
    if (!(error instanceof PlantsError) || error.kind === 'defect') return error
    if (error instanceof CheckpointMovedError) return error // the other process goes on
    const { atomic, dryRun, idFrom } = this.#options
    const done = doneIn(importer.position.counts)
    const isStored = (done > 0 || importer.hasSent) && !atomic && !dryRun
    // The same command would fail again.
    const isOfInput = error.kind === 'input' || error.kind === 'usage'
    if (isOfInput && isStored) await this.writeSummary(importer)
    if (isOfInput) return error
    const extent = isStored ? ` after ${plantCount(done)}` : ', nothing was changed'
    const repeated = idFrom === undefined ? 'run it again: what is stored and equal is skipped' : ''
    const hint = this.#isResumable ? goOn : repeated && `To go on, ${repeated}`
    return new PlantsError(error.kind, error.message + (error.isInterruption ? extent : ''), {
      ...error,
      hint: [error.hint, isStored ? hint : ''].filter(Boolean).join('. ') || undefined,
      cause: error,
    })
  }
}

const goOn = 'To resume, run the same command again'

const words: Readonly<Record<string, string>> = {
  400: 'malformed',
  409: 'with an existing id',
  413: 'too large',
  422: 'invalid',
}
