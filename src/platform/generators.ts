/** Reads the first item, and returns this item and a generator of all items, the first included. */
export async function peek<T>(items: AsyncGenerator<T>) {
  const { value: first }: IteratorResult<T, undefined> = await items.next()
  return { first, all: prepend(first === undefined ? [] : [first], items) }
}

export async function* prepend<T>(
  firstItems: readonly T[],
  items: AsyncIterable<T> | Iterable<T>,
): AsyncGenerator<T> {
  yield* firstItems
  yield* items
}
