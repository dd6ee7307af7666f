import { warn, writeResult } from '../output/output.js'
import { PlantsError, shellWord } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { isReadable } from '../stores/registry.js'
import type { Import } from '../transfer/import/import.js'
import type { ImportOrder } from '../transfer/import/order.js'
import type { Position } from '../transfer/import/position.js'
import { clockOf, grouped } from '../transfer/import/progress.js'
import { refusedIn, settledIn, type Tally } from '../transfer/import/tally.js'
import type { Settings } from './settings.js'

/** refused plants that are shown to a person */
export const mostShown = 20

/** What an import says at its end. */
export class Summary {
  readonly #io: Io
  readonly #order: ImportOrder
  readonly #settings: Settings
  readonly #start: number
  /** settled by earlier runs */
  readonly #before: number

  constructor(order: ImportOrder, settings: Settings, io: Io, position: Position | undefined) {
    this.#io = io
    this.#order = order
    this.#settings = settings
    this.#start = io.now()
    this.#before = position ? settledIn(position.tally) : 0
  }

  /** Writes it. Throws `incomplete` when plants were refused, `unknownOutcome` when it is not known of some whether they are stored. */
  async write(importing: Import, hasJournal: boolean): Promise<void> {
    await this.#warn(importing)
    const seconds = Math.round(this.#io.now() - this.#start) / 1000
    const rate = Math.round((settledIn(importing.tally) - this.#before) / Math.max(seconds, 0.001))
    const counts = this.#count(importing.tally)
    const rejects = counts.refused > 0 ? this.#order.rejects : undefined
    const { valid, created, ...others } = counts
    const first = valid === undefined ? { created } : { valid }
    const since = this.#before > 0 ? ' since it went on' : ''
    const sentence = `${sentenceOf(counts, importing.tally)} in ${timeOf(seconds)}${since}${seconds < 1 ? '' : ` (${grouped(rate)}/s)`}`
    await writeResult(this.#io, this.#settings, { ...first, ...others, seconds, rate, rejects }, `${sentence}: ${listOf(counts)}`)
    throwUnknown(importing.tally, this.#order)
    if (counts.refused > 0) throw this.#incomplete(importing, hasJournal)
  }

  async #warn({ tally, refused }: Import): Promise<void> {
    const hidden = refused - mostShown
    if (hidden > 0 && this.#settings.errors === 'text')
      await warn(
        this.#io,
        hidden === 1 ? '1 more was refused than is shown here' : `${grouped(hidden)} more were refused than are shown here`,
        this.#settings,
      )
    const fields = Object.entries(tally.otherFields)
    for (const [name, count] of fields.slice(0, mostShown))
      await warn(this.#io, `${describeField(name)} (of ${plants(count)})`, this.#settings)
    const more = fields.length - mostShown
    if (more > 0) await warn(this.#io, `Not stored either: ${grouped(more)} more ${more === 1 ? 'field' : 'fields'}`, this.#settings)
    if (this.#order.staging === 'check' && !isReadable(this.#settings.store))
      await warn(this.#io, `Only the input was checked: what ${this.#settings.store.name} holds, its service does not tell`, this.#settings)
  }

  #count(tally: Tally): Counts {
    const { staging } = this.#order
    const { created, skipped, unknown } = tally
    const refused = refusedIn(tally)
    const others = { skipped, refused, reasons: tally.refused, unknown }
    return staging === 'check' ? { valid: created, ...others } : { created: staging === 'atomic' && refused > 0 ? 0 : created, ...others }
  }

  #incomplete({ tally, isDone, format }: Import, hasJournal: boolean): PlantsError {
    const { plan, rejects, staging } = this.#order
    const refused = refusedIn(tally)
    const [only, ...others] = Object.keys(tally.refused)
    const stopped = isDone ? '' : ', and the import stopped there'
    const nothing = staging === 'atomic' ? ', so nothing was created' : ''
    const hints = {
      stoppedBefore: hasJournal ? 'Mend it, then run the same command again: it goes on there' : 'Mend it. What stands before it was taken',
      stoppedBehind: hasJournal ? 'The same command goes on behind them' : 'What stands behind them was not read',
      staged: 'Mend the input: nothing was created',
      kept: `Mend them in ${rejects}, then: plants import ${shellWord(rejects ?? '')}${format === 'json' ? ' --format json' : ''}`,
      lost: 'To keep the refused plants in a file, add --rejects PATH',
    }
    const stop = plan.stopsAtRefusal ? hints.stoppedBefore : hints.stoppedBehind
    const end = staging ? hints.staged : rejects === undefined ? hints.lost : hints.kept
    return new PlantsError('incomplete', `${plants(refused)} ${refused === 1 ? 'was' : 'were'} refused${stopped}${nothing}`, {
      hint: isDone || staging ? end : stop,
      ...(others.length === 0 && only !== undefined ? { error: parseInt(only, 10) } : {}),
    })
  }
}

function describeField(name: string): string {
  const alike = ['id', 'name', 'tag'].find((field) => field === name.trim().toLowerCase())
  const hint = alike === undefined ? '' : `; if it is the ${alike}: --map ${shellWord(`${alike}=${name}`)}`
  return `Not stored, because a NewPlant has only id, name and tag: ${JSON.stringify(name)}${hint}`
}

interface Counts {
  created?: number
  /** of a check */
  valid?: number
  skipped: number
  refused: number
  reasons: Record<string, number>
  unknown: number
}

function throwUnknown({ unknown }: Tally, { rejects }: ImportOrder): void {
  if (unknown === 0) return
  throw new PlantsError('unknownOutcome', `Whether ${plants(unknown)} ${unknown === 1 ? 'is' : 'are'} stored is not known`, {
    hint: rejects === undefined ? 'Look in the store for those that were named' : `They are in ${rejects}: look in the store for them`,
  })
}

function sentenceOf({ valid }: Counts, tally: Tally): string {
  return `${valid === undefined ? 'Read' : 'Checked'} ${plants(settledIn(tally))}`
}

function listOf({ created, valid, skipped, refused, reasons, unknown }: Counts): string {
  return [
    valid === undefined ? `${grouped(created ?? 0)} created` : `${grouped(valid)} can be created`,
    skipped > 0 ? `${grouped(skipped)} skipped` : [],
    refused > 0 ? `${grouped(refused)} refused (${reasonsOf(reasons)})` : [],
    unknown > 0 ? `${grouped(unknown)} unknown` : [],
  ]
    .flat()
    .join(', ')
}

function reasonsOf(reasons: Readonly<Record<string, number>>): string {
  const entries = Object.entries(reasons)
  return entries.map(([error, count]) => (entries.length === 1 ? error : `${error}: ${grouped(count)}`)).join(', ')
}

export function plants(count: number): string {
  return `${grouped(count)} ${count === 1 ? 'plant' : 'plants'}`
}

function timeOf(seconds: number): string {
  return seconds < 90 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : clockOf(seconds)
}
