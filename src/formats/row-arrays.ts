/** A row has six offsets: the start and the end of the id, the name and the tag. */
export const offsetsPerRow = 6

/** The arrays of numbers in which a `PlainChunk` keeps its rows. */
export interface RowArrays {
  /** The offsets of the fields of each row in its text. */
  offsets: Int32Array
  ids: Float64Array
  /** The index of the text of each row. */
  textIndexes: Uint16Array
}

export function createRowArrays(rows: number): RowArrays {
  return {
    offsets: new Int32Array(offsetsPerRow * rows),
    ids: new Float64Array(rows),
    textIndexes: new Uint16Array(rows),
  }
}

/** Copies the arrays to larger ones, which are large enough for most chunks in any order. */
export function growRowArrays({ offsets, ids, textIndexes }: RowArrays): RowArrays {
  const larger = createRowArrays(4 * ids.length)
  larger.offsets.set(offsets)
  larger.ids.set(ids)
  larger.textIndexes.set(textIndexes)
  return larger
}
