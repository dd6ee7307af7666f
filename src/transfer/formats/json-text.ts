import { isUtf8 } from 'node:buffer'
import { NotJson, tryJson } from '../../plant/json.js'
import { RecordError } from './record-error.js'

/**
 * What a range of bytes says as JSON, as `tryJson` gives it; or why it says nothing.
 *
 * @param options the line in the input where the range begins, which an error names where it is in another one; and those of `tryJson`
 */
export function readJson(bytes: Buffer, start: number, end: number, options: { line: number; idKey: string; isSuspect: boolean }): unknown {
  const text = bytes.toString('utf8', start, end)
  // What is no UTF-8 was replaced by this, which is also a character that a text can have.
  if (text.includes('\ufffd') && !isUtf8(bytes.subarray(start, end))) return notUtf8()
  const value = tryJson(text, options)
  if (!(value instanceof NotJson)) return value
  const { reason, column } = value
  return notJson(value.line === 1 ? reason : `${reason} at line ${options.line + value.line - 1}, column ${column}`)
}

export function notJson(reason: string): RecordError {
  return new RecordError('malformed', `Not JSON: ${reason}`)
}

/** The error for a record in another encoding. */
export function notUtf8(): RecordError {
  return new RecordError('malformed', 'Not UTF-8')
}
