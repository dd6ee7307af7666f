import { PlantsError } from '../errors.js'
import type { DirectStore, StoreServer } from './store.js'
import { describeMissingRights, readOnlyRights, rights } from './tokens.js'

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

interface CheckedStore {
  /** Of the address. */
  name: string
  /** Of several servers, the one that is used is named. */
  serverCount: number
}

/**
 * Closes the store.
 *
 * @throws {PlantsError} if the store can do nothing, or not even what its rights say
 */
export async function checkRights(
  { name, serverCount }: CheckedStore,
  store: DirectStore,
): Promise<CheckResult> {
  try {
    const storeRights = await store.findRights()
    const server = await store.findServer()
    // A server that is read-only is used because the address allows it.
    const expected = server?.isReadOnly ? readOnlyRights : rights
    const usable = expected.filter((right) => storeRights.includes(right))
    const missing = expected.filter((right) => !storeRights.includes(right))
    if (usable.length === 0) {
      const message = describeMissingRights(missing)
      throw new PlantsError('accessDenied', message, { hint: missingRightsHint })
    }
    await store.check(usable)
    const findings = missing.length === 0 ? [] : [describeMissingRights(missing)]
    if (server && (serverCount > 1 || server.isReadOnly)) findings.push(describeServer(server))
    const message = findings.length === 0 ? name : `${name}: ${findings.join('. ')}`
    // A store that this user can only read may be meant so.
    if (missing.includes('create')) return { state: 'warning', message, hint: missingRightsHint }
    return { state: 'ok', message }
  } finally {
    await store.close()
  }
}

function describeServer({ name, isReadOnly }: StoreServer): string {
  return `The server ${name} is used${isReadOnly ? ', which is read-only' : ''}`
}
