/*
 * Several plants at once: pages of changes go to the store, and what became of each is printed as
 * it comes. What fails for one plant does not end the others; the worst error decides the exit
 * code.
 */
import { describeChange, describePlant } from '../output/output.js'
import type { Printer } from '../output/printer.js'
import type { StoredPlant } from '../plant/plant.js'
import { must, PlantsError, systemCode } from '../platform/errors.js'
import { wrongAddressHint } from '../stores/common/address.js'
import {
  type Change,
  idOf,
  notFound,
  type Problem,
  problem,
  toError,
} from '../stores/common/change.js'
import { planOf } from '../stores/common/plan.js'
import type { Store } from '../stores/common/store.js'
import type { CommandContext } from './command-context.js'

interface ChangeOptions {
  isDryRun: boolean
  /** Whether JSON is one value in place of an array. */
  isSingle: boolean
  ignoresMissing?: boolean
  /** Ids that no plant had when a person was asked: what came since stays. */
  missing?: readonly bigint[]
}

/** A plant as it is, or would be after a dry run, and what it was before, if that is known. */
interface PrintedPlant extends StoredPlant {
  dryRun?: true
  before?: StoredPlant | undefined
}

export type PlantResult = { plant: PrintedPlant } | { error: Problem }

export async function changePlants(
  verb: 'update' | 'delete',
  changes: readonly Change[],
  store: Store | undefined,
  options: ChangeOptions,
  context: CommandContext,
): Promise<number> {
  const { isSingle, ignoresMissing, isDryRun } = options
  const style = await context.style()
  const what = isDryRun ? `Would ${verb}` : { update: 'Updated', delete: 'Deleted' }[verb]
  const lineOf = (plant: PrintedPlant) =>
    plant.before
      ? describeChange(what, plant.before, plant, style)
      : `${what} ${describePlant(plant, style)}`
  const isSilent = context.reporter.isQuiet && !isDryRun
  const text = (plants: PrintedPlant[]) =>
    isSilent ? '' : plants.map((plant) => `${lineOf(plant)}\n`).join('')
  try {
    const results = resultsOf(changes, store, options, context)
    return await printResults(results, context.printer({ text }, isSingle), context, ignoresMissing)
  } catch (error) {
    if (isDryRun || systemCode(error) !== 'EPIPE') throw error
    // Changes are not undone when nobody reads what they were.
    const hint = 'Up to 64 plants were changed, but not printed. Look with: plants list'
    throw new PlantsError('unwritable', 'The output was closed', { hint, cause: error })
  }
}

/** Of changes in one transaction, or in flight: if stdout is on a full disk, no more of them are hidden. */
const pageSize = 64

export function* inPages<T>(items: readonly T[]): Generator<T[]> {
  for (let from = 0; from < items.length; from += pageSize) yield items.slice(from, from + pageSize)
}

async function* resultsOf(
  changes: readonly Change[],
  store: Store | undefined,
  { isDryRun, missing = [] }: ChangeOptions,
  { io, output, storeFlag }: CommandContext,
): AsyncGenerator<PlantResult[]> {
  const signal = io.handleSignals()
  // Of several requests in flight, only the hint says whose outcome is unknown.
  const unknownOutcome = (id: bigint, { kind, message }: Problem): PlantResult => {
    const look = `plants get ${id}${storeFlag}`
    const hint = `Whether plant ${id} was changed is unknown. Look at it with: ${look}`
    return { error: problem(kind, message, hint) }
  }
  for (const page of inPages(changes)) {
    signal.throwIfAborted()
    const isPlanned = isDryRun || !store
    const stored = isPlanned ? await store?.get(page.map(idOf)) : undefined
    const plants = Array.from(stored?.values() ?? [], (plant) => ({ plant }))
    const outcomes = isPlanned ? planOf(plants, page).outcomes : await store.write(page, { signal })
    yield outcomes.flatMap((outcome, index): PlantResult[] => {
      if (outcome.type === 'skipped') return []
      if ('error' in outcome) {
        const isExplained = outcome.type !== 'unknown' || outcome.error.hint !== undefined
        return [isExplained ? outcome : unknownOutcome(idOf(must(page[index])), outcome.error)]
      }
      const before = output === 'text' && 'before' in outcome && { before: outcome.before }
      return [{ plant: { ...(isDryRun && { dryRun: true }), ...outcome.plant, ...before } }]
    })
    if (outcomes.some(({ type }) => type === 'unsent')) return
  }
  yield missing.map((id) => ({ error: notFound(id) }))
}

/**
 * Prints plants and errors as they come. Throws the worst error at the end, which is reported.
 *
 * @returns how many plants were printed
 */
export async function printResults(
  pages: AsyncIterable<PlantResult[]>,
  printer: Printer<PrintedPlant>,
  context: CommandContext,
  ignoresMissing = false,
): Promise<number> {
  let printed = 0
  let worst: PlantsError | undefined
  for await (const page of pages) {
    const plants = page.flatMap((result) => ('plant' in result ? [result.plant] : []))
    if (plants.length > 0) await printer.rows(plants)
    printed += plants.length
    // One of a service that failed is the error of all that were not sent.
    const problems = new Set(page.flatMap((result) => ('error' in result ? [result.error] : [])))
    for (const each of problems) {
      if (ignoresMissing && each.kind === 'notFound') continue
      const error = errorOf(each, context)
      await context.reporter.reportError(error)
      if (!worst || error.exitCode > worst.exitCode) worst = error
    }
  }
  if (printed > 0 || !worst) await printer.end() // no empty list for an error alone
  if (worst) throw new PlantsError(worst.kind, worst.message, { isReported: true })
  return printed
}

/** An id that no plant has is an error of this store, which may be the wrong one. */
function errorOf(reason: Problem, { address, storeFlag }: CommandContext): PlantsError {
  const { kind, message } = reason
  if (kind !== 'notFound') return toError(reason)
  const listing = `List the plants with: plants list${storeFlag}`
  const hint = wrongAddressHint(address) ?? listing
  return new PlantsError(kind, `${message} in ${address.name}`, { hint })
}
