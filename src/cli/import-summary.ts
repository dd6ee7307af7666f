import { warn, writeResult } from '../output/output.js'
import { clockOf, grouped } from '../output/progress.js'
import { fieldsInWords, plantFields } from '../plant/fields.js'
import { PlantsError, shellWord } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { isReadable } from '../stores/registry.js'
import type { Import, ImportOptions } from '../transfer/import/import.js'
import { type Counters, type Position, rejectedIn, settledIn } from '../transfer/import/position.js'
import type { Settings } from './settings.js'

/** rejected records that are shown to a person at most */
export const maxShown = 20

/** What an import prints at its end. */
export class Summary {
  readonly #io: Io
  readonly #order: ImportOptions
  readonly #settings: Settings
  readonly #start: number
  /** settled by earlier runs */
  readonly #before: number

  constructor(order: ImportOptions, settings: Settings, io: Io, position: Position | undefined) {
    this.#io = io
    this.#order = order
    this.#settings = settings
    this.#start = io.now()
    this.#before = position ? settledIn(position.counters) : 0
  }

  /** Prints it. Throws `incomplete` when records were rejected, `unknownOutcome` when the outcome of some is unknown. */
  async write(importing: Import, hasJournal: boolean): Promise<void> {
    await this.#warn(importing)
    const seconds = Math.round(this.#io.now() - this.#start) / 1000
    const rate = Math.round((settledIn(importing.counters) - this.#before) / Math.max(seconds, 0.001))
    const counts = this.#count(importing.counters)
    const rejects = counts.refused > 0 ? this.#order.rejects : undefined
    const { valid, created, ...others } = counts
    const first = valid === undefined ? { created } : { valid }
    const since = this.#before > 0 ? ' since it was resumed' : ''
    const sentence = `${sentenceOf(counts, importing.counters)} in ${timeOf(seconds)}${since}${seconds < 1 ? '' : ` (${grouped(rate)}/s)`}`
    await writeResult(this.#io, this.#settings, { ...first, ...others, seconds, rate, rejects }, `${sentence}: ${listOf(counts)}`)
    throwUnknown(importing.counters, this.#order)
    if (counts.refused > 0) throw this.#incomplete(importing, hasJournal)
  }

  async #warn({ counters, rejected }: Import): Promise<void> {
    const hidden = rejected - maxShown
    if (hidden > 0 && this.#settings.errors === 'text')
      await warn(
        this.#io,
        hidden === 1 ? '1 more was refused than is shown here' : `${grouped(hidden)} more were refused than are shown here`,
        this.#settings,
      )
    const fields = Object.entries(counters.otherFields)
    for (const [name, count] of fields.slice(0, maxShown))
      await warn(this.#io, `${describeField(name)} (of ${plants(count)})`, this.#settings)
    const more = fields.length - maxShown
    if (more > 0) await warn(this.#io, `Not stored either: ${grouped(more)} more ${more === 1 ? 'field' : 'fields'}`, this.#settings)
    if (this.#order.staging === 'check' && !isReadable(this.#settings.store))
      await warn(this.#io, `Only the input was checked: what ${this.#settings.store.name} holds, its service does not tell`, this.#settings)
  }

  #count(counters: Counters): Counts {
    const { staging } = this.#order
    const { created, skipped, unknown } = counters
    const refused = rejectedIn(counters)
    const others = { skipped, refused, reasons: counters.refused, unknown }
    return staging === 'check' ? { valid: created, ...others } : { created: staging === 'atomic' && refused > 0 ? 0 : created, ...others }
  }

  #incomplete({ counters, isDone, isBeforeRecord, format }: Import, hasJournal: boolean): PlantsError {
    const { rejects, staging } = this.#order
    const refused = rejectedIn(counters)
    const [only, ...others] = Object.keys(counters.refused)
    const stopped = isDone ? '' : ', and the import stopped there'
    const nothing = staging === 'atomic' ? ', so nothing was created' : ''
    const hints = {
      stoppedBefore: hasJournal ? 'Fix it, then run the same command again to resume there' : 'Fix it. What comes before it was imported',
      stoppedAfter: hasJournal ? 'Run the same command again to resume after them' : 'What comes after them was not read',
      staged: 'Fix the input: nothing was created',
      kept: `Fix them in ${rejects}, then: plants import ${shellWord(rejects ?? '')}${format === 'json' ? ' --format json' : ''}`,
      lost: 'To keep the refused plants in a file, add --rejects PATH',
    }
    const stop = isBeforeRecord ? hints.stoppedBefore : hints.stoppedAfter
    const end = staging ? hints.staged : rejects === undefined ? hints.lost : hints.kept
    return new PlantsError('incomplete', `${plants(refused)} ${refused === 1 ? 'was' : 'were'} refused${stopped}${nothing}`, {
      hint: isDone || staging ? end : stop,
      ...(others.length === 0 && only !== undefined ? { error: parseInt(only, 10) } : {}),
    })
  }
}

function describeField(name: string): string {
  const alike = plantFields.find((field) => field.name === name.trim().toLowerCase())?.name
  const hint = alike === undefined ? '' : `; if it is the ${alike}: --map ${shellWord(`${alike}=${name}`)}`
  return `Not stored, because a NewPlant has only ${fieldsInWords}: ${JSON.stringify(name)}${hint}`
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

function throwUnknown({ unknown }: Counters, { rejects }: ImportOptions): void {
  if (unknown === 0) return
  throw new PlantsError('unknownOutcome', `Whether ${plants(unknown)} ${unknown === 1 ? 'is' : 'are'} stored is not known`, {
    hint: rejects === undefined ? 'Look in the store for those that were named' : `They are in ${rejects}: look in the store for them`,
  })
}

function sentenceOf({ valid }: Counts, counters: Counters): string {
  return `${valid === undefined ? 'Read' : 'Checked'} ${plants(settledIn(counters))}`
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
