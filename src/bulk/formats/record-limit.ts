import { PlantsError } from '../../errors.js'
import { bodyLimit } from '../../input.js'

/** A record may have this many bytes: as many as the body of a request. */
export const longestRecord = bodyLimit

export function recordTooLarge(): PlantsError {
  return new PlantsError('tooLarge', `The record is larger than 1 MiB (${longestRecord} bytes)`)
}
