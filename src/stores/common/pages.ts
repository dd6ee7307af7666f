import type { ListQuery, ReadQuery } from './store.js'

/** bounds the memory of a list */
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

/** Such as `limit=100&after=1`. */
export function queryText({ limit, desc, after, tag, search }: ReadQuery): string {
  const order = desc ? 'desc' : undefined
  const parameters = { limit, order, after, ...(tag === false ? { noTag: true } : { tag }), search }
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined)
  return given.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')
}
