import { PlantsError } from '../../platform/errors.js'
import type { Access, CredentialCheck } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'
import type { OpenOptions } from '../common/store.js'
import { lacksRight, resultOf } from './failures.js'
import { HttpClient } from './http-client.js'
import { errorIn, requestWithoutPlant } from './plant-request.js'

/** Sends an empty object, and never retries. */
export async function verifyToken(
  address: RemoteAddress,
  access: Access,
  options: OpenOptions,
): Promise<CredentialCheck> {
  const { timeout, clock } = options
  const client = await HttpClient.open(address, access, options)
  try {
    const request = requestWithoutPlant()
    const response = await client.send(request, timeout, clock.signal)
    if ('cause' in response) clock.signal.throwIfAborted()
    const error = resultOf(client, request, response)
    if (!(error instanceof PlantsError)) {
      const message = `${address.name} answered 200 to an empty object`
      return { state: 'unknown', error: new PlantsError('unusable', message, { status: 200 }) }
    }
    if ('cause' in response) return { state: 'unknown', error }
    if (error.type === 'unauthorized') {
      const isAccepted = error.error !== 401 && error.status !== 401 && lacksRight(response)
      return isAccepted ? { state: 'accepted' } : { state: 'rejected', error }
    }
    // The specification does not say what other values of `error` mean.
    const isRejectedAsPlant = response.status === 400 && errorIn(response) !== undefined
    return isRejectedAsPlant ? { state: 'accepted' } : { state: 'unknown', error }
  } finally {
    client.close()
  }
}
