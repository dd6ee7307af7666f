import { bodyLimit } from '../../platform/text-files.js'
import { RecordError } from './record-error.js'

/** A record may have this many bytes: as many as the body of a request. */
export const longestRecord = bodyLimit

export function recordTooLarge(): RecordError {
  return new RecordError('tooLarge', `The record is larger than 1 MiB (${longestRecord} bytes)`)
}
