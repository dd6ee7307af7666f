/**
 * Iterates over items, of which the next one can be read before it is asked for: a server works on
 * one chunk while this process reads and maps the one after it.
 */
export class ReadAhead<T> {
  readonly #items: AsyncGenerator<T>
  #next: Promise<IteratorResult<T>> | undefined

  constructor(items: AsyncGenerator<T>) {
    this.#items = items
  }

  /** Begins to read the next item. `read` rejects if that fails, and not before. */
  prepare(): void {
    if (this.#next !== undefined) return
    this.#next = this.#items.next()
    this.#next.catch(() => undefined)
  }

  /** Returns undefined at the end. */
  async read(): Promise<T | undefined> {
    const next = this.#next ?? this.#items.next()
    this.#next = undefined
    const { value, done } = await next
    return done ? undefined : value
  }

  /** Does not wait for an item that is being read: a pipe may never give it. */
  async end(): Promise<void> {
    const ended = this.#items.return(undefined)
    if (this.#next === undefined) await ended
    else ended.catch(() => undefined)
  }
}
