import type { Plant } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import type { HttpAddress } from '../common/address.js'
import { lacksRight, resultOf } from './failures.js'
import { HttpClient, type HttpRequest } from './http-client.js'
import type { HttpOptions } from './http-options.js'
import { errorIn, expectedPlant, listsWithToken, requestToDescribe } from './plant-request.js'
import { expectedPage } from './read.js'

/** `rejected`: the token is wrong or revoked. `unknown`: no response settles it. */
type CredentialCheck = { state: 'accepted' } | { state: 'rejected' | 'unknown'; error: PlantsError }

/**
 * Reads a plant, which is no error in the log of a service, and settles it where the service says that reading takes a
 * token. If that does not settle it, sends an empty object, which by the specification a service that accepts the token
 * must reject. Never retries.
 */
export async function verifyToken(address: HttpAddress, options: HttpOptions): Promise<CredentialCheck> {
  const { timeout, clock } = options
  const client = await HttpClient.open(address, options)
  try {
    const reading = { method: 'GET', path: '/plants?limit=1', expected: expectedPage } as const
    const read = await client.send(reading, timeout, clock.signal)
    if ('cause' in read) clock.signal.throwIfAborted()
    const page = resultOf(client, reading, read)
    if (page instanceof PlantsError) {
      if ('cause' in read) return { state: 'unknown', error: page }
      if (read.status === 403 && lacksRight(read)) return { state: 'accepted' }
    } else {
      const described = await client.send(requestToDescribe, timeout, clock.signal)
      if ('cause' in described) clock.signal.throwIfAborted()
      const document = resultOf(client, requestToDescribe, described)
      if (!(document instanceof PlantsError) && listsWithToken(document)) return { state: 'accepted' }
    }

    const request: HttpRequest<Plant> = { method: 'POST', path: '/plants', body: '{}', expected: expectedPlant }
    const response = await client.send(request, timeout, clock.signal)
    if ('cause' in response) clock.signal.throwIfAborted()
    const error = resultOf(client, request, response)
    if (!(error instanceof PlantsError)) {
      const message = `${address.name} answered 200 to an empty object`
      return { state: 'unknown', error: new PlantsError('unusable', message, { status: 200 }) }
    }
    if ('cause' in response) return { state: 'unknown', error }
    if (error.type === 'unauthorized') {
      return error.error !== 401 && lacksRight(response) ? { state: 'accepted' } : { state: 'rejected', error }
    }
    // The specification does not say what other values of `error` mean.
    const isRejectedAsPlant = response.status === 400 && errorIn(response) !== undefined
    return isRejectedAsPlant ? { state: 'accepted' } : { state: 'unknown', error }
  } finally {
    client.close()
  }
}
