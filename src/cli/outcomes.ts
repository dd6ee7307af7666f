/*
 * Changes or shows several plants, page by page. The outcomes of a page are printed before the next
 * page is sent to the store. So after a crash or a full disk, the output lacks the changes of at
 * most one page. If one plant fails, the others are changed nevertheless. Each error is reported
 * when it occurs, and the worst error decides the exit code.
 */

import { assertDefined, errorKinds, PlantsError } from '../errors.js'
import {
  addKeptHint,
  createStyle,
  describeChange,
  describePlant,
  ignoreClosedPipe,
} from '../output/output.js'
import type { Printer } from '../output/printer.js'
import type { StoredPlant } from '../plant/plant.js'
import {
  type Change,
  createNotFoundProblem,
  createProblem,
  getTargetId,
  type Outcome,
  type Problem,
  toError,
} from '../stores/change.js'
import { planChanges } from '../stores/plan.js'
import type { Store } from '../stores/store.js'
import type { CommandContext } from './context.js'
import { createPrinter } from './print.js'

interface ChangeOptions {
  isDryRun: boolean
  /** Whether JSON output is one value instead of an array. */
  isSingle: boolean
  ignoresMissing?: boolean
  /**
   * Ids that no plant had when a person was asked to confirm. They are reported as not found, even
   * if a plant with such an id was created since: nobody has confirmed its change.
   */
  missingIds?: readonly bigint[]
}

/** A plant after its change, or as the change of a dry run would leave it. */
interface PrintedPlant extends StoredPlant {
  dryRun?: true
  before?: StoredPlant | undefined
}

/** What is printed for a plant, or the error that is reported instead. */
export type PlantResult = { plant: PrintedPlant } | { problem: Problem }

/**
 * Changes plants, and prints them.
 *
 * @param store undefined for a default store that does not exist yet, in which no plant is found
 * @returns how many plants were changed
 * @throws {PlantsError} the worst error, which is reported already
 */
export async function changePlants(
  verb: 'update' | 'delete',
  changes: readonly Change[],
  store: Store | undefined,
  options: ChangeOptions,
  context: CommandContext,
): Promise<number> {
  const { isSingle, isDryRun } = options
  const style = await createStyle(context)
  const pastVerb = verb === 'update' ? 'Updated' : 'Deleted'
  const prefix = isDryRun ? `Would ${verb}` : pastVerb
  const formatLine = (plant: PrintedPlant) =>
    plant.before
      ? describeChange(prefix, plant.before, plant, style)
      : `${prefix} ${describePlant(plant, style)}`
  const isSilent = context.reporter.isQuiet && !isDryRun
  const formatText = (plants: PrintedPlant[]) =>
    isSilent ? '' : plants.map((plant) => `${formatLine(plant)}\n`).join('')
  const results = applyPages(changes, store, options, context)
  const printer = createPrinter({ text: formatText }, context, isSingle)
  return printAndReport(results, printer, context, options)
}

/**
 * A page is one transaction of a direct store, and its requests to a service are sent concurrently.
 * If stdout cannot be written, as on a full disk, the output lacks at most the changes of one page.
 */
const changesPerPage = 64

export function* splitIntoPages<T>(items: readonly T[]): Generator<T[]> {
  for (let start = 0; start < items.length; start += changesPerPage)
    yield items.slice(start, start + changesPerPage)
}

async function* applyPages(
  changes: readonly Change[],
  store: Store | undefined,
  { isDryRun, missingIds = [] }: ChangeOptions,
  context: CommandContext,
): AsyncGenerator<PlantResult[]> {
  const signal = context.io.getStopSignal()
  for (const page of splitIntoPages(changes)) {
    signal.throwIfAborted()
    const outcomes =
      isDryRun || !store ? await planOutcomes(page, store) : await store.write(page, { signal })
    yield outcomes.flatMap((outcome, index) =>
      toResult(outcome, getTargetId(assertDefined(page[index])), isDryRun, context),
    )
    if (outcomes.some(({ type }) => type === 'notSent')) return
  }
  yield missingIds.map((id) => ({ problem: createNotFoundProblem(id) }))
}

