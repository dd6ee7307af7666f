import type { PlantsError } from '../../platform/errors.js'
import type { Bulk } from './bulk.js'

interface Listener {
  fail(error: unknown): void
  /** A renewal has ended. */
  tell(): void
}

/** Finds a newer token when a service refuses the one that there is. */
export class Renewal {
  readonly #bulk: Bulk
  readonly #listener: Listener
  #end: Promise<void> | undefined
  /** nothing was settled with the token yet */
  #isNew = false

  constructor(bulk: Bulk, listener: Listener) {
    this.#bulk = bulk
    this.#listener = listener
  }

  /** when the renewal under way will have ended, if there is one */
  get end(): Promise<void> | undefined {
    return this.#end
  }

  /** The token was accepted. */
  proven(): void {
    this.#isNew = false
  }

  /** @param refusal what the service says of the token, and what is told when there is no other */
  begin(refusal: PlantsError): void {
    const { renew } = this.#bulk.access
    if (!renew || this.#isNew) this.#listener.fail(refusal)
    else this.#end ??= this.#renew(renew, refusal)
  }

  async #renew(renew: () => Promise<string | undefined>, refusal: PlantsError): Promise<void> {
    const { access } = this.#bulk
    try {
      const token = await renew()
      if (token === undefined || token === access.token) this.#listener.fail(refusal)
      else this.#bulk.access = { ...access, token }
    } catch (error) {
      this.#listener.fail(error)
    }
    this.#isNew = true
    this.#end = undefined
    this.#listener.tell()
  }
}
