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
export async function verifyToken(
  address: HttpAddress,
  options: HttpOptions,
): Promise<CredentialCheck> {
  const { timeout, runtime } = options
  const client = await HttpClient.open(address, options)
  const ask = async <Result>(request: HttpRequest<Result>) => {
    const response = await client.send(request, timeout, runtime.handleSignals())
    if ('cause' in response) runtime.handleSignals().throwIfAborted()
    return { response, result: resultOf(client, request, response) }
  }
  try {
    const { response: read, result: page } = await ask({
      method: 'GET',
      path: '/plants?limit=1',
      expected: expectedPage,
    })
    if (page instanceof PlantsError) {
      if ('cause' in read) return { state: 'unknown', error: page }
      if (read.status === 403 && lacksRight(read)) return { state: 'accepted' }
    } else {
      const { result: document } = await ask(requestToDescribe)
      if (!(document instanceof PlantsError) && listsWithToken(document))
        return { state: 'accepted' }
    }

    const probe = { method: 'POST', path: '/plants', body: '{}', expected: expectedPlant } as const
    const { response, result: error } = await ask(probe)
    if (!(error instanceof PlantsError)) {
      const message = `${address.name} answered 200 to an empty object`
      return { state: 'unknown', error: new PlantsError('unusable', message, { status: 200 }) }
    }
    if ('cause' in response) return { state: 'unknown', error }
    if (error.kind === 'unauthorized' || error.kind === 'forbidden') {
      return error.error !== 401 && lacksRight(response)
        ? { state: 'accepted' }
        : { state: 'rejected', error }
    }
    // The specification does not say what other values of `error` mean.
    const isRejectedAsPlant = response.status === 400 && errorIn(response) !== undefined
    return isRejectedAsPlant ? { state: 'accepted' } : { state: 'unknown', error }
  } finally {
    client.close()
  }
}
