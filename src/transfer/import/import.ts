import { orderById } from '../../plant/sort.js'
import { PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { Outcome } from '../../stores/conflict.js'
import type { BulkStore, CheckpointStore } from '../../stores/store.js'
import type { FormatName } from '../formats/format-names.js'
import { Intake } from '../formats/intake.js'
import { formatMaker } from '../formats/maker.js'
import { Portion } from '../formats/portion.js'
import { recognise } from '../formats/recognise.js'
import type { Journal } from './journal.js'
import type { ImportPlan, Input } from './order.js'
import { PortionSize } from './portion-size.js'
import { type Position, packOutcomes, packRefusals, unpackOutcomes, unpackRefusals } from './position.js'
import type { Glimpse } from './progress.js'
import { Reader, RunningHash } from './reader.js'
import { ofProblem, type Refused, refusedOf } from './refused.js'
import type { Rejects } from './rejects.js'
import { openSource } from './source.js'
import { countDone, countFields, countRefused, emptyTally, settledIn, type Tally } from './tally.js'

/** What an import works with. */
export interface ImportTools {
  store: BulkStore
  /** keeps the positions of the journal, where the store does */
  checkpoints: CheckpointStore | undefined
  journal: Journal | undefined
  /** what the keys for a service begin with */
  key: string
  rejects: Rejects | undefined
  io: Io
  /** ends it: nothing new is begun */
  stop: AbortSignal
  /** is told what was refused, in the order of the input */
  tellRefused(refused: Refused[], input: Input): Promise<void>
  /** is told that it has come further */
  tellProgress(): void
}

/** Reads plants from inputs and creates them in a store, portion by portion. */
export class Import {
  readonly #plan: ImportPlan
  readonly #tools: ImportTools
  readonly #hash = new RunningHash()
  readonly #intake: Intake
  readonly #start: Position | undefined
  readonly tally: Tally
  /** refused in this run */
  refused = 0
  /** whether all inputs were read to their end */
  isDone = false
  /** unpacked bytes of the inputs before this one, and of this one before the portion */
  bytes = { before: 0, here: 0 }
  /** bytes of all inputs, where that is known */
  #total: number | undefined
  #input = 0
  format: FormatName = 'ndjson'
  #reader: Reader | undefined
  readonly #size: PortionSize
  /** rows of the portion that may have been sent before it was known that they are on their way */
  #sent = 0
  /** as many of them as an earlier run has noted */
  #sentBefore = 0
  /** whether anything was sent to a service */
  #hasSent = false
  /** the one on its way, until it is reported */
  #portion: Portion | undefined
  #savedAt = 0

  /** @param start where an earlier run stopped */
  constructor(plan: ImportPlan, tools: ImportTools, start: Position | undefined) {
    this.#plan = plan
    this.#tools = tools
    this.#start = start
    this.#intake = new Intake(plan.rules)
    const mayBeLast = plan.stopsAtRefusal || plan.maxErrors < Infinity
    this.#size = new PortionSize({ mayBeLast, keepsPositions: tools.checkpoints !== undefined, clock: tools.io })
    this.tally = start?.tally ?? emptyTally()
  }

  /**
   * Imports until the end, or until it is stopped.
   *
   * @throws {PlantsError} for an input that cannot be read, or is another than it was; and what the store throws
   */
  async run(): Promise<void> {
    for (const [index, { path, name }] of this.#plan.inputs.entries()) {
      this.#input = index
      const source = await openSource(path, name, this.#tools)
      try {
        if (this.#plan.inputs.length === 1) this.#total = source.size
        const reader = new Reader(source, this.#hash)
        if (!(await this.#readInput(reader))) return
        this.bytes = { before: this.bytes.before + reader.offset, here: 0 }
      } finally {
        source.close()
      }
    }
    this.isDone = true
  }

  /** How far it is, with what is settled of the portion that is on its way. */
  get glimpse(): Glimpse {
    const { rows, bytes } = this.#portion ?? { rows: { length: 0 }, bytes: { length: 0 } }
    const here = this.bytes.here + (rows.length > 0 ? (this.#settled / rows.length) * bytes.length : 0)
    const part = this.#total === undefined ? undefined : Math.min(1, (this.bytes.before + here) / this.#total)
    return { done: this.done, refused: this.refused, part }
  }

  /** records that are done with, whatever came of them */
  get done(): number {
    return settledIn(this.tally) + this.#settled
  }

  get #settled(): number {
    return this.#portion?.outcomes.reduce((sum, outcome) => sum + (outcome === Outcome.pending ? 0 : 1), 0) ?? 0
  }

  /** False when it was stopped before the end. */
  async #readInput(reader: Reader): Promise<boolean> {
    const start = this.#start
    this.#reader = reader
    const { bytes, isLast } = await reader.head(patience)
    if (start && this.#input < start.input) return !(await reader.skipTo(Infinity))
    const begun = start?.input === this.#input ? start : undefined
    this.format = begun?.format ?? this.#plan.format ?? recognise(bytes, isLast, reader.source.name)
    reader.use(await formatMaker(this.format, this.#intake, this.#plan.rules), this.#intake)
    if (begun && !(await this.#goOn(reader, begun))) return false
    while (!this.#tools.stop.aborted) {
      const portion = await reader.next(this.#size.bytes, patience)
      if (!portion) return !this.#tools.stop.aborted
      this.#sent = 0
      this.#sentBefore = 0
      if (!(await this.#take(portion, reader))) return false
    }
    return false
  }

  /** Goes to where the run before stopped, and settles what was left of the portion there. */
  async #goOn(reader: Reader, start: Position): Promise<boolean> {
    const isThere = await reader.skipTo(start.offset)
    if (start.reading) reader.restore(start.reading)
    const portion = isThere && start.portion.length > 0 ? await reader.next(start.portion) : undefined
    if (this.#hash.digest() !== start.hash) throw changed(reader.source.name)
    if (!portion) return true
    this.#sent = start.sent
    this.#sentBefore = start.sent
    return this.#take(portion, reader, start)
  }

  /** Creates the plants of a portion, and reports what became of them. False when the import ends there. */
  async #take(read: Portion, reader: Reader, begun?: Position): Promise<boolean> {
    const problem = this.#plan.stopsAtRefusal ? read.problems[0] : undefined
    const portion = problem ? reader.again(problem.start) : read
    this.#prepare(portion, begun)
    await this.#create(portion, reader)
    const row = this.#plan.stopsAtRefusal ? portion.outcomes.findIndex((outcome) => outcome >= Outcome.taken) : -1
    if (row >= 0) return this.#stopBefore(row, portion, reader)
    if (portion.outcomes.includes(Outcome.pending)) return this.#leave(portion, reader)
    await this.#report(portion, reader)
    if (!problem && this.refused < this.#plan.maxErrors) return true
    await this.#savePassed(reader)
    if (problem) await this.#tell([ofProblem(problem)], read.bytes)
    return !problem && reader.isDone && this.#input === this.#plan.inputs.length - 1
  }

  /** Ends before a row that the store refused, so that it can be mended and the import goes on with it. */
  async #stopBefore(row: number, portion: Portion, reader: Reader): Promise<false> {
    const refused = Array.from(refusedOf(portion, this.#sentBefore))
    const before = reader.again(portion.recordStart[row] ?? 0)
    before.outcomes = portion.outcomes.slice(0, row)
    await this.#report(before, reader)
    await this.#savePassed(reader)
    await this.#tell(refused, portion.bytes)
    return false
  }

  /** Leaves a portion that was not finished, with nothing on its way; a store that keeps positions has kept it already. */
  async #leave(portion: Portion, reader: Reader): Promise<false> {
    this.#sent = 0
    if (!this.#tools.checkpoints && this.isBegun) await this.#keep(this.#position(portion, reader))
    return false
  }

  /** Whether anything can have come of it, in this run or one before. */
  get isBegun(): boolean {
    return this.#hasSent || this.done > 0 || this.#start !== undefined
  }

  #prepare(portion: Portion, begun: Position | undefined): void {
    this.#portion = portion
    if (this.#tools.checkpoints && !this.#plan.stopsAtRefusal) portion.order = orderById(portion.rows)
    // Where most ids are taken, to sort many at once takes memory and gains nothing.
    const isWorthSorting = this.tally.created * 2 >= settledIn(this.tally)
    this.#size.adapt(portion.order !== undefined && isWorthSorting)
    portion.outcomes = new Uint8Array(portion.rows.length)
    if (!begun) return
    if (!unpackOutcomes(portion, begun.outcomes)) throw changed(this.#plan.inputs[this.#input]?.name ?? '')
    unpackRefusals(portion, begun.refusals)
  }

  async #create(portion: Portion, reader: Reader): Promise<void> {
    const { store, checkpoints, journal, key, stop } = this.#tools
    const place = `${key}-${this.#input}-`
    const save = () => JSON.stringify(this.#position(portion, reader))
    const created = store.createMany(portion, {
      ...{ ifExists: this.#plan.ifExists, stopsAtRefusal: this.#plan.stopsAtRefusal, stop },
      checkpoint: journal && checkpoints && (() => ({ id: journal.id, state: save() })),
      keyOf: (row) => {
        this.#hasSent = true
        return `${place}${reader.offset + (portion.recordStart[row] ?? 0)}`
      },
      beforeSend: async (row) => {
        if (row < this.#sent) return
        this.#sent = row + rowsAhead
        journal?.save(save())
      },
      onProgress: () => {
        this.#tools.tellProgress()
        if (checkpoints || !journal || this.#tools.io.now() - this.#savedAt < saveEvery) return
        this.#savedAt = this.#tools.io.now()
        journal.save(save())
      },
    })
    await created.catch(async (error: unknown) => {
      await this.#leave(portion, reader)
      throw error
    })
  }

  /** Where it is, as the store and the rejects file are now. */
  #position(portion: Portion, reader: Reader): Position {
    return {
      input: this.#input,
      format: this.format,
      reading: reader.state,
      offset: reader.offset,
      portion: reader.extent,
      hash: this.#hash.digest(),
      tally: this.tally,
      rejects: this.#tools.rejects?.lengths,
      outcomes: packOutcomes(portion),
      refusals: packRefusals(portion),
      sent: this.#sent,
    }
  }

  /** Keeps the place behind the portion that was reported, for an import that ends there. */
  #savePassed(reader: Reader): Promise<void> {
    const { offset, extent, stateBehind } = reader
    const nothing = new Portion(Buffer.alloc(0))
    const position = this.#position(nothing, reader)
    return this.#keep({ ...position, offset: offset + extent.length, portion: { length: 0, isLast: false }, reading: stateBehind })
  }

  async #keep(position: Position): Promise<void> {
    const { journal, checkpoints } = this.#tools
    if (!journal) return
    const state = JSON.stringify(position)
    if (checkpoints) await checkpoints.keepCheckpoint({ id: journal.id, state })
    else journal.save(state)
  }

  async #report(portion: Portion, reader: Reader): Promise<void> {
    this.#portion = undefined
    countDone(this.tally, portion)
    countFields(this.tally, portion.otherFields)
    this.bytes.here = reader.offset + reader.extent.length
    await this.#tell(refusedOf(portion, this.#sentBefore), portion.bytes)
  }

  /** A thousand at a time: they take more memory than the bytes that they are about. */
  async #tell(all: Iterable<Refused>, bytes: Buffer): Promise<void> {
    let some: Refused[] = []
    for (const refused of all) {
      some.push(refused)
      if (some.length < 1000) continue
      await this.#tellSome(some, bytes)
      some = []
    }
    await this.#tellSome(some, bytes)
    this.#tools.rejects?.flush()
  }

  async #tellSome(refused: Refused[], bytes: Buffer): Promise<void> {
    const { rejects, tellRefused } = this.#tools
    const input = this.#plan.inputs[this.#input]
    if (refused.length === 0 || !input) return
    for (const { why, isUnknown } of refused) {
      if (why) this.refused += 1
      if (why && isUnknown) this.tally.unknown += 1
      else if (why) countRefused(this.tally, why.error)
    }
    rejects?.add(refused, { bytes, name: input.name, header: this.#reader?.header })
    await tellRefused(refused, input)
  }
}

/** milliseconds to wait for more of an input that comes slowly */
const patience = 100

/** milliseconds between two times that the position is saved, where the store does not do it */
const saveEvery = 500

/** rows that are noted as sent before they are */
const rowsAhead = 200

function changed(name: string): PlantsError {
  const hint = 'To begin again with what it is now, add --restart; what is there already is then refused, or skipped with --if-exists skip'
  return new PlantsError('malformed', `${name} was changed since its import was stopped`, { hint })
}
