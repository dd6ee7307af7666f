import { describeChange, describePlant, unknownFields, writeAnswer } from '../output/output.js'
import { clockOf, Progress } from '../output/progress.js'
import { toJson } from '../plant/exact-json.js'
import { type FieldName, grouped, plantCount, plantOf } from '../plant/plant.js'
import { must, PlantsError } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'
import { CheckpointMovedError } from '../stores/common/checkpoint-state.js'
import type { FormatReader } from '../transfer/formats/chunk.js'
import { type Position, rejectedIn, settledIn } from '../transfer/import/checkpoint.js'
import type { PlannedChange } from '../transfer/import/dry-run.js'
import type { Importer, ImportObserver } from '../transfer/import/importer.js'
import type { ImportPlan } from '../transfer/import/input.js'
import { maxOtherFields } from '../transfer/import/map.js'
import type { RejectedRecord } from '../transfer/import/rejected-records.js'
import type { CommandContext } from './command-context.js'
import {
  hasStored,
  type ImportOptions,
  isKept,
  isResumable,
  isRolledBack,
} from './import-options.js'
import { skipping } from './import-resume.js'

/** The greatest numbers of rejected records, and of changes of a dry run, that are printed as text. */
const maxShown = 20

/** What an import prints. */
export class ImportReport implements ImportObserver {
  readonly #plan: ImportPlan
  readonly #options: ImportOptions
  readonly #context: CommandContext
  readonly #progress: Progress
  readonly #isResumable: boolean
  /** In milliseconds, monotonic. */
  readonly #startTime: number
  /** The columns that are read by their names although `--map` names other columns. */
  readonly #byName = new Map<FieldName, string>()
  #rejectedShown = 0
  #changesShown = 0

  constructor(plan: ImportPlan, options: ImportOptions, context: CommandContext) {
    const { io, reporter } = context
    this.#plan = plan
    this.#options = options
    this.#context = context
    this.#progress = new Progress(io, reporter.showsProgress, 0)
    this.#isResumable = isResumable(plan, options)
    this.#startTime = io.now()
  }

