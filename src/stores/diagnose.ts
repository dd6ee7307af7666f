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

/**
 * Makes a check. If the check throws, its error becomes the finding. Only an interruption ends all
 * checks.
 */
export async function runCheck(
  check: string,
  findResult: () => Promise<CheckResult>,
): Promise<Finding> {
  try {
    return { check, ...(await findResult()) }
  } catch (error) {
    if (!(error instanceof PlantsError) || error.isInterruption) throw error
    return { check, state: 'failed', message: error.message, hint: error.hint }
  }
}

const missingRightsHint =
  'If it should, change the permissions of the file, or grant rights to the role: plants help postgresql'

/**
 * Checks that each right of the store works, and closes the store.
 *
 * @param name the message names the store by this
 * @param serverCount if there are several servers, the message also names the one that is used
 * @throws {PlantsError} if the store has no right at all, or one of its rights does not work
 */
export async function checkRights(
  store: DirectStore,
  name: string,
  serverCount = 1,
): Promise<CheckResult> {
  try {
    const storeRights = await store.findRights()
    const server = await store.findServer()
    // A read-only server is used only if the address allows it, so a read-only server is no
    // failure.
    const expectedRights = server?.isReadOnly ? readOnlyRights : rights
    const usableRights = expectedRights.filter((right) => storeRights.includes(right))
    const missingRights = expectedRights.filter((right) => !storeRights.includes(right))
    if (usableRights.length === 0) {
      const message = describeMissingRights(missingRights)
      throw new PlantsError('accessDenied', message, { hint: missingRightsHint })
    }
    await store.check(usableRights)
    const findings = missingRights.length === 0 ? [] : [describeMissingRights(missingRights)]
    if (server && (serverCount > 1 || server.isReadOnly)) findings.push(describeServer(server))
    const message = findings.length === 0 ? name : `${name}: ${findings.join('. ')}`
    // The operator may want this user only to read the store, so a missing right is no failure.
    if (missingRights.includes('create'))
      return { state: 'warning', message, hint: missingRightsHint }
    return { state: 'ok', message }
  } finally {
    await store.close()
  }
}

function describeServer({ name, isReadOnly }: StoreServer): string {
  return `The server ${name} is used${isReadOnly ? ', which is read-only' : ''}`
}
