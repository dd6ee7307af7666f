/**
 * Decides for /ready whether a service can answer requests now, and if not, why.
 *
 * The store of a service may become unreachable, or lose a right that the service offers. So each
 * probe checks it. A probe that comes during a check shares the result, since another check would
 * wait for the same store.
 */
import { PlantsError } from '../errors.js'
import type { Log } from './log.js'

interface ReadinessOptions {
  /** Rejects if the store cannot do now what the service offers. */
  checkStore(): Promise<void>
  isDraining(): boolean
  /** Returns why the store has not answered for a while; undefined if the store answers. */
  findOutage(): PlantsError | undefined
  /** Why the service cannot become ready before it is started again; undefined if it can. */
  permanentReason?: string | undefined
  log: Pick<Log, 'info' | 'warn' | 'error'>
}

/** A load balancer gives up on a probe soon after a second. */
const checkTimeoutMs = 1000

export class Readiness {
  #checkInProgress: Promise<string | undefined> | undefined
  /** The reason that was logged last. */
  #reportedReason: string | undefined

  constructor(private readonly options: ReadinessOptions) {
    this.#reportedReason = options.permanentReason
  }

  /** @returns why the service is not ready, or undefined if it is */
  async explain(): Promise<string | undefined> {
    const { isDraining, permanentReason } = this.options
    const reason = isDraining()
      ? undefined
      : (permanentReason ?? (await this.#checkWithinTimeout()))
    // A drain may have begun during the check.
    if (isDraining()) return 'The service is draining'
    this.#logReasonChange(reason)
    return reason
  }

  #checkWithinTimeout(): Promise<string | undefined> {
    this.#checkInProgress ??= this.#checkStore()
    const check = this.#checkInProgress
    return new Promise((resolve) => {
      const reportTimeout = () => {
        const outage = this.options.findOutage()
        resolve(outage ? describeFailure(outage) : 'The store did not answer within a second')
      }
      const timer = setTimeout(reportTimeout, checkTimeoutMs)
      void check.then(resolve).finally(() => clearTimeout(timer))
    })
  }

  async #checkStore(): Promise<string | undefined> {
    try {
      await this.options.checkStore()
      return undefined
    } catch (error) {
      if (error instanceof PlantsError && error.kind !== 'internalError')
        return describeFailure(error)
      this.options.log.error(error)
      return 'The check of the store failed: the log of the service has the error'
    } finally {
      this.#checkInProgress = undefined
    }
  }

  /** Probes may come every second, so the log has a line only when the reason changes. */
  #logReasonChange(reason: string | undefined): void {
    if (reason === this.#reportedReason) return
    this.#reportedReason = reason
    const { log } = this.options
    if (reason === undefined) log.info('The service is ready again')
    else log.warn(`The service is not ready: ${reason}`)
  }
}

/**
 * The message of a rejected login names the user of the database. Anybody can read /ready, so this
 * must only be in the log.
 */
function describeFailure(failure: PlantsError): string {
  const isLogin = [failure, failure.cause].some(
    (error) => error instanceof PlantsError && error.kind === 'unauthorized',
  )
  return isLogin ? 'The store rejected the login of the service' : failure.message
}
