import { within } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import type { RemoteAddress } from '../address.js'
import type { OpenOptions } from '../store.js'
import { judge } from './answer.js'
import { Connection, NoAnswer } from './exchange.js'
import { unanswered, unreached } from './failure.js'
import { requestToCreate } from './request.js'
import type { Access, TokenVerdict } from './types.js'

/**
 * Asks a service whether it accepts a token, and makes no plant: it is sent an empty object, which the specification has it refuse
 * as soon as the token is accepted. Asked once; nothing is tried again.
 *
 * @throws the reason of the clock's signal
 */
export async function checkToken(address: RemoteAddress, access: Access, { timeout, clock }: OpenOptions): Promise<TokenVerdict> {
  const connection = await Connection.open(address, access)
  try {
    const answer = await within(timeout, [clock.signal], (signal) => connection.send(requestToCreate(access, {}), signal))
    const verdict = judge(answer, address.name, access.tokenHint)
    if ('plant' in verdict) return unknown(new PlantsError('unusable', `${address.name} answered 200 to an empty object`, { status: 200 }))
    const { error } = verdict
    if (error.kind === 'unauthorized') return { state: 'refused', error }
    return error.error === 422 ? { state: 'accepted' } : unknown(error)
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error
    clock.signal.throwIfAborted()
    return unknown(error.isSent ? unanswered(address, error.cause, 'the token') : unreached(address, access, error.cause))
  } finally {
    await connection.close()
  }
}

function unknown(error: PlantsError): TokenVerdict {
  return { state: 'unknown', error }
}
