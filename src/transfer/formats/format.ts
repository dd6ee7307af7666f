import type { Portion } from './portion.js'

/** How records stand in an input. It remembers where it is, so each input has its own. */
export interface Format {
  /**
   * Reads the whole records in a range of a portion's bytes: adds the plants to it, and the records that are none, each with its place.
   *
   * @param isLast whether the input ends where the range does
   * @returns where the first record begins that is not whole: the end of the range when all are, and always where `isLast`;
   * or an earlier place, behind at least one record, when the portion is full: what is left is then for another portion
   */
  read(portion: Portion, range: { start: number; end: number }, isLast: boolean): number
  /** what records of this input stand behind, once the first of them was read: the names of columns */
  readonly header?: Uint8Array | undefined
  /** What it takes to go on from here with a format made afresh. */
  save(): FormatState
  restore(state: FormatState): void
}

/** Values that JSON can hold. */
export type FormatState = Readonly<Record<string, string | number | boolean | readonly string[]>>
