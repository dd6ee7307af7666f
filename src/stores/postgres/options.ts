import type { PlantsError } from '../../platform/errors.js'
import type { Runtime } from '../../platform/runtime.js'
import type { PostgresHost } from '../common/address.js'

export interface PostgresOptions {
  login: Login
  /** Of each statement, and of a call with its retries, in milliseconds. */
  timeout: number
  runtime: Runtime
  /** See `patienceOf`. */
  retry?: number | undefined
  /** The database is unavailable, and retried for `patience` milliseconds; with undefined, it is available again. */
  onAway?: ((failure: PlantsError | undefined, patience?: number) => void) | undefined
}

export interface Login {
  /** A password file may have one for each host. */
  password(host: PostgresHost): string | undefined
  passwordHint: string
  /** PEM; those of the system if undefined. Used only if the sslmode of the address verifies certificates. */
  ca: string | undefined
  cert: string | undefined
  key: string | undefined
}
