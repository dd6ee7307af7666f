/**
 * Iterates over items, and can begin to read the next one before it is needed. While a PostgreSQL
 * server stores one chunk, this process reads and maps the chunk after it.
 *
 * `Reply` is what the generator may be told about the item that was read last.
 */
export class ReadAhead<T, Reply = undefined> {
  readonly #items: AsyncGenerator<T, void, Reply | undefined>
  #next: Promise<IteratorResult<T, void>> | undefined

  constructor(items: AsyncGenerator<T, void, Reply | undefined>) {
    this.#items = items
  }

  /**
   * Begins to read the next item, unless that has begun. If it fails, only the next call of `read`
   * rejects: the chunk before the failure must be stored first.
   *
   * @param reply about the item before
   */
  prepare(reply?: Reply): void {
    if (this.#next !== undefined) return
    this.#next = this.#items.next(reply)
    this.#next.catch(() => undefined)
  }

  /**
   * Resolves to undefined after the last item.
   *
   * @param reply about the item before, unless `prepare` was called, which has passed it already
   */
  async read(reply?: Reply): Promise<T | undefined> {
    const next = this.#next ?? this.#items.next(reply)
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
