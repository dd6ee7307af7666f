/**
 * Iterates over items, and can begin to read the next one before it is needed. While a PostgreSQL
 * server stores one chunk, this process reads and maps the chunk after it.
 */
export class ReadAhead<T> {
  readonly #items: AsyncGenerator<T, void, undefined>
  /** The promise of the item that is read ahead; undefined if none is read ahead. */
  #nextItem: Promise<IteratorResult<T, void>> | undefined

  constructor(items: AsyncGenerator<T, void, undefined>) {
    this.#items = items
  }

  /**
   * Begins to read the next item, unless it is read already. A failure does not reject this call,
   * but the next call of `read`: the chunk before the failure must be stored first.
   */
  prepare(): void {
    if (this.#nextItem !== undefined) return
    this.#nextItem = this.#items.next()
    this.#nextItem.catch(() => undefined)
  }

  /** Resolves to undefined after the last item. */
  async read(): Promise<T | undefined> {
    const nextItem = this.#nextItem ?? this.#items.next()
    this.#nextItem = undefined
    const result = await nextItem
    return result.done ? undefined : result.value
  }

  /** Ends the iteration. It does not wait for an item that is being read: a pipe may never end. */
  async end(): Promise<void> {
    const returnPromise = this.#items.return(undefined)
    if (this.#nextItem === undefined) await returnPromise
    else returnPromise.catch(() => undefined)
  }
}
