import { describePlant, recordPrinter, type Style, styleFor, writeError } from '../output/output.js'
import { type NewPlant, plantCount } from '../plant/plant.js'
import { PlantsError, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { defaultConcurrency } from '../stores/common/store.js'
import type { Settings } from './settings.js'

interface Work<Target> {
  /** Called for several at once. The errors `notFound` and `conflict` do not stop the others. */
  perform(target: Target): Promise<NewPlant | undefined>
  /** what it does to the plants; undefined if they are only read */
  verb?: 'delete' | 'update'
  isDryRun?: boolean
  /** whether the number of plants is reported at the end */
  isCounted?: boolean
  describe?(plant: NewPlant, style: Style): string
  /** by default a sentence for each plant */
  text?(): Promise<(plants: NewPlant[]) => string>
}

/** Prints the results, and each failure as it occurs. Throws the most severe one at the end. */
export async function performAll<Target>(
  pages: AsyncIterable<Target[]> | Target[][],
  work: Work<Target>,
  settings: Settings,
  io: Io,
): Promise<void> {
  const { verb, isDryRun = false, isCounted = false } = work
  const past = verb && inPast(verb, isDryRun)
  const text = work.text ?? (async () => sentences(past, work, settings, await styleFor(settings.colors(io.stdout))))
  const { print, end } = await recordPrinter<NewPlant>(io, settings, { text })
  const failures = new Failures(settings, io)
  let total = 0
  const done = () => (past && !isDryRun ? `${past} ${plantCount(total)}` : 'Nothing was changed')
  try {
    for await (const some of parts(pages)) {
      io.signal.throwIfAborted()
      const settled = await Promise.allSettled(some.map(work.perform)) // at once, so that they share commits
      await failures.add(...settled.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : [])))
      const plants = settled.flatMap((each) => (each.status === 'fulfilled' ? (each.value ?? []) : []))
      total += plants.length
      if (plants.length > 0)
        await print(isDryRun ? plants.map((plant) => ({ dryRun: true, ...plant })) : plants, done())
      if (failures.isFinal) break
    }
    if (total > 0 || !failures.worst) await end(done()) // no empty list for an error alone
  } catch (error) {
    const isClosed = systemCode(error) === 'EPIPE' && verb !== undefined && !isDryRun
    const hint = `${done()}. No more were ${verb}d`
    await failures.add(
      isClosed ? new PlantsError('unwritable', 'The output was closed', { hint, cause: error }) : error,
    )
  }
  const { worst, unsettled } = failures
  if (worst?.isInterruption)
    throw interrupted(worst, verb && `${verb.slice(0, -1)}ing ${plantCount(isDryRun ? 0 : total)}`, unsettled, io)
  if (isCounted && (total > 0 || !worst)) await settings.warn(`${past} ${plantCount(total)}`)
  if (worst) throw worst
}

/** Such as `Updated` or `Would update`. */
function inPast(verb: string, isDryRun: boolean): string {
  return isDryRun ? `Would ${verb}` : `${verb.charAt(0).toUpperCase()}${verb.slice(1)}d`
}

/** Keeps the worst one, and prints the others. */
class Failures {
  worst: PlantsError | undefined
  /** the number of plants that were sent, and not answered before a signal */
  unsettled = 0
  readonly #settings: Settings
  readonly #io: Io

  constructor(settings: Settings, io: Io) {
    this.#settings = settings
    this.#io = io
  }

  /** Nothing else will succeed either. */
  get isFinal(): boolean {
    return this.worst !== undefined && this.worst.type !== 'conflict' && this.worst.type !== 'notFound'
  }

  /** @throws what is no error of ours */
  async add(...failures: unknown[]): Promise<void> {
    for (const failure of failures) {
      if (!(failure instanceof PlantsError)) throw failure
      if (failure.isInterruption && failure.hint !== undefined) this.unsettled += 1
      const isWorse = failure.exitCode >= (this.worst?.exitCode ?? 0)
      const lesser = isWorse ? this.worst : failure
      if (isWorse) this.worst = failure
      if (lesser && !lesser.isInterruption) await writeError(this.#io, lesser, this.#settings)
    }
  }
}

function sentences(past: string | undefined, work: Work<never>, { isQuiet }: Settings, style: Style) {
  const { isDryRun, describe = describePlant } = work
  return (plants: NewPlant[]) =>
    isQuiet && !isDryRun ? '' : plants.map((plant) => `${past} ${describe(plant, style)}\n`).join('')
}

function interrupted(cause: PlantsError, doing: string | undefined, unsettled: number, { signal }: Io): PlantsError {
  const { type, message } = signal.reason as PlantsError // the signal is only aborted with a PlantsError
  const hint = unsettled > 0 ? `Whether ${plantCount(unsettled)} more were changed is unknown` : undefined
  return new PlantsError(type, doing === undefined ? message : `${message} after ${doing}`, { hint, cause })
}

/** As many at once as requests may be in flight, so that the time-out of none begins while it waits for others. */
async function* parts<Target>(pages: AsyncIterable<Target[]> | Target[][]): AsyncGenerator<Target[]> {
  for await (const page of pages) {
    for (let from = 0; from < page.length; from += defaultConcurrency) yield page.slice(from, from + defaultConcurrency)
  }
}
