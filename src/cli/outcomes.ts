import { describePlant, type Style } from '../output/output.js'
import type { Printer } from '../output/printer.js'
import type { StoredPlant } from '../plant/plant.js'
import { PlantsError, systemCode } from '../platform/errors.js'
import {
  type Change,
  idOf,
  notFound,
  type Outcome,
  type Problem,
  rejected,
} from '../stores/common/change.js'
import { planOf } from '../stores/common/plan.js'
import type { Store } from '../stores/common/store.js'
import type { CommandContext } from './command-context.js'

/** A plant as it is, or as it would be after a dry run, and what an update found if that is known. */
export interface PrintedPlant extends StoredPlant {
  dryRun?: true
  before?: StoredPlant | undefined
}

/** Of a read: the plant, or why there is none. */
export type ReadResult = { plant: StoredPlant } | { error: Problem }

/** So many changes are one transaction, or in flight: more are not lost to a full disk behind stdout. */
const pageSize = 64

export function* inParts<T>(items: readonly T[]): Generator<T[]> {
  for (let from = 0; from < items.length; from += pageSize) yield items.slice(from, from + pageSize)
}

/** Makes the changes of each page, or plans them for a dry run. A store that does not exist has no plants. */
export async function* changeInParts(
  store: Store | undefined,
  pages: Iterable<Change[]> | AsyncIterable<Change[]>,
  isDryRun: boolean,
  { io, storeFlag }: CommandContext,
): AsyncGenerator<Outcome[]> {
  const signal = io.handleSignals()
  for await (const page of pages) {
    signal.throwIfAborted()
    if (!store) yield page.map((change) => rejected(notFound(idOf(change))))
    else if (isDryRun) {
      const stored = await store.get(page.map(idOf))
      yield planOf(
        [...stored.values()].map((plant) => ({ plant })),
        page,
      ).outcomes
    } else {
      const outcomes = await store.write(page, { signal })
      yield outcomes.map((outcome, index) => withHint(outcome, page[index], storeFlag))
    }
  }
}

/** Of several requests in flight, only the hint says whose outcome is unknown. */
function withHint(outcome: Outcome, change: Change | undefined, storeFlag: string): Outcome {
  if (outcome.type !== 'unknown' || !change || outcome.error.hint !== undefined) return outcome
  const id = idOf(change)
  const hint = `Whether plant ${id} was changed is unknown. Look at it with: plants get ${id}${storeFlag}`
  const { kind, error, message } = outcome.error
  return { type: 'unknown', error: { kind, error, message, hint } }
}

/** Prints each plant, or for people a sentence about it: without --quiet, or for a dry run. */
export async function changePrinter(
  sentence: (plant: PrintedPlant, style: Style) => string,
  isSingle: boolean,
  context: CommandContext,
): Promise<Printer<PrintedPlant>> {
  const style = await context.style()
  const { isQuiet } = context.reporter
  const lineOf = (plant: PrintedPlant) =>
    isQuiet && !plant.dryRun ? '' : `${sentence(plant, style)}\n`
  return context.printer({ text: (plants) => plants.map(lineOf).join('') }, isSingle)
}

/** Such as `Would delete Fern (id 1)`. */
export function sentenceOf(past: string, future: string) {
  return (plant: PrintedPlant, style: Style) =>
    `${plant.dryRun ? `Would ${future}` : past} ${describePlant(plant, style)}`
}

interface ResultOptions {
  isDryRun?: boolean
  ignoresMissing?: boolean
}

/**
 * Prints plants and errors as they come, and goes on after what concerns one plant alone. Throws the worst error at the
 * end, which is reported.
 *
 * @returns how many plants were printed
 */
export async function printResults(
  pages: AsyncIterable<(ReadResult | Outcome)[]>,
  printer: Printer<PrintedPlant>,
  { isDryRun = false, ignoresMissing = false }: ResultOptions,
  context: CommandContext,
): Promise<number> {
  const reported = new Set<string>() // what ends all is the error of each that was not sent
  let printed = 0
  let worst: PlantsError | undefined
  for await (const page of pages) {
    const plants = page.flatMap((result) => printedPlant(result, isDryRun, context))
    const isChange = !isDryRun && page.some((result) => 'type' in result)
    if (plants.length > 0)
      await printer.rows(plants).catch((error: unknown) => {
        throw isChange ? explainClosed(error) : error
      })
    printed += plants.length
    for (const result of page) {
      if (!('error' in result) || (ignoresMissing && result.error.kind === 'notFound')) continue
      const error = context.errorOf(result.error)
      const said = `${error.message} ${error.hint}`
      if (!reported.has(said)) await context.reporter.reportError(error)
      reported.add(said)
      if (!worst || error.exitCode > worst.exitCode) worst = error
    }
    if (page.some((result) => 'type' in result && result.type === 'unsent')) break
  }
  if (printed > 0 || !worst) await printer.end() // no empty list for an error alone
  if (worst) throw new PlantsError(worst.kind, worst.message, { isReported: true })
  return printed
}

/** What a plant was is in sentences alone. */
function printedPlant(
  result: ReadResult | Outcome,
  isDryRun: boolean,
  { output }: CommandContext,
): PrintedPlant[] {
  if (!('plant' in result)) return []
  const before = output === 'text' && 'before' in result ? { before: result.before } : {}
  return [{ ...(isDryRun && { dryRun: true }), ...result.plant, ...before }]
}

/** Changes are not undone when nobody reads what they were. */
function explainClosed(error: unknown): unknown {
  if (systemCode(error) !== 'EPIPE') return error
  const hint = 'Up to 64 plants were changed, but not printed. Look with: plants list'
  return new PlantsError('unwritable', 'The output was closed', { hint, cause: error })
}
