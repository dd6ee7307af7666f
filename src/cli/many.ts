import { describePlant, recordPrinter, type Style, styleFor, writeError } from '../output/output.js'
import { toJson } from '../plant/exact-json.js'
import { type NewPlant, plantCount } from '../plant/plant.js'
import { PlantsError, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { defaultConcurrency } from '../stores/common/store.js'
import type { Settings } from './context.js'

type Verb = 'delete' | 'update'

interface Work<Target> {
  /**
   * Returns undefined if there is nothing to print. Called for several plants at once. The errors `notFound` and
   * `conflict` do not stop the others.
   */
  perform(target: Target): Promise<NewPlant | undefined>
  /** what it does to the plants; undefined if they are only read */
  verb?: Verb
  isDryRun?: boolean
  /** whether the number of plants is reported at the end */
  isCounted?: boolean
  describe?(plant: NewPlant, style: Style): string
  /** by default a sentence for each plant */
  text?(): Promise<(plants: NewPlant[]) => string>
  /** of earlier steps */
  failures?: PlantsError[] | undefined
}

/** Prints the results. Reports all failures, and throws the most severe one. */
export async function performAll<Target>(
  pages: AsyncIterable<Target[]> | Target[][],
  work: Work<Target>,
  settings: Settings,
  io: Io,
): Promise<void> {
  const { verb, failures = [] } = work
  const results = await resultsPrinter(work, settings, io)
  try {
    for await (const some of parts(pages)) {
      io.signal.throwIfAborted()
      // so that many do not stay in memory
      for (const failure of failures.splice(0, failures.length - 1)) await writeError(io, failure, settings)
      const settled = await Promise.allSettled(some.map(work.perform)) // at once, so that they share commits
      failures.push(...settled.flatMap((each) => (each.status === 'rejected' ? plantsErrorOf(each.reason) : [])))
      await results.print(settled.flatMap((each) => (each.status === 'fulfilled' ? (each.value ?? []) : [])))
      if (failures.some(({ type }) => type !== 'conflict' && type !== 'notFound')) break
    }
    if (results.total > 0 || failures.length === 0) await results.end() // no empty list for an error alone
  } catch (error) {
    failures.push(plantsErrorOf(error, results.changed && `${results.changed}. No more were ${verb}d`))
  }
  const isDone = results.total > 0 || failures.length === 0
  if (work.isCounted && isDone && !failures.some(({ isInterruption }) => isInterruption))
    await settings.warn(`${inPast(work)} ${plantCount(results.total)}`)
  await throwWorst(failures, verb && { verb, total: work.isDryRun ? 0 : results.total }, settings, io)
}

async function resultsPrinter(work: Work<never>, settings: Settings, io: Io) {
  const { verb, isDryRun = false, text = () => sentences(work, settings, io) } = work
  const { print, end } = await recordPrinter<NewPlant>(io, settings, { text })
  const nothing = verb && `Nothing was ${verb}d`
  const results = {
    total: 0,
    /** what a failed write would hide */
    changed: undefined as string | undefined,
    async print(plants: NewPlant[]) {
      results.total += plants.length
      if (verb && !isDryRun && results.total > 0) results.changed = unprinted(verb, results.total, plants)
      const shown = isDryRun ? plants.map((plant) => ({ dryRun: true, ...plant })) : plants
      if (plants.length > 0) await print(shown, results.changed ?? nothing)
    },
    end: () => end(results.changed ?? nothing),
  }
  return results
}

/** Such as `Updated` or `Would update`. */
function inPast({ verb = 'update', isDryRun }: { verb?: Verb; isDryRun?: boolean }): string {
  return isDryRun ? `Would ${verb}` : `${verb.charAt(0).toUpperCase()}${verb.slice(1)}d`
}

async function sentences(work: Work<never>, { colors, isQuiet }: Settings, io: Io) {
  const style = await styleFor(colors(io.stdout))
  const { describe = describePlant } = work
  const line = (plant: NewPlant) => `${inPast(work)} ${describe(plant, style)}\n`
  return (plants: NewPlant[]) => (isQuiet && !work.isDryRun ? '' : plants.map(line).join(''))
}

/** @param outcome what a closed pipe, which is no failure elsewhere, would hide */
function plantsErrorOf(error: unknown, outcome?: string): PlantsError {
  if (error instanceof PlantsError) return error
  if (systemCode(error) !== 'EPIPE' || outcome === undefined) throw error
  return new PlantsError('unwritable', 'The output was closed', { hint: outcome })
}

/** If this is not printed, one plant can still be created again. */
function unprinted(verb: Verb, total: number, [first]: NewPlant[]): string {
  const what = total === 1 && first ? toJson({ ...first }) : plantCount(total)
  return `${inPast({ verb })}, but not printed completely: ${what}`
}

/** As many at once as requests may be in flight, so that the time-out of none begins while it waits for others. */
async function* parts<Target>(pages: AsyncIterable<Target[]> | Target[][]): AsyncGenerator<Target[]> {
  for await (const page of pages) {
    for (let from = 0; from < page.length; from += defaultConcurrency) yield page.slice(from, from + defaultConcurrency)
  }
}

/** A message that several plants share is printed once, and says how many. */
async function throwWorst(
  failures: PlantsError[],
  done: { verb: Verb; total: number } | undefined,
  settings: Settings,
  io: Io,
): Promise<void> {
  const groups = new Map<string, PlantsError[]>()
  for (const failure of failures) {
    const key = JSON.stringify([failure.exitCode, ...(failure.isInterruption ? [] : [failure.message, failure.hint])])
    groups.set(key, [...(groups.get(key) ?? []), failure])
  }
  const different = [...groups.values()].flatMap(([first, ...others]) => {
    if (!first) return []
    const { type, message, cause, ...details } = first
    if (first.isInterruption) {
      const { message: what } = io.signal.reason as PlantsError // the signal is only aborted with a PlantsError
      if (!done) return new PlantsError(type, what)
      const hints = [first, ...others].flatMap(({ hint }) => hint ?? [])
      const hint =
        hints.length > 1 ? `Whether ${plantCount(hints.length)} more were ${done.verb}d is unknown` : hints[0]
      const after = `${what} after ${done.verb.slice(0, -1)}ing ${plantCount(done.total)}`
      return new PlantsError(type, after, { ...details, hint, cause: first })
    }
    if (others.length === 0) return first
    return new PlantsError(type, `${message} (${plantCount(others.length + 1)})`, { ...details, cause })
  })
  const bySeverity = different.toSorted((one, other) => one.exitCode - other.exitCode)
  const worst = bySeverity.pop()
  for (const failure of bySeverity) await writeError(io, failure, settings)
  if (worst) throw worst
}
