import { type Access, type Batch, type CreateManyOptions, defaultConcurrency, type OpenOptions, type RemoteAddress } from '../store.js'
import type { Connection } from './exchange.js'
import { Flow } from './flow.js'
import type { Remote } from './keys.js'
import { Pace } from './pace.js'
import { Sending } from './sending.js'

/** What is known of a service that is sent many plants, from batch to batch. */
export class Bulk {
  readonly address: RemoteAddress
  readonly connection: Connection
  readonly options: OpenOptions
  readonly flow: Flow
  readonly pace: Pace
  /** with the token that was found last */
  access: Access
  /** requests so far */
  sent = 0
  readonly #told = new Set<string>()

  constructor({ address, access, options, connection }: Remote) {
    this.address = address
    this.access = access
    this.options = options
    this.connection = connection
    this.flow = new Flow(options.concurrency ?? defaultConcurrency, options.clock.now())
    this.pace = new Pace(options.rate)
  }

  /**
   * Does what a store's `createMany` does.
   *
   * @param isKeyed whether a request may be repeated under its key
   */
  async createMany(batch: Batch, options: CreateManyOptions, isKeyed: boolean): Promise<void> {
    this.flow.rest(this.options.clock.now())
    await new Sending(this, batch, options, isKeyed).run()
  }

  /** Tells a person about something that may happen to thousands of plants, the first time. */
  async tellOnce(topic: string, text: string): Promise<void> {
    if (this.#told.has(topic)) return
    this.#told.add(topic)
    await this.access.notify(text)
  }
}
