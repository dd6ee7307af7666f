import { PlantsError } from '../../errors.js'
import { isJsonType } from '../../plant/json.js'
import type { HttpAddress } from '../address.js'
import type { TokenCheck } from '../credentials.js'
import { type CheckResult, type Finding, runCheck } from '../diagnose.js'
import type { DoctorContext, OpenContext } from '../store-kind.js'
import { HttpClient, type HttpResponse } from './http-client.js'
import { expectedPlant, parseError } from './plant-request.js'
import { interpretResponse } from './service-client.js'

/**
 * Checks a token by a create with an empty object. By the specification, a service that accepts the
 * token must reject the object, so nothing is stored.
 */
export async function verifyToken(address: HttpAddress, context: OpenContext): Promise<TokenCheck> {
  const { timeoutMs, runtime } = context
  const access = await context.findAccess(address)
  const service = { address, access, timeoutMs, runtime }
  const httpClient = new HttpClient(service)
  const signal = runtime.getStopSignal()
  try {
    const probe = {
      method: 'POST',
      path: '/plants',
      body: '{}',
      expectedValue: expectedPlant,
    } as const
    const { token } = access
    const response = await httpClient.send({ ...probe, token }, timeoutMs, [signal])
    signal.throwIfAborted()
    const result = interpretResponse(service, probe, response)
    if ('value' in result) {
      const message = `${address.name} answered 200 to an empty object`
      return { state: 'unknown', error: new PlantsError('badResponse', message, { status: 200 }) }
    }
    const { error } = result
    // An empty object is never stored, so it does not matter whether the request was sent.
    if ('cause' in response) return { state: 'unknown', error }
    if (error.kind === 'unauthorized' || error.kind === 'forbidden') {
      const challenge = response.headers['www-authenticate'] ?? '' // RFC 6750, 3.1
      const isAccepted = error.error !== 401 && /\binsufficient_scope\b/.test(challenge)
      return isAccepted ? { state: 'accepted' } : { state: 'rejected', error }
    }
    const isRejectedAsPlant = response.status === 400 && parseError(response) !== undefined
    if (isRejectedAsPlant) return { state: 'accepted' }
    return { state: isForeign(response) ? 'foreign' : 'unknown', error }
  } finally {
    await httpClient.close()
  }
}

/** Makes the check of `plants doctor`: the same request as that of `verifyToken`, and no other. */
export function diagnoseService(address: HttpAddress, context: DoctorContext): Promise<Finding> {
  return runCheck(context.storeCheck, () => checkService(address, context))
}

async function checkService(address: HttpAddress, context: OpenContext): Promise<CheckResult> {
  const check = await verifyToken(address, context)
  if (check.state === 'accepted')
    return { state: 'ok', message: `${address.name} answers, and accepts the token` }
  const { message, hint = 'Check the address' } = check.error
  return { state: 'failed', message, hint }
}

/**
 * Whether a response shows that the server has no operation to create plants. A web page with
 * another status may be that of a proxy in front of a service that is not running. A 303 is no
 * redirect to the same operation, but often to a page to log in (RFC 9110, 15.4.4).
 */
function isForeign({ status, headers }: HttpResponse): boolean {
  const isJson = isJsonType(headers['content-type'] ?? '')
  const hasNoOperation = [200, 204, 303, 404, 405].includes(status)
  return hasNoOperation || (!isJson && [400, 501].includes(status))
}
