import type { FieldName } from '../plant/fields.js'

/** What a list selects, and in which order. */
export interface ReadQuery {
  /** Only ids greater than this one are selected; only smaller ones if `desc` sorts by id. */
  after?: bigint | undefined
  /** The largest number of plants that are selected, at least 1. */
  limit?: number | undefined
  /** Only plants with this tag are selected; with `false`, only plants without a tag. */
  tag?: string | false | undefined
  /**
   * The name or the tag must contain this string. Case and accents do not matter: see `foldString`.
   */
  search?: string | undefined
  signal?: AbortSignal | undefined
  /**
   * The default is `id`. Another field sorts by its folding (`foldString`), then by its code
   * points, then by id. Plants without the field come last.
   */
  sort?: FieldName | undefined
  desc?: boolean | undefined
  /**
   * By default, a list is one consistent snapshot. With this, each page may show a later moment
   * than the page before it, and the first page comes sooner. It requires the order of ids.
   */
  inPages?: boolean | undefined
}

/**
 * The largest number of characters in a search that a service accepts. The time of a search grows
 * with this number.
 */
export const maxSearchLength = 200

export interface CountQuery extends Pick<ReadQuery, 'tag' | 'search' | 'signal'> {
  /**
   * By default, a count shows one moment. With this, the count has steps of bounded time, between
   * which the event loop runs and the store may change, so that a service stays responsive.
   */
  inSteps?: boolean | undefined
}

/**
 * The number of plants for each value of a field. The key undefined stands for plants without a
 * tag.
 */
export type FieldCounts = Map<string | undefined, bigint>

export function addCount(counts: FieldCounts, fieldValue: string | undefined, count: bigint): void {
  counts.set(fieldValue, (counts.get(fieldValue) ?? 0n) + count)
}

/** The largest number of plants of a page, which bounds the memory of a list. */
export const pageRows = 1000

/**
 * Yields page after page in the order of ids, until the limit or the end.
 *
 * @param readPage returns at most `rows` rows whose ids follow `after`, and none at the end
 */
export async function* readInPages<Row extends { id: bigint }>(
  { after, limit = Infinity, signal }: ReadQuery,
  readPage: (after: bigint | undefined, rows: number) => Promise<Row[]>,
): AsyncIterable<Row[]> {
  let lastId = after
  for (let remainingRows = limit; remainingRows > 0; ) {
    signal?.throwIfAborted()
    const page = await readPage(lastId, Math.min(remainingRows, pageRows))
    if (page.length === 0) return
    yield page
    lastId = page.at(-1)?.id
    remainingRows -= page.length
  }
}

/** Formats the query of a URL for a list at a service, such as `limit=10&tag=shade`. */
export function formatQuery({ limit, desc, after, tag, search }: ReadQuery): string {
  const order = desc ? 'desc' : undefined
  const parameters = { limit, order, after, ...(tag === false ? { noTag: true } : { tag }), search }
  const pairs = Object.entries(parameters).filter(([, value]) => value !== undefined)
  return pairs.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')
}
