import { createInputError } from '../errors.js'
import { maxDocumentBytes } from '../platform/text-files.js'

export const maxRecordBytes = maxDocumentBytes
/** A workbook, a JSON text and a kept pipe are in memory as a whole: at most 256 MiB each. */
export const maxUnpackedBytes = 268_435_456

/** Whether a record is larger than 1 MiB in UTF-8. Its bytes are counted only if it is long. */
export function isTooLarge(text: string): boolean {
  return text.length > maxRecordBytes / 3 && Buffer.byteLength(text) > maxRecordBytes
}

export const recordTooLargeReason = `The record is larger than 1 MiB (${maxRecordBytes} bytes)`

/** Creates the error for a record that ends the import. */
export function createBrokenRecordError(
  name: string,
  line: number,
  reason: string,
  hint = 'Correct the input, and run the command again',
): Error {
  return createInputError(`${name}:${line}: ${reason}`, hint)
}

/**
 * Creates the error for a file without bytes whose format needs some.
 *
 * @param action the verb for how the file is made
 */
export function createEmptyFileError(name: string, action: 'compress' | 'save'): Error {
  return createInputError(
    `${name} is damaged or incomplete: it has no bytes`,
    `Download or ${action} the file again`,
  )
}
