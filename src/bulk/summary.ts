import { PlantsError } from '../errors.js'
import type { Io } from '../io.js'
import { warn, writeResult } from '../output.js'
import { shorten } from '../plant.js'
import type { Settings } from '../settings/preferences.js'
import type { Import } from './import.js'
import type { Position } from './position.js'
import { grouped } from './progress.js'
import type { ImportOrder } from './run-import.js'
import { refusedIn, settledIn } from './tally.js'

/** refused plants that are shown to a person */
export const mostShown = 20

/** What an import says at its end. */
export class Summary {
  readonly #io: Io
  readonly #start: number
  /** settled by earlier runs */
  readonly #before: number

  constructor(io: Io, position: Position | undefined) {
    this.#io = io
    this.#start = io.now()
    this.#before = position ? settledIn(position.tally) : 0
  }

  /** Writes it. Throws `incomplete` when plants were refused, `unknownOutcome` when it is not known of some whether they are stored. */
  async write(importing: Import, order: ImportOrder, settings: Settings): Promise<void> {
    const { tally } = importing
    for (const [name, count] of Object.entries(tally.otherFields))
      await warn(
        this.#io,
        `Not stored, because a NewPlant has only id, name and tag: ${JSON.stringify(shorten(name))} (of ${plants(count)})`,
        settings,
      )
    if (importing.refused > mostShown && settings.errors === 'text')
      await warn(this.#io, `${grouped(importing.refused - mostShown)} more were refused than are shown here`, settings)
    const seconds = (this.#io.now() - this.#start) / 1000
    const rate = Math.round((settledIn(tally) - this.#before) / Math.max(seconds, 0.001))
    const isCheck = order.staging === 'check'
    const refused = refusedIn(tally)
    const created = order.staging === 'atomic' && refused > 0 ? 0 : tally.created
    const fields = {
      ...(isCheck ? { valid: tally.created } : { created }),
      ...{ skipped: tally.skipped, refused, reasons: tally.refused, unknown: tally.unknown },
      ...{ seconds: Math.round(seconds * 1000) / 1000, rate },
      ...(order.rejects !== undefined && refused > 0 ? { rejects: order.rejects } : {}),
    }
    const counts = [
      `${grouped(isCheck ? tally.created : created)} ${isCheck ? 'can be created' : 'created'}`,
      tally.skipped > 0 ? `${grouped(tally.skipped)} skipped` : [],
      refused > 0 ? `${grouped(refused)} refused (${reasonsOf(tally.refused)})` : [],
      tally.unknown > 0 ? `${grouped(tally.unknown)} unknown` : [],
    ].flat()
    const verb = isCheck ? 'Checked' : 'Imported'
    await writeResult(
      this.#io,
      settings,
      fields,
      `${verb} ${plants(settledIn(tally))} in ${timeOf(seconds)}${seconds < 1 ? '' : ` (${grouped(rate)}/s)`}: ${counts.join(', ')}`,
    )
    throwIncomplete(importing, order)
  }
}

function throwIncomplete({ tally, isDone }: Import, { rejects, staging }: ImportOrder): void {
  const refused = refusedIn(tally)
  if (tally.unknown > 0)
    throw new PlantsError('unknownOutcome', `Whether ${plants(tally.unknown)} ${tally.unknown === 1 ? 'is' : 'are'} stored is not known`, {
      hint: rejects === undefined ? 'Look in the store for those that were named' : `They are in ${rejects}: look in the store for them`,
    })
  if (refused === 0) return
  const reasons = Object.keys(tally.refused)
  const what = `${plants(refused)} ${refused === 1 ? 'was' : 'were'} refused`
  const stopped = isDone ? '' : ', and the import stopped there'
  const nothing = staging === 'atomic' ? ', so nothing was created' : ''
  throw new PlantsError('incomplete', `${what}${stopped}${nothing}`, {
    hint: isDone ? hintFor(rejects) : 'Mend it, then run the same command again: it goes on there',
    ...(reasons.length === 1 ? { error: parseInt(reasons[0] ?? '', 10) } : {}),
  })
}

function hintFor(rejects: string | undefined): string {
  return rejects === undefined ? 'To keep the refused plants in a file, add --rejects PATH' : `Mend them in ${rejects}, then import that`
}

function reasonsOf(refused: Readonly<Record<string, number>>): string {
  const entries = Object.entries(refused)
  return entries.map(([error, count]) => (entries.length === 1 ? error : `${error}: ${grouped(count)}`)).join(', ')
}

function plants(count: number): string {
  return `${grouped(count)} ${count === 1 ? 'plant' : 'plants'}`
}

function timeOf(seconds: number): string {
  return seconds < 90 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`
}
