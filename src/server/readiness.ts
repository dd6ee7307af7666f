/**
 * Decides whether a service can answer requests now, for /ready, and why not.
 *
 * The store of a service may be unreachable, or lose a right that the service offers. So each probe
 * checks it. Probes that come meanwhile share the check, since another one would wait for the same
 * store.
 */
import { PlantsError } from '../errors.js'
import type { Log } from './log.js'

interface ReadinessOptions {
  /** Rejects if the store cannot do now what the service offers. */
  checkStore(): Promise<void>
  isDraining(): boolean
  /** Why the store has not answered for a while, if it knows. */
  findOutage(): PlantsError | undefined
  /** Why the service will not be ready before it is started again. */
  permanentReason?: string | undefined
  log: Pick<Log, 'info' | 'warn' | 'error'>
}

/** A load balancer gives up on a probe soon after a second. */
const checkTimeoutMs = 1000

export class Readiness {
  readonly #options: ReadinessOptions
  #check: Promise<string | undefined> | undefined
  /** The latest reason that the log has. */
  #reported: string | undefined

  constructor(options: ReadinessOptions) {
    this.#options = options
    this.#reported = options.permanentReason
  }

  /** @returns why the service is not ready, or undefined if it is */
  async explain(): Promise<string | undefined> {
    const { isDraining, permanentReason } = this.#options
    const reason = isDraining() ? undefined : (permanentReason ?? (await this.#askStore()))
    // A drain may have begun during the check.
    if (isDraining()) return 'The service is draining'
    this.#report(reason)
    return reason
  }

  #askStore(): Promise<string | undefined> {
    this.#check ??= this.#checkStore()
    const check = this.#check
    return new Promise((resolve) => {
      const giveUp = () => {
        const outage = this.#options.findOutage()
        resolve(outage ? describeFailure(outage) : 'The store did not answer within a second')
      }
      const timer = setTimeout(giveUp, checkTimeoutMs)
      void check.then(resolve).finally(() => clearTimeout(timer))
    })
  }

  async #checkStore(): Promise<string | undefined> {
    try {
      await this.#options.checkStore()
      return undefined
    } catch (error) {
      if (error instanceof PlantsError && error.kind !== 'internalError')
        return describeFailure(error)
      this.#options.log.error(error)
      return 'The check of the store failed: the log of the service has the error'
    } finally {
      this.#check = undefined
    }
  }

  /** Probes come every second, so the log has a line for each change only. */
  #report(reason: string | undefined): void {
    if (reason === this.#reported) return
    this.#reported = reason
    const { log } = this.#options
    if (reason === undefined) log.info('The service is ready again')
    else log.warn(`The service is not ready: ${reason}`)
  }
}

/** The message of a rejected login names the user, which only the log may have. */
function describeFailure(failure: PlantsError): string {
  const isLogin = [failure, failure.cause].some(
    (error) => error instanceof PlantsError && error.kind === 'unauthorized',
  )
  return isLogin ? 'The store rejected the login of the service' : failure.message
}
