import { PlantsError } from '../errors.js'
import type { DirectStore } from './store.js'
import { describeMissingRights, rights } from './tokens.js'

export interface CheckResult {
  state: 'ok' | 'warning' | 'failed'
  message: string
  hint?: string | undefined
}

/** What a check of `plants doctor` found. */
export interface Finding extends CheckResult {
  check: string
}

/** An error of the check is its finding. An interruption ends all checks. */
export async function runCheck(
  check: string,
  examine: () => Promise<CheckResult>,
): Promise<Finding> {
  try {
    return { check, ...(await examine()) }
  } catch (error) {
    if (!(error instanceof PlantsError) || error.isInterruption) throw error
    return { check, state: 'failed', message: error.message, hint: error.hint }
  }
}

const missingRightsHint =
  'Change the permissions of the file, or see Least privilege in docs/databases.md'

/**
 * Closes the store.
 *
 * @throws {PlantsError} if the store can do nothing, or not even what its rights say
 */
export async function checkRights(name: string, store: DirectStore): Promise<CheckResult> {
  try {
    const storeRights = await store.rights()
    const missing = rights.filter((right) => !storeRights.includes(right))
    if (storeRights.length === 0) {
      const message = describeMissingRights(missing)
      throw new PlantsError('inaccessible', message, { hint: missingRightsHint })
    }
    await store.check(storeRights)
    if (missing.length === 0) return { state: 'ok', message: name }
    const message = `${name}: ${describeMissingRights(missing)}`
    // A store that this user can only read may be meant so.
    if (missing.includes('create')) return { state: 'warning', message, hint: missingRightsHint }
    return { state: 'ok', message }
  } finally {
    await store.close()
  }
}
