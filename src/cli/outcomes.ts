/*
 * Several plants at once: pages of changes go to the store, and what became of each is printed as
 * it comes. What fails for one plant does not end the others; the worst error decides the exit
 * code.
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
  const { isSingle, isDryRun } = options
  const style = await context.style()
  const what = isDryRun ? `Would ${verb}` : { update: 'Updated', delete: 'Deleted' }[verb]
  const formatLine = (plant: PrintedPlant) =>
    plant.before
      ? describeChange(what, plant.before, plant, style)
      : `${what} ${describePlant(plant, style)}`
  const isSilent = context.reporter.isQuiet && !isDryRun
  const text = (plants: PrintedPlant[]) =>
    isSilent ? '' : plants.map((plant) => `${formatLine(plant)}\n`).join('')
  const results = makeResults(changes, store, options, context)
  return printResults(results, context.printer({ text }, isSingle), context, options)
}

/**
 * Of changes in one transaction, or in flight: if stdout is on a full disk, no more of them are
 * hidden.
 */
const pageRows = 64

export function* inPages<T>(items: readonly T[]): Generator<T[]> {
  for (let from = 0; from < items.length; from += pageRows) yield items.slice(from, from + pageRows)
}

async function* makeResults(
  changes: readonly Change[],
  store: Store | undefined,
  { isDryRun, missing = [] }: ChangeOptions,
  context: CommandContext,
): AsyncGenerator<PlantResult[]> {
  const signal = context.io.handleSignals()
  for (const page of inPages(changes)) {
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
  // Of several requests in flight, only the hint says whose outcome is unknown.
  const look = `Look at it with: plants get ${id}${storeFlag}`
  return {
    error: createProblem(kind, message, `Whether plant ${id} was changed is unknown. ${look}`),
  }
}

/** Throws the worst error at the end, which is reported. Returns how many plants had none. */
export async function printResults(
  pages: AsyncIterable<PlantResult[]>,
  printer: Printer<PrintedPlant>,
  context: CommandContext,
  { ignoresMissing = false, isDryRun = true }: Partial<ChangeOptions> = {},
): Promise<number> {
  let succeeded = 0
  let worst: PlantsError | undefined
  // Changes go on when the reader has gone, as to `head`.
  const ignoreClosedReader = (error: unknown) => {
    if (isDryRun || systemCode(error) !== 'EPIPE') throw error
  }
  for await (const page of pages) {
    const plants = page.flatMap((result) => ('plant' in result ? [result.plant] : []))
    if (plants.length > 0) await printer.rows(plants).catch(ignoreClosedReader)
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

/** Returns each once: if a service failed, all changes that were not sent have the same problem. */
function findProblems(page: readonly PlantResult[], ignoresMissing: boolean): Problem[] {
  const problems = new Set(page.flatMap((result) => ('error' in result ? [result.error] : [])))
  return [...problems].filter(({ kind }) => !ignoresMissing || kind !== 'notFound')
}

/** Returns the first of two errors that are equally bad. */
function chooseWorse(first: PlantsError | undefined, second: PlantsError): PlantsError {
  return first && first.exitCode >= second.exitCode ? first : second
}

/** An id that no plant has is an error of this store, which may be the wrong one. */
function toStoreError(reason: Problem, { address, storeFlag }: CommandContext): PlantsError {
  const { kind, message } = reason
  if (kind !== 'notFound') return toError(reason)
  const addressHint = findKind(address).findAddressHint(address)
  const hint = addressHint ?? `List the plants with: plants list${storeFlag}`
  return new PlantsError(kind, `${message} in ${address.name}`, { hint })
}
