import { describePlant, type Style } from '../output/output.js'
import type { Printer } from '../output/printer.js'
import { Progress } from '../output/progress.js'
import type { Reporter } from '../output/reporter.js'
import { isObject, parseJson } from '../plant/exact-json.js'
import { grouped, idFromText, plantCount, type StoredPlant } from '../plant/plant.js'
import { PlantsError, systemCode, usageError } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import { wholeLines } from '../platform/lines.js'
import { decoderOf, explainRead, maxDocumentBytes } from '../platform/text-files.js'
import { defaultConcurrency } from '../stores/http/http-options.js'
import type { SettingsContext } from './command-context.js'
import { parseId } from './options.js'

/** What a command does to plants, in the words of its messages. */
const actions = {
  delete: { past: 'Deleted', passive: 'deleted', participle: 'deleting' },
  update: { past: 'Updated', passive: 'updated', participle: 'updating' },
}
type Action = keyof typeof actions

interface Work<Target> {
  /** Called for several at once. The errors `notFound` and `conflict` do not stop the others. */
  perform(target: Target): Promise<StoredPlant | undefined>
  printer: Printer<StoredPlant>
  /** Undefined if the plants are only read. */
  action?: Action
  isDryRun?: boolean
  /** Whether the number of plants is reported at the end. */
  isCounted?: boolean
  /** Whether the number of plants is printed at the end, in place of the plants. */
  isSummed?: boolean
}

/** Whether a person reads the result, for whom a number is enough. */
export function mayBeSummed({ output, io }: SettingsContext): boolean {
  return output === 'text' && io.stdout.isTerminal
}

/** Prints the results, and each failure as it occurs. Throws the most severe one at the end. */
export async function performAll<Target>(
  pages: AsyncIterable<Target[]> | Target[][],
  work: Work<Target>,
  context: SettingsContext,
): Promise<void> {
  const { reporter, io } = context
  const { action, printer, isDryRun = false } = work
  const words = action && actions[action]
  const changes = isDryRun ? undefined : words
  const progress = new Progress(io, showsProgress(work, context))
  const failures = new Failures(reporter, progress)
  let total = 0
  let tried = 0
  const done = () => (changes ? `${changes.past} ${plantCount(total)}` : 'Nothing was changed')
  try {
    for await (const part of parts(pages)) {
      io.handleSignals().throwIfAborted()
      const { plants, reasons } = await settle(part, work)
      for (const reason of reasons) await failures.add(reason)
      total += plants.length
      tried += part.length
      if (plants.length > 0) await printer.rows(isDryRun ? asDryRun(plants) : plants, done())
      if (failures.isFinal) {
        await noteUntried(changes?.passive, partOf(tried, pages), reporter)
        break
      }
      progress.show({ done: total, part: partOf(total, pages) })
    }
    await progress.clear()
    if (total > 0 || !failures.worst) await printer.end(done()) // no empty list for an error alone
  } catch (error) {
    await failures.add(
      changes ? explainClosed(error, `${done()}. No more were ${changes.passive}`) : error,
    )
  }
  const { worst } = failures
  if (worst?.isInterruption)
    throw interrupted(
      worst,
      io.handleSignals(),
      words && ` after ${words.participle} ${plantCount(isDryRun ? 0 : total)}`,
    )
  if (total > 0 || !worst) await printTotal(total, work, context)
  if (worst) throw worst
}

async function noteUntried(
  passive: string | undefined,
  part: number | undefined,
  reporter: Reporter,
): Promise<void> {
  if (passive !== undefined && part !== 1) await reporter.warn(`No more were ${passive}`)
}

/** A line for each plant would overwrite it. */
function showsProgress(
  { action, isSummed }: Work<never>,
  { reporter, io }: SettingsContext,
): boolean {
  return (
    action !== undefined && reporter.showsProgress && (isSummed === true || !io.stdout.isTerminal)
  )
}

/** Undefined if the number of all is not known. */
function partOf(done: number, pages: AsyncIterable<unknown> | unknown[][]): number | undefined {
  const all = Array.isArray(pages) ? pages.reduce((sum, page) => sum + page.length, 0) : 0
  return all > 0 ? done / all : undefined
}

async function printTotal(
  total: number,
  work: Work<never>,
  context: SettingsContext,
): Promise<void> {
  const { action, isDryRun = false, isCounted, isSummed } = work
  if (action === undefined) return
  const sentence = `${pastOf(action, isDryRun)} ${plantCount(total)}`
  if (isSummed) await context.print({}, sentence)
  else if (isCounted) await context.reporter.warn(sentence)
}

function pastOf(action: Action, isDryRun: boolean): string {
  return isDryRun ? `Would ${action}` : actions[action].past
}

function asDryRun(plants: StoredPlant[]): StoredPlant[] {
  return plants.map((plant) => ({ dryRun: true, ...plant }))
}

/** Performs all at once, so that they share commits. */
async function settle<Target>(part: Target[], { perform }: Work<Target>) {
  const settled = await Promise.allSettled(part.map(perform))
  return {
    plants: settled.flatMap((each) => (each.status === 'fulfilled' ? (each.value ?? []) : [])),
    reasons: settled.flatMap((each) =>
      each.status === 'rejected' ? [each.reason as unknown] : [],
    ),
  }
}