/** Finds the outcomes that changes would have, without applying the changes. */
async function planOutcomes(page: Change[], store: Store | undefined): Promise<Outcome[]> {
  const storedPlants = await store?.get(page.map(getTargetId))
  const plants = Array.from(storedPlants?.values() ?? [], (plant) => ({ plant }))
  return planChanges(plants, page).outcomes
}

/** A skipped change has no result: the array that replaces it is empty. */
function toResult(
  outcome: Outcome,
  id: bigint,
  isDryRun: boolean,
  { output, storeFlag }: CommandContext,
): PlantResult | [] {
  if (outcome.type === 'skipped') return []
  if (!('problem' in outcome)) {
    // The sentence for people names what has changed. Programs get the plant only.
    const before = output === 'text' && 'before' in outcome && { before: outcome.before }
    return { plant: { ...(isDryRun && { dryRun: true }), ...outcome.plant, ...before } }
  }
  const { kind, message, hint } = outcome.problem
  if (outcome.type !== 'unknown' || hint !== undefined) return outcome
  // Several requests are in flight, so the hint must name the plant whose outcome is unknown.
  const lookupHint = `To see whether plant ${id} was changed: plants get ${id}${storeFlag}`
  return { problem: createProblem(kind, message, lookupHint) }
}

/**
 * Prints results as they come, and reports their errors.
 *
 * @param options.isDryRun whether nothing is changed, which is also so for `get`
 * @returns how many plants had no error
 * @throws {PlantsError} the worst error after the last page. It is reported already.
 */
export async function printAndReport(
  pages: AsyncIterable<PlantResult[]>,
  printer: Printer<PrintedPlant>,
  context: CommandContext,
  { ignoresMissing = false, isDryRun = true }: Partial<ChangeOptions> = {},
): Promise<number> {
  let successCount = 0
  let worstError: PlantsError | undefined
  // A reader of stdout that ends early, as `head` does, must not stop changes halfway.
  const ignoreClosedReader = (error: unknown) => {
    if (isDryRun) throw error
    ignoreClosedPipe(addKeptHint(error))
  }
  for await (const page of pages) {
    const plants = page.flatMap((result) => ('plant' in result ? [result.plant] : []))
    if (plants.length > 0) await printer.printRows(plants).catch(ignoreClosedReader)
    successCount += plants.length
    for (const problem of findProblems(page, ignoresMissing)) {
      const error = addStoreToError(problem, context)
      await context.reporter.reportError(error)
      if (!worstError || error.exitCode > worstError.exitCode) worstError = error
    }
  }
  // If everything failed, there is no list to end: JSON output would be an empty array.
  if (successCount > 0 || !worstError) await printer.end().catch(ignoreClosedReader)
  if (worstError) throw new PlantsError(worstError.kind, worstError.message, { isReported: true })
  return successCount
}

/**
 * Returns each problem once. When a service fails, all changes that are not sent have the same
 * problem, and several requests in flight may fail for the same reason.
 */
function findProblems(page: readonly PlantResult[], ignoresMissing: boolean): Problem[] {
  const problems = new Map<unknown, Problem>()
  for (const result of page) {
    if (!('problem' in result)) continue
    const { problem } = result
    const { kind, message, hint } = problem
    // A failure that concerns one plant has the exit code 1.
    const isOfService = errorKinds[kind].exitCode > 1
    problems.set(isOfService ? JSON.stringify([kind, message, hint]) : problem, problem)
  }
  return [...problems.values()].filter(({ kind }) => !ignoresMissing || kind !== 'notFound')
}

/**
 * Converts a problem to an error. The error of a missing plant also names the store, because
 * somebody may have chosen the wrong store.
 */
function addStoreToError(problem: Problem, { address, storeFlag }: CommandContext): PlantsError {
  const { kind, message } = problem
  if (kind !== 'notFound') return toError(problem)
  const hint = `List the plants with: plants list${storeFlag}`
  return new PlantsError(kind, `${message} in ${address.name}`, { hint })
}
