/*
 * Changes several plants: pages of changes go to the store, and the outcomes of each page are
 * printed before the next one. A failure of one plant does not end the others. The worst error
 * decides the exit code.
 */

import { assertDefined, PlantsError, systemCode } from '../errors.js'
import { describeChange, describePlant } from '../output/output.js'
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
import { findKind } from '../stores/kinds.js'
import { planChanges } from '../stores/plan.js'
import type { Store } from '../stores/store.js'
import type { CommandContext } from './command-context.js'

interface ChangeOptions {
  isDryRun: boolean
  /** Whether JSON output is one value instead of an array. */
  isSingle: boolean
  ignoresMissing?: boolean
  /** Ids that no plant had when a person was asked. A plant that got one since is not changed. */
  missing?: readonly bigint[]
}

/** A plant after its change, or as the change of a dry run would leave it. */
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
  const { isSingle, isDryRun } = options
  const style = await context.createStreamStyle()
  const what = isDryRun ? `Would ${verb}` : { update: 'Updated', delete: 'Deleted' }[verb]
  const formatLine = (plant: PrintedPlant) =>
    plant.before
      ? describeChange(what, plant.before, plant, style)
      : `${what} ${describePlant(plant, style)}`
  const isSilent = context.reporter.isQuiet && !isDryRun
  const text = (plants: PrintedPlant[]) =>
    isSilent ? '' : plants.map((plant) => `${formatLine(plant)}\n`).join('')
  const results = applyPages(changes, store, options, context)
  return printResults(results, context.createPrinter({ text }, isSingle), context, options)
}

/**
 * A page is one transaction, or is in flight at a service. If stdout cannot be written, as on a
 * full disk, the output lacks no more changes than these.
 */
const changesPerPage = 64

export function* splitIntoPages<T>(items: readonly T[]): Generator<T[]> {
  for (let from = 0; from < items.length; from += changesPerPage)
    yield items.slice(from, from + changesPerPage)
}

async function* applyPages(
  changes: readonly Change[],
  store: Store | undefined,
  { isDryRun, missing = [] }: ChangeOptions,
  context: CommandContext,
): AsyncGenerator<PlantResult[]> {
  const signal = context.io.handleSignals()
  for (const page of splitIntoPages(changes)) {
    signal.throwIfAborted()
    const outcomes =
      isDryRun || !store ? await planOutcomes(page, store) : await store.write(page, { signal })
    yield outcomes.flatMap((outcome, at) =>
      toResult(outcome, getTargetId(assertDefined(page[at])), isDryRun, context),
    )
    if (outcomes.some(({ type }) => type === 'notSent')) return
  }
  yield missing.map((id) => ({ error: createNotFoundProblem(id) }))
}

async function planOutcomes(page: Change[], store: Store | undefined): Promise<Outcome[]> {
  const stored = await store?.get(page.map(getTargetId))
  const plants = Array.from(stored?.values() ?? [], (plant) => ({ plant }))
  return planChanges(plants, page).outcomes
}

function toResult(
  outcome: Outcome,
  id: bigint,
  isDryRun: boolean,
  { output, storeFlag }: CommandContext,
): PlantResult | [] {
  if (outcome.type === 'skipped') return []
  if (!('error' in outcome)) {
    const before = output === 'text' && 'before' in outcome && { before: outcome.before }
    return { plant: { ...(isDryRun && { dryRun: true }), ...outcome.plant, ...before } }
  }
  const { kind, message, hint } = outcome.error
  if (outcome.type !== 'unknown' || hint !== undefined) return outcome
  // Several requests are in flight, so the hint must name the plant whose outcome is unknown.
  const look = `Look at it with: plants get ${id}${storeFlag}`
  return {
    error: createProblem(kind, message, `Whether plant ${id} was changed is unknown. ${look}`),
  }
}

/**
 * Prints results as they come, and reports their errors.
 *
 * @returns how many plants had no error
 * @throws {PlantsError} the worst error after the last page. It is reported already.
 */
export async function printResults(
  pages: AsyncIterable<PlantResult[]>,
  printer: Printer<PrintedPlant>,
  context: CommandContext,
  { ignoresMissing = false, isDryRun = true }: Partial<ChangeOptions> = {},
): Promise<number> {
  let succeeded = 0
  let worst: PlantsError | undefined
  // If the reader of stdout has ended, as `head` does, the changes still go on.
  const ignoreClosedReader = (error: unknown) => {
    if (isDryRun || systemCode(error) !== 'EPIPE') throw error
  }
  for await (const page of pages) {
    const plants = page.flatMap((result) => ('plant' in result ? [result.plant] : []))
    if (plants.length > 0) await printer.printRows(plants).catch(ignoreClosedReader)
    succeeded += plants.length
    for (const reason of findProblems(page, ignoresMissing)) {
      const error = toStoreError(reason, context)
      await context.reporter.reportError(error)
      worst = chooseWorse(worst, error)
    }
  }
  // An error without any result prints no empty list.
  if (succeeded > 0 || !worst) await printer.end().catch(ignoreClosedReader)
  if (worst) throw new PlantsError(worst.kind, worst.message, { isReported: true })
  return succeeded
}

/** Returns each problem once: all changes that were not sent to a failed service share theirs. */
function findProblems(page: readonly PlantResult[], ignoresMissing: boolean): Problem[] {
  const problems = new Set(page.flatMap((result) => ('error' in result ? [result.error] : [])))
  return [...problems].filter(({ kind }) => !ignoresMissing || kind !== 'notFound')
}

/** Returns the first of two errors that are equally bad. */
function chooseWorse(first: PlantsError | undefined, second: PlantsError): PlantsError {
  return first && first.exitCode >= second.exitCode ? first : second
}

/** Adds the name of the store to an error of a missing plant: it may be the wrong store. */
function toStoreError(reason: Problem, { address, storeFlag }: CommandContext): PlantsError {
  const { kind, message } = reason
  if (kind !== 'notFound') return toError(reason)
  const addressHint = findKind(address).findAddressHint(address)
  const hint = addressHint ?? `List the plants with: plants list${storeFlag}`
  return new PlantsError(kind, `${message} in ${address.name}`, { hint })
}
