/**
 * Iterates over items, and can begin to read the next one before it is needed. While a PostgreSQL
 * server stores one chunk, this process reads and maps the chunk after it.
 */
export class ReadAhead<T> {
  readonly #items: AsyncGenerator<T, void, undefined>
  /** The item that is being read ahead; undefined if that has not begun. */
  #next: Promise<IteratorResult<T, void>> | undefined

  constructor(items: AsyncGenerator<T, void, undefined>) {
    this.#items = items
  }

  /**
   * Begins to read the next item, unless that has begun. If it fails, only the next call of `read`
   * rejects: the chunk before the failure must be stored first.
   */
  prepare(): void {
    if (this.#next !== undefined) return
    this.#next = this.#items.next()
    this.#next.catch(() => undefined)
  }

  /** Resolves to undefined after the last item. */
  async read(): Promise<T | undefined> {
    const next = this.#next ?? this.#items.next()
    this.#next = undefined
    const result = await next
    return result.done ? undefined : result.value
  }

  /** Ends the iteration. It does not wait for an item that is being read: a pipe may never end. */
  async end(): Promise<void> {
    const ending = this.#items.return(undefined)
    if (this.#next === undefined) await ending
    else ending.catch(() => undefined)
  }
}
