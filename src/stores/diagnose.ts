import { PlantsError } from '../errors.js'
import type { DirectStore, StoreServer } from './store.js'
import { describeMissingRights, readOnlyRights, rights } from './tokens.js'

export interface CheckResult {
  state: 'ok' | 'warning' | 'failed'
  message: string
  hint?: string | undefined
}

/** The result of one check of `plants doctor`. */
export interface Finding extends CheckResult {
  check: string
}

/** If the check throws, its error is the finding. Only an interruption ends all checks. */
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
  'Change the permissions of the file, or grant them to the role, such as: GRANT INSERT ON plant_store.plants TO ROLE'

interface CheckedStore {
  /** The message names the store by this, which is the name of its address. */
  name: string
  /** If there are several servers, the message also names the one that is used. */
  serverCount: number
}

/**
 * Checks that the store can do what its rights say, and closes it.
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
    // A server that is read-only is only used if the address allows it, so this is no failure.
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
    // It may be intended that this user can only read the store, so this is no failure.
    if (missing.includes('create')) return { state: 'warning', message, hint: missingRightsHint }
    return { state: 'ok', message }
  } finally {
    await store.close()
  }
}

function describeServer({ name, isReadOnly }: StoreServer): string {
  return `The server ${name} is used${isReadOnly ? ', which is read-only' : ''}`
}
