import { setMaxListeners } from 'node:events'
import type { StoredPlant, TextName } from '../../plant/plant.js'
import { PlantsError, usageError } from '../../platform/errors.js'
import { shellWord } from '../../platform/shell.js'
import type { HttpAddress } from '../common/address.js'
import { type Change, idOf, type Outcome } from '../common/change.js'
import type { CountQuery, ReadQuery, TextCount } from '../common/query.js'
import type { Store, WriteOptions } from '../common/store.js'
import { HttpClient } from './http-client.js'
import { defaultConcurrency, type HttpOptions } from './http-options.js'
import { supportsKeys } from './plant-request.js'
import { countTexts, listPages, readStream } from './read.js'
import { Requests } from './requests.js'
import { fetchPlant, outcomeOf, sendChange, sendChanges } from './send-changes.js'

export class HttpStore implements Store {
  readonly #client: HttpClient

  private constructor(client: HttpClient) {
    this.#client = client
  }

  static async open(address: HttpAddress, options: HttpOptions): Promise<HttpStore> {
    setMaxListeners(0, options.runtime.handleSignals()) // each create adds a listener
    return new HttpStore(await HttpClient.open(address, options))
  }

  async get(ids: readonly bigint[]): Promise<Map<bigint, StoredPlant>> {
    const found = new Map<bigint, StoredPlant>()
    const { concurrency = defaultConcurrency } = this.#client.options
    for (let from = 0; from < ids.length; from += concurrency) {
      const requests = new Requests(this.#client)
      const read = ids.slice(from, from + concurrency).map((id) => fetchPlant(requests, id))
      for (const plant of await requests.report(Promise.all(read)))
        if (plant) found.set(plant.id, plant)
    }
    return found
  }

  async *read(query: ReadQuery = {}): AsyncGenerator<StoredPlant[]> {
    if (query.sort !== undefined && query.sort !== 'id') {
      const message = `${this.#client.address.name} lists plants only in the order of their ids`
      throw usageError(message, 'Leave out --sort')
    }
    yield* query.inPages ? listPages(this.#client, query) : readStream(this.#client, query)
  }

  async write(changes: readonly Change[], options: WriteOptions = {}): Promise<Outcome[]> {
    options.signal?.throwIfAborted()
    const [change, ...others] = changes
    if (!change) return []
    return others.length > 0
      ? sendChanges(this.#client, changes, options)
      : [await this.#writeOne(change, options)]
  }

  async #writeOne(change: Change, { signal }: WriteOptions): Promise<Outcome> {
    const { runtime } = this.#client.options
    const requests = new Requests(
      this.#client,
      signal && AbortSignal.any([runtime.handleSignals(), signal]),
    )
    const key = (change.type === 'create' && change.key) || crypto.randomUUID()
    try {
      return await requests.report(
        sendChange(requests, change.type === 'create' ? { ...change, key } : change),
      )
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      const type = outcomeOf(error)
      const hint = type === 'unknown' ? await this.#unknownHint(change, key) : undefined
      const { aborted, reason } = requests.signal
      if (aborted && reason instanceof PlantsError && (hint || error === reason)) {
        const ending = hint
          ? ` before ${this.#client.address.name} answered`
          : ', nothing was stored'
        return {
          type,
          error: new PlantsError(reason.kind, reason.message + ending, { hint, cause: reason }),
        }
      }
      const { message, cause } = error
      return {
        type,
        error: hint ? new PlantsError(error.kind, message, { ...error, cause, hint }) : error,
      }
    }
  }

  async #unknownHint(change: Change, key: string): Promise<string> {
    const id = idOf(change)
    if (change.type !== 'create')
      return `Whether plant ${id} was changed is unknown. Look at it with: plants get ${id} --store ${shellWord(this.#client.address.name)}`
    const document = await this.#client.description
    if (document !== undefined && !supportsKeys(document))
      return `Whether plant ${id} is stored is unknown, and this service does not support idempotency keys: check the service before you repeat it`
    const condition = document === undefined ? ', if the service supports such keys' : ''
    return `Whether plant ${id} is stored is unknown. To avoid a second plant, repeat it with: --idempotency-key ${shellWord(key)}${condition}`
  }

  /** Whether the service lets this token read. */
  async isReadable(): Promise<boolean> {
    try {
      await fetchPlant(new Requests(this.#client), 0n)
      return true
    } catch (error) {
      if (
        error instanceof PlantsError &&
        (error.status === 403 || error.error === 403 || error.kind === 'usage')
      )
        return false
      throw error
    }
  }

  async count(query: CountQuery = {}): Promise<bigint> {
    let count = 0n
    for await (const plants of this.read(query)) count += BigInt(plants.length)
    return count
  }

  async *countBy(by: TextName, query: CountQuery = {}): AsyncGenerator<TextCount[]> {
    yield* countTexts(this.#client, by, this.read(query))
  }

  async close(): Promise<void> {
    this.#client.close()
  }
}