  async onOpened({ header, skipped }: FormatReader, input: string): Promise<void> {
    const { map } = this.#plan.rules
    const isMapped = Object.values(map).some((source) => source !== '')
    for (const [field, column] of header?.columns ?? [])
      if (isMapped && map[field] === undefined) this.#byName.set(field, must(header?.names[column]))
    if (!skipped) return
    const rows = skipped.rows === 1 ? '1 row' : `${skipped.rows} rows`
    await this.#context.warn(
      `Skipped ${rows} above the header of ${input} in line ${skipped.header}`,
    )
  }

  async onRejected(rejected: readonly RejectedRecord[], file: string): Promise<void> {
    const limit = this.#context.reporter.isJson ? Infinity : maxShown
    const shown = rejected.slice(0, limit - this.#rejectedShown)
    this.#rejectedShown += shown.length
    if (shown.length === 0) return
    await this.#progress.clear()
    const records = shown.map(({ line, element, error, message }) => ({
      error,
      message,
      file,
      line,
      element,
    }))
    await this.#context.reporter.reportRejected(records)
  }

  onProgress({ position, rejected }: Importer): void {
    const [file] = this.#plan.inputs.length === 1 ? position.files : []
    const part = file?.size ? Math.min(1, file.bytes / file.size) : undefined
    this.#progress.show({ done: settledIn(position.counts), rejected, part })
  }

  /** Of a dry run: all changes as NDJSON, or the first ones as text. */
  async writeChanges(changes: PlannedChange[]): Promise<void> {
    const { output, reporter } = this.#context
    const isText = output === 'text'
    const limit =
      this.#options.output === 'ndjson' ? Infinity : isText && !reporter.isQuiet ? maxShown : 0
    const shown = changes.slice(0, limit - this.#changesShown)
    this.#changesShown += shown.length
    if (shown.length === 0) return
    const style = await this.#context.style()
    const lines = shown.map(({ before, after }) => {
      if (isText) {
        if (!before) return `Would create ${describePlant(after, style)}\n`
        return `${describeChange('Would update', before, after, style)}\n`
      }
      const old = before && { before: plantOf(before) }
      return `${toJson({ dryRun: true, id: after.id, ...old, after: plantOf(after) })}\n`
    })
    await this.#progress.clear()
    await writeAnswer(this.#context.io, lines.join(''))
  }

  async writeSummary(importing: Importer): Promise<void> {
    await this.#progress.clear()
    const [options, context] = [this.#options, this.#context]
    const total = importing.position.counts
    const { skipped, unknown, rejected: reasons } = total
    const rejected = rejectedIn(total)
    const { created, updated } = isRolledBack(importing, options)
      ? { created: 0, updated: 0 }
      : total
    const settled = settledIn(total)
    const ofRun = settled - importing.settledBefore
    const seconds = Math.round(context.io.now() - this.#startTime) / 1000
    const rate = Math.round(ofRun / Math.max(seconds, 0.001))

    await this.#warnOfRest(importing)
    const why = Object.entries(reasons).map(
      ([error, n]) => `${grouped(n)} ${words[error] ?? `with error ${error}`}`,
    )
    const done = Object.entries({ created, updated, skipped, rejected, unknown })
      .filter(([name, count]) => name === 'created' || count > 0)
      .map(
        ([name, count]) =>
          `${grouped(count)} ${name}${name === 'rejected' ? ` (${why.join(', ')})` : ''}`,
      )
    const time = seconds < 90 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : clockOf(seconds)
    const since = ofRun < settled ? ' since it was resumed' : ''
    const took = `${plantCount(settled)} in ${time}${since}${seconds < 1 ? '' : ` (${grouped(rate)}/s)`}`
    const text = `${options.dryRun ? 'Dry run of' : 'Read'} ${took}: ${done.join(', ')}`
    const rejects = rejected > 0 && !options.dryRun ? options.rejects : undefined
    const fields = { created, updated, skipped, rejected, reasons, unknown, seconds, rate, rejects }
    const hint = isRolledBack(importing, options) ? 'Nothing was stored' : undefined
    await context.print({ ...(options.dryRun && { dryRun: true }), ...fields }, text, hint)
  }

  /** What the records had, and what was not printed. */
  async #warnOfRest(importing: Importer): Promise<void> {
    const [plan, options] = [this.#plan, this.#options]
    const { output, reporter } = this.#context
    const { counts, numbered } = importing.position
    const input = plan.inputs.length === 1 ? must(plan.inputs[0]).name : 'the input'
    if (settledIn(counts) === 0) await reporter.warn(`${input} contains no records`, 'warning')
    const which = options.match ? 'with a new name' : 'without an id'
    if (options.idFrom === 'next' && numbered && !isRolledBack(importing, options))
      await reporter.warn(
        `Plants ${which} ${options.dryRun ? 'would get' : 'got'} ${rangeOf(numbered)}`,
      )
    if (options.dryRun && options.rejects !== undefined && importing.rejected > 0)
      await reporter.warn('A dry run writes no rejects file')
    if (importing.rejected > maxShown && !reporter.isJson)
      await reporter.warn(`Only the first ${maxShown} rejected records are shown`)
    const columns = columnsWarning(importing.otherFields, this.#byName)
    if (columns !== undefined) await reporter.warn(columns, 'warning')
    if (options.dryRun && output === 'text' && counts.created + counts.updated > maxShown)
      await reporter.warn(`Only the first ${maxShown} changes are shown. For all: --output ndjson`)
  }

  /** Throws `unknownOutcome` or `incomplete` unless all records are settled well. */
  assertComplete(importing: Importer): void {
    const { dryRun, atomic, rejects } = this.#options
    const { counts } = importing.position
    if (counts.unknown > 0) {
      const which = rejects === undefined ? 'they' : `those in ${rejects}`
      const what = `Whether ${plantCount(counts.unknown)} ${counts.unknown === 1 ? 'is' : 'are'} stored is unknown`
      throw new PlantsError('unknownOutcome', what, {
        hint: `Check whether ${which} are in the store`,
      })
    }
    const rejected = rejectedIn(counts)
    if (rejected === 0) return
    const [only = '', ...others] = Object.keys(counts.rejected)
    const verb = dryRun ? 'would be' : rejected === 1 ? 'was' : 'were'
    const stopped = importing.isDone ? '' : ', and the import stopped there'
    const undone = atomic ? ', so nothing was changed' : ''
    throw new PlantsError(
      'incomplete',
      `${plantCount(rejected)} ${verb} rejected${stopped}${undone}`,
      {
        hint: importing.isDone ? this.#hintOfRejected(importing) : this.#hintOfStop(importing),
        ...(others.length === 0 && { error: parseInt(only, 10) }),
      },
    )
  }

  /** With --max-errors. */
  #hintOfStop(importing: Importer): string {
    if (this.#isResumable) return `To resume after them, ${runAgain(this.#options)}`
    const unread = 'The records after them were not read'
    if (!isKept(importing, this.#options)) return unread
    const repeated = this.#repetition(importing.firstId)
    return `${unread}. To continue, run it again without --max-errors${repeated && `, with${repeated}`}`
  }

  #hintOfRejected(importing: Importer): string {
    const { dryRun, atomic, idFrom, rejects, match } = this.#options
    const another = rejects === undefined || dryRun ? '' : ' and another --rejects'
    if (importing.hasUnknownNames)
      return `To create plants with new names, add --id-from next${another}`
    const areTwins =
      importing.twins > 0 && importing.twins === rejectedIn(importing.position.counts)
    const conflict = areTwins ? undefined : this.#hintOfConflict(importing, another)
    if (conflict !== undefined) return conflict
    const what = areTwins ? `the ${match ? 'names' : 'ids'} in the input` : 'the input'
    if (dryRun || atomic) return `Correct ${what}: nothing was changed`
    if (rejects === undefined && areTwins) {
      const repeated = hasStored(importing, this.#options)
        ? this.#repetition(importing.firstId)
        : ''
      return `Correct ${what}, and import it again${repeated && ` with${repeated}`}`
    }
    if (rejects === undefined) {
      const isStored = hasStored(importing, this.#options)
      return `To keep the rejected records in a file, ${isStored ? this.#repeat(importing) : 'add'} --rejects FILE`
    }
    const next = idFrom === undefined || idFrom === 'next' ? '' : '--id-from next and '
    return `Correct them in ${rejects}, and import that with the same options, but ${next}another --rejects`
  }

  /** An earlier run may have stored what a numbered record is rejected for: with --if-exists same, it is not. */
  #hintOfConflict(importing: Importer, another: string): string | undefined {
    const { restart, idFrom, match, ifExists } = this.#options
    const { created, updated, skipped, rejected } = importing.position.counts
    const isConflict = Object.keys(rejected).join() === '409'
    if (idFrom === undefined || match) {
      const policies = {
        error: 'skip, same or update',
        same: 'skip or update',
        skip: undefined,
        update: undefined,
      }
      const others = isConflict ? policies[ifExists] : undefined
      return others && `For ${match ? 'names' : 'ids'} that exist, use --if-exists ${others}`
    }
    if (ifExists === 'error' && rejected['409'])
      return `To skip what is stored already, ${this.#repeat(importing)}${another}`
    const isNew = created + updated + skipped === 0 && !restart
    return isConflict && isNew && idFrom !== 'next'
      ? `For ids that exist, use --id-from next${another}`
      : undefined
  }

  #repeat(importing: Importer): string {
    return `use${this.#repetition(hasStored(importing, this.#options) ? importing.firstId : undefined)}`
  }

  /** The options that make the same input skip what is stored, with the same numbers. */
  #repetition(firstId: bigint | undefined): string {
    if (this.#options.match) return ''
    const ids = firstId === undefined ? '' : ` --id-from ${firstId}`
    return ids + skipping(this.#options.ifExists, this.#context.address.scheme === 'http')
  }

  /** What is thrown after an error: with the summary first if what is stored stays. */
  async failed(error: unknown, importing: Importer): Promise<unknown> {
    await this.#progress.clear()
    const isEndOfInput = error instanceof PlantsError && isFinal(error)
    if (isEndOfInput && isKept(importing, this.#options)) await this.writeSummary(importing)
    return this.explained(error, importing)
  }

  /** Adds to an error what was done, and how to resume. */
  explained(error: unknown, importing?: Importer): unknown {
    if (!(error instanceof PlantsError) || error.kind === 'defect') return error
    if (error instanceof CheckpointMovedError) return error // the other process goes on
    const kept = importing && isKept(importing, this.#options) ? importing : undefined
    if (isFinal(error) && (this.#isResumable || !kept)) return error // the same command would fail again
    const done = kept
      ? ` after ${plantCount(settledIn(kept.position.counts))}`
      : ', nothing was changed'
    // What aborts the signal.
    const reason = error.isInterruption
      ? (this.#context.io.handleSignals().reason as PlantsError | undefined)
      : undefined
    const message = reason ? reason.message + done : error.message
    let hint: string | undefined
    if (this.#isResumable && (kept || error.kind === 'unknownOutcome'))
      hint = `To resume, ${runAgain(this.#options)}`
    else if (kept) {
      const repeated = this.#repetition(kept.firstId)
      hint = `The plants created so far are kept. To continue, run it again${repeated && ` with${repeated}`}`
    }
    const hints = [error.hint, hint].filter((text) => text !== undefined)
    return new PlantsError(error.kind, message, {
      ...error,
      hint: hints.join('. ') || undefined,
      cause: error,
    })
  }
}

/** Whether the same command would fail again, because of its input or its options. */
function isFinal({ kind }: PlantsError): boolean {
  return kind === 'input' || kind === 'usage'
}

/** Those between them may be the ids of other plants. */
export function rangeOf({ first, last, count }: NonNullable<Position['numbered']>): string {
  if (first === last) return first
  const isWhole = BigInt(last) - BigInt(first) + 1n === BigInt(count)
  return `${isWhole ? '' : `${grouped(count)} of the ids `}${first} to ${last}`
}

/** What was ignored, and what was taken although `--map` names other columns. */
function columnsWarning(
  others: ReadonlyMap<string, number>,
  byName: ReadonlyMap<FieldName, string>,
): string | undefined {
  const [first = 0, ...more] = others.values()
  const atLeast = others.size === maxOtherFields ? ', at least' : ''
  const of = more.length > 0 ? atLeast : ` of ${plantCount(first)}`
  const ignored = others.size > 0 && unknownFields([...others.keys()], of)
  const taken = [...byName]
    .map(([field, column]) => `the ${field} from ${JSON.stringify(shorten(column))}`)
    .join(' and ')
  const took =
    taken && `took ${taken} by name${byName.has('tag') ? '. To ignore the tag: --map tag=' : ''}`
  if (!ignored) return byName.has('tag') ? took : undefined
  return took ? `${ignored}, and ${took}` : ignored
}

const words: Readonly<Record<string, string>> = {
  ...{ 400: 'malformed', 409: 'with an existing id', 413: 'too large', 422: 'invalid' },
}

function runAgain({ restart }: ImportOptions): string {
  return `run the same command again${restart ? ' without --restart' : ''}`
}
