/**
 * Iterates over items, and can begin to read the next one before it is needed. While a PostgreSQL
 * server stores one chunk, this process reads and maps the chunk after it.
 */
export class ReadAhead<T> {
  readonly #items: AsyncGenerator<T>
  #next: Promise<IteratorResult<T>> | undefined

  constructor(items: AsyncGenerator<T>) {
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
    const { value, done } = await next
    return done ? undefined : value
  }

  /** Ends the iteration. It does not wait for an item that is being read: a pipe may never end. */
  async end(): Promise<void> {
    const ending = this.#items.return(undefined)
    if (this.#next === undefined) await ending
    else ending.catch(() => undefined)
  }
}
