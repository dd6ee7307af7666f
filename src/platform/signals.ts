import { PlantsError } from './errors.js'

/** Listens to SIGINT and SIGTERM while something waits. The second signal, and any that comes while nothing waits, ends the process. */
export class Signals {
  received: NodeJS.Signals | undefined
  readonly #controller = new AbortController()
  readonly #kinds = { SIGINT: 'interrupted', SIGTERM: 'terminated' } as const
  isListening = false
  /** seconds since the start of the process, at the first signal */
  #at = 0

  listen(): AbortSignal {
    if (!this.isListening && this.received === undefined) {
      this.isListening = true
      process.on('SIGINT', this.#receive).on('SIGTERM', this.#receive)
    }
    return this.#controller.signal
  }

  #release(): void {
    if (!this.isListening) return
    this.isListening = false
    process.off('SIGINT', this.#receive).off('SIGTERM', this.#receive)
  }

  readonly #receive = (name: NodeJS.Signals): void => {
    if (this.received !== undefined) {
      // `timeout` and a shell send one to the process and one to its group, and mean one.
      if (process.uptime() - this.#at < 0.1) return
      this.#release()
      process.kill(process.pid, name)
    } else if (name === 'SIGINT' || name === 'SIGTERM') {
      this.received = name
      this.#at = process.uptime()
      const message = name === 'SIGINT' ? 'Interrupted' : 'Terminated'
      this.#controller.abort(new PlantsError(this.#kinds[name], message))
    }
  }
}