/** Prints a sentence for each plant: without --quiet, or for a dry run. */
export async function sentencePrinter(
  action: Action,
  { isDryRun, isSummed }: { isDryRun: boolean; isSummed: boolean },
  context: SettingsContext,
  sentence = (verb: string, plant: StoredPlant, style: Style) =>
    `${verb} ${describePlant(plant, style)}`,
): Promise<Printer<StoredPlant>> {
  const style = await context.style()
  const verb = pastOf(action, isDryRun)
  const isSilent = isSummed || (context.reporter.isQuiet && !isDryRun)
  const textOf = (plants: StoredPlant[]) =>
    plants.map((plant) => `${sentence(verb, plant, style)}\n`).join('')
  return context.printer({ text: (plants) => (isSilent ? '' : textOf(plants)) })
}

/** After the reader closed the output, only the error shows what was changed. */
function explainClosed(error: unknown, hint: string): unknown {
  if (systemCode(error) !== 'EPIPE') return error
  return new PlantsError('unwritable', 'The output was closed', { hint, cause: error })
}

function interrupted(cause: PlantsError, signal: AbortSignal, after = ''): PlantsError {
  const { kind, message } = signal.reason as PlantsError // no pager shows changes
  return new PlantsError(kind, message + after, { hint: cause.hint, cause })
}

/** Keeps the worst one, and prints the others. */
class Failures {
  worst: PlantsError | undefined
  readonly #reporter: Reporter
  readonly #progress: Progress

  constructor(reporter: Reporter, progress: Progress) {
    this.#reporter = reporter
    this.#progress = progress
  }

  /** The others would fail, too. */
  get isFinal(): boolean {
    return (
      this.worst !== undefined && !['conflict', 'constraint', 'notFound'].includes(this.worst.kind)
    )
  }

  /** @throws what is not an error of ours */
  async add(failure: unknown): Promise<void> {
    await this.#progress.clear()
    if (!(failure instanceof PlantsError)) throw failure
    const { worst } = this
    // Of several interruptions, one with a hint: what became of its plant is unknown.
    const isWorse =
      failure.exitCode >= (worst?.exitCode ?? 0) &&
      !(worst?.isInterruption && failure.hint === undefined)
    if (isWorse) this.worst = failure
    const lesser = isWorse ? worst : failure
    // An interruption with a hint is of a plant whose change is unknown.
    if (lesser && (!lesser.isInterruption || lesser.hint !== undefined))
      await this.#reporter.reportError(lesser)
  }
}

/** Splits pages into as many targets as requests may be in flight, so that no time-out begins while one waits. */
async function* parts<Target>(
  pages: AsyncIterable<Target[]> | Target[][],
): AsyncGenerator<Target[]> {
  for await (const page of pages) {
    for (let from = 0; from < page.length; from += defaultConcurrency)
      yield page.slice(from, from + defaultConcurrency)
  }
}

/** Reads the ids, each once, from the arguments or, for `-`, from stdin to its end. */
export async function readIds(args: readonly string[], io: Io): Promise<bigint[]> {
  if (!args.includes('-')) return [...new Set(args.map((text) => parseId('id', text)))]
  if (args.length > 1)
    throw usageError(
      '"-" reads all ids from stdin, but other ids were given',
      'Leave out one of them',
    )
  const ids = new Set<bigint>()
  let line = 0
  let count = 0
  for await (const text of linesOf(io.stdin.chunks())) {
    line += 1
    if (text.trim() === '') continue
    ids.add(idIn(text.trim(), line))
    count += 1
    if (count > maxIds)
      throw usageError(
        `Stdin has more than ${grouped(maxIds)} ids`,
        `For parts of that many: split -l ${maxIds}`,
      )
  }
  return [...ids]
}

const maxIds = 1_000_000

/** In bytes: of a plant of 1 MiB, an escape may take six for each. */
const maxLine = 6 * maxDocumentBytes + 64

function idIn(text: string, line: number): bigint {
  const parsed = text.startsWith('{') ? parseJson(text) : { value: { id: idFromText(text) } }
  const id = 'value' in parsed && isObject(parsed.value) ? parsed.value['id'] : undefined
  if (typeof id === 'bigint') return id
  if (/^[+-]?\d/.test(text)) return parseId(`Line ${line} of stdin`, text) // says what is wrong with it
  throw usageError(
    `Line ${line} of stdin is neither an id nor a plant with an id: ${JSON.stringify(shorten(text))}`,
    'For one plant on each line: plants list --output ndjson',
  )
}

/** Yields lines without their line feed; the CR of a CRLF stays. */
async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decode = decoderOf('Stdin')
  const tooLong = () => usageError('A line of stdin is too long for a plant', oneOnEachLine)
  try {
    for await (const block of wholeLines(chunks, { max: maxLine, tooLong })) {
      const text = decode(block, false)
      yield* (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n')
    }
    decode(new Uint8Array()) // throws if the input ends within a character
  } catch (error) {
    throw explainRead('-', error, oneOnEachLine)
  }
}

const oneOnEachLine = 'Pipe ids or plants to stdin, one on each line'
