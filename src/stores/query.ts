import type { FieldName } from '../plant/plant.js'

export interface ListQuery {
  /** Only ids greater than this one; only smaller ones if `desc` sorts by id. */
  after?: bigint | undefined
  /** At least 1. */
  limit?: number | undefined
  /** False for plants without one. */
  tag?: string | false | undefined
  /** Part of any text, in any case: see `foldText`. */
  search?: string | undefined
  signal?: AbortSignal | undefined
}

export interface ReadQuery extends ListQuery {
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
export const maxSearch = 200

export type CountQuery = Pick<ListQuery, 'tag' | 'search' | 'signal'>

/** Bounds the memory of a list. */
export const pageRows = 1000

/** @param readPage returns at most `rows` rows after an id, and none at the end */
export async function* pagesOf<Row extends { id: bigint }>(
  { after, limit = Infinity, signal }: ListQuery,
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

export function queryText({ limit, desc, after, tag, search }: ReadQuery): string {
  const order = desc ? 'desc' : undefined
  const parameters = { limit, order, after, ...(tag === false ? { noTag: true } : { tag }), search }
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined)
  return given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')
}
