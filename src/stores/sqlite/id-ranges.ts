import { largestId, smallestId } from '../../plant/fields.js'
import type { ReadQuery } from '../query.js'
import type { Connection } from './connection.js'
import { StoreDamageError } from './explain.js'

export const fromIdRange = 'FROM plants WHERE id BETWEEN ? AND ?'

export type IdRange = [first: bigint, last: bigint]

/**
 * Divides the ids of a store into ranges, so that a long read has several steps. Each step reads
 * the plants of one range.
 */
export class IdRanges {
  readonly #isDescending: boolean
  readonly #selectSum: string
  readonly #maxRows: number
  readonly #maxBytes: number
  #rows: number
  #first: bigint
  #last: bigint

  /**
   * @param step the largest number of rows and bytes of a range. A plant with more bytes is a range
   *   of its own.
   */
  constructor(
    private readonly prepare: Connection['prepare'],
    { after, desc = false }: Pick<ReadQuery, 'after' | 'desc'>,
    step: { rows: number; bytes: number },
  ) {
    const bytes = 'octet_length(name) + ifnull(octet_length(tag), 0) AS bytes'
    const [end, order] = desc ? ['min', 'DESC'] : ['max', 'ASC']
    const rows = `SELECT id, ${bytes} ${fromIdRange} ORDER BY id ${order} LIMIT ?`
    this.#isDescending = desc
    this.#selectSum = `SELECT ${end}(id), sum(bytes) FROM (${rows})`
    this.#maxRows = step.rows
    this.#maxBytes = step.bytes
    this.#rows = step.rows
    this.#first = after === undefined || desc ? smallestId : after + 1n
    this.#last = after === undefined || !desc ? largestId : after - 1n
  }

  /**
   * @param neededRows the range needs no more plants than this
   * @returns the next range; undefined at the end
   */
  find(neededRows: number): IdRange | undefined {
    const end = this.#findRangeEnd(neededRows)
    if (end === undefined) return undefined
    return this.#isDescending ? [end, this.#last] : [this.#first, end]
  }

  /** Call this when the plants of a range were read. Before that, `find` returns the same range. */
  advance([first, last]: IdRange): void {
    if (this.#isDescending) this.#last = first - 1n
    else this.#first = last + 1n
  }

  /**
   * Returns the last id of the next range. It begins with a quarter more rows than the previous
   * range had, and halves their number until their bytes fit.
   */
  #findRangeEnd(neededRows: number): bigint | undefined {
    this.#rows = Math.min(neededRows, this.#maxRows, Math.ceil(this.#rows * 1.25))
    while (this.#first <= this.#last) {
      const sum = this.prepare(this.#selectSum)
      const [end, size]: (bigint | null)[] = sum.get(this.#first, this.#last, this.#rows)
      if (end == null) return undefined
      // In a corrupt tree, a page can lead back to an earlier page, and the loop would never end.
      if (end < this.#first || end > this.#last)
        throw new StoreDamageError(`the id ${end} is out of order`)
      if (this.#rows === 1 || Number(size) <= this.#maxBytes) return end
      this.#rows = Math.ceil(this.#rows / 2)
    }
    return undefined
  }
}
