import { isUtf8 } from 'node:buffer'
import { PlantsError } from '../../errors.js'
import { parseJson } from '../../json.js'

/**
 * What a range of bytes says as JSON, as `parseJson` gives it; or why it says nothing.
 *
 * @param place where the range begins in the input: an error names the line that it is in, where that is another one; and what an id is called
 */
export function readJson(bytes: Buffer, start: number, end: number, { line, idKey }: { line: number; idKey: string }): unknown {
  const text = bytes.toString('utf8', start, end)
  // What is no UTF-8 was replaced by this, which is also a character that a text can have.
  if (text.includes('\ufffd') && !isUtf8(bytes.subarray(start, end))) return notUtf8()
  try {
    return parseJson(text, idKey)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    const [, reason = error.message, below = '1', column] = /^(.*) at line (\d+), column (\d+)$/.exec(error.message) ?? []
    return notJson(below === '1' ? reason : `${reason} at line ${line + parseInt(below, 10) - 1}, column ${column}`)
  }
}

export function notJson(reason: string): PlantsError {
  return new PlantsError('malformed', `Not JSON: ${reason}`)
}

/** The error for a record in another encoding. */
export function notUtf8(): PlantsError {
  return new PlantsError('malformed', 'Not UTF-8')
}
