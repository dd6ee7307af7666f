import { unwritableReasons } from '../platform/atomic-file.js'
import { PlantsError, systemCode } from '../platform/errors.js'

/** The error for a file that the system does not let be written; any other error is given back. */
export function unwritable(what: string, cause: unknown, hint: string): unknown {
  const code = systemCode(cause)
  if (cause instanceof PlantsError || code === undefined) return cause
  return new PlantsError('unwritable', `${what} could not be written: ${unwritableReasons[code] ?? `the system says ${code}`}`, {
    hint,
    cause,
  })
}
