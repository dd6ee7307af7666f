import type { FieldName } from '../plant/fields.js'

/** What a list selects, and its order. */
export interface ReadQuery {
  /** Only ids greater than this one; only smaller ones if `desc` sorts by id. */
  after?: bigint | undefined
  /** At least 1. */
  limit?: number | undefined
  /** False for plants without one. */
  tag?: string | false | undefined
  /** Part of any text, in any case: see `foldText`. */
  search?: string | undefined
  signal?: AbortSignal | undefined
  /**
   * By default `id`. By the folded text (`foldText`), then by its code points, then by id; plants
   * without one last.
   */
  sort?: FieldName | undefined
  desc?: boolean | undefined
  /** In the order of ids, each page at a moment of its own: the first one comes sooner. */
  inPages?: boolean | undefined
}

/** In characters, at a service: the time of a search grows with them. */
export const maxSearchLength = 200

export interface CountQuery extends Pick<ReadQuery, 'tag' | 'search' | 'signal'> {
  /** In bounded steps, each at a moment of its own, between which the event loop runs. */
  inSteps?: boolean | undefined
}

/** How many plants have each text. The key of plants without a tag is undefined. */
export type TextCounts = Map<string | undefined, bigint>

export function addCount(counts: TextCounts, text: string | undefined, count: bigint): void {
  counts.set(text, (counts.get(text) ?? 0n) + count)
}

/** Bounds the memory of a list. */
export const pageRows = 1000

/** @param readPage returns at most `rows` rows after an id, and none at the end */
export async function* readInPages<Row extends { id: bigint }>(
  { after, limit = Infinity, signal }: ReadQuery,
  readPage: (after: bigint | undefined, rows: number) => Promise<Row[]>,
): AsyncIterable<Row[]> {
  let last = after
  for (let left = limit; left > 0; ) {
    signal?.throwIfAborted()
    const page = await readPage(last, Math.min(left, pageRows))
    if (page.length === 0) return
    yield page
    last = page.at(-1)?.id
    left -= page.length
  }
}

export function formatQuery({ limit, desc, after, tag, search }: ReadQuery): string {
  const order = desc ? 'desc' : undefined
  const parameters = { limit, order, after, ...(tag === false ? { noTag: true } : { tag }), search }
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined)
  return given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')
}
