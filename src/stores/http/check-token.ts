import { within } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import type { Access, TokenVerdict } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'
import type { OpenOptions } from '../common/store.js'
import { classifyFailure, classifyResponse, expectedPlant, headerOf } from './classify.js'
import { HttpClient, NoResponse } from './client.js'
import { requestTo } from './request.js'

/**
 * Checks whether a service accepts a token, without creating a plant: sends an empty object, which by the specification a service that
 * accepts the token must reject. Never retries.
 *
 * @throws the reason of the clock's signal
 */
export async function checkToken(address: RemoteAddress, access: Access, { timeout, clock }: OpenOptions): Promise<TokenVerdict> {
  const client = await HttpClient.open(address, access, 1)
  try {
    const response = await within(timeout, [clock.signal], (signal) =>
      client.send(requestTo(access, 'POST', '/plants', { body: {} }), signal),
    )
    const result = classifyResponse(response, expectedPlant, { name: address.name, tokenHint: access.tokenHint })
    if (result.kind === 'done')
      return unknown(new PlantsError('unusable', `${address.name} answered 200 to an empty object`, { status: 200 }))
    const hasOtherRights = /\binsufficient_scope\b/.test(headerOf(response, 'www-authenticate') ?? '') // RFC 6750, 3.1
    if (result.error.error === 422 || hasOtherRights) return { state: 'accepted' }
    return result.kind === 'unauthorized' ? { state: 'refused', error: result.error } : unknown(result.error)
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error
    clock.signal.throwIfAborted()
    return unknown(classifyFailure(error, address, access, 'the token').error)
  } finally {
    client.close()
  }
}

function unknown(error: PlantsError): TokenVerdict {
  return { state: 'unknown', error }
}
