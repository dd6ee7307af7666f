import { JsonRecovery, type RecoveryState } from './json-recovery.js'
import { type Found, JsonScan } from './json-scan.js'

/** Where a record stands that is being looked for. */
export interface Situation {
  /** how many bytes stand in its line before it */
  column: number
  isInArray: boolean
  /** whether the record before it was broken, and these bytes have been taken for a part of that */
  isCareful: boolean
}

/** Finds where a record of JSON ends, be it whole or broken, in bytes that come in pieces. */
export class JsonRecord {
  /** how many bytes it has, or has so far */
  length = 0
  /** how many bytes were looked at for it, which may be more than it has in the end */
  looked = 0
  readonly #situation: Situation
  readonly #scan: JsonScan
  #recovery: JsonRecovery | undefined

  constructor(situation: Situation) {
    this.#situation = situation
    this.#scan = new JsonScan(situation.column, situation.isCareful)
  }

  /** Goes on, in a record that begins at `start`, behind what it has looked at. What is still cut where the input ends is broken. */
  find(bytes: Buffer, start: number, end: number, isLast: boolean): Found {
    const found = this.#recovery ? this.#recover(this.#recovery, bytes, start, end) : this.#read(bytes, start, end, isLast)
    return found === 'cut' && isLast ? 'broken' : found
  }

  /** Goes on with what comes behind what it has looked at, which is gone: the next `start` is there. */
  forget(): void {
    this.#scan.forget()
    this.#recovery?.forget()
  }

  /** What it takes to go on, for one that had to forget. */
  save(): RecordState {
    return { ...this.#situation, ...this.#scan.save(), ...this.#recovery?.save() }
  }

  static restore(state: RecordState): JsonRecord {
    const record = new JsonRecord(state)
    record.#scan.restore(state)
    if (state.depth === undefined) return record
    record.#recovery = new JsonRecovery(0, state.depth, state.column, state.isInArray)
    record.#recovery.restore({ isInString: false, isEscaped: false, indent: -1, ...state, depth: state.depth })
    return record
  }

  #read(bytes: Buffer, start: number, end: number, isLast: boolean): Found {
    const scan = this.#scan
    const found = scan.scan(bytes, start, end)
    this.length = scan.length
    this.looked = scan.length
    if (found === 'whole' || (isLast && scan.isWholeAtEnd)) return 'whole'
    if (found === 'cut' && !isLast) return 'cut'
    if (scan.suspect > 0) {
      this.length = scan.suspect
      return 'broken'
    }
    if (found === 'cut') return 'broken'
    const depth = scan.depthBefore(bytes[start + scan.length])
    this.#recovery = new JsonRecovery(scan.length, depth, this.#situation.column, this.#situation.isInArray)
    return this.#recover(this.#recovery, bytes, start, end)
  }

  #recover(recovery: JsonRecovery, bytes: Buffer, start: number, end: number): Found {
    const isFound = recovery.scan(bytes, start, end)
    this.length = recovery.length
    this.looked = recovery.length
    return isFound ? 'broken' : 'cut'
  }
}

export type RecordState = Situation & ReturnType<JsonScan['save']> & Partial<RecoveryState>
