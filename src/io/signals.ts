import { PlantsError } from '../errors.js'

/** Listens to SIGINT and SIGTERM while something waits. The second signal, and any that comes while nothing waits, ends the process. */
export class Signals {
  received: NodeJS.Signals | undefined
  readonly #controller = new AbortController()
  readonly #kinds = { SIGINT: 'interrupted', SIGTERM: 'terminated' } as const
  #isListening = false

  listen(): AbortSignal {
    if (!this.#isListening && this.received === undefined) {
      this.#isListening = true
      process.on('SIGINT', this.#receive).on('SIGTERM', this.#receive)
    }
    return this.#controller.signal
  }

  release(): void {
    if (!this.#isListening) return
    this.#isListening = false
    process.off('SIGINT', this.#receive).off('SIGTERM', this.#receive)
  }

  readonly #receive = (name: NodeJS.Signals): void => {
    if (this.received !== undefined) {
      this.release()
      process.kill(process.pid, name)
    } else if (name === 'SIGINT' || name === 'SIGTERM') {
      this.received = name
      const message = name === 'SIGINT' ? 'Interrupted' : 'Terminated'
      this.#controller.abort(new PlantsError(this.#kinds[name], message))
    }
  }
}
