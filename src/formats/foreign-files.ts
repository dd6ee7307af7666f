/*
 * Recognizes files that are surely no lists of plants, such as databases and pictures, so that the
 * error names what they are.
 */
import { createInputError } from '../errors.js'
import { parseFileEnding, spreadsheetEndings } from '../platform/file-names.js'
import { countLineEnds } from './encoding.js'
import { createEmptyFileError } from './limits.js'

const saveListHint = 'Save the list as CSV, JSON or .xlsx, and import that file'
const databaseHint =
  'To import into it, write --store before it, or to import from it, save its table as CSV'
const unpackHint = 'Unpack it, and import the file in it'

/** Files that are no lists of plants. `start` matches their first bytes, decoded as Latin-1. */
const foreignFiles: readonly [start: RegExp, description: string, hint: string][] = [
  [/^SQLite format 3/, 'a SQLite database', databaseHint],
  [/^%PDF-/, 'a PDF document', saveListHint],
  [/^(?:\xef\xbb\xbf)?\s*<[!?a-z]/i, 'HTML or XML', saveListHint],
  [/^(?:\x89PNG|\xff\xd8\xff|GIF8|RIFF[\s\S]{4}WEBP)/, 'a picture', saveListHint],
  [/^(?:BZh[1-9]|\xfd7zXZ\0|\x28\xb5\x2f\xfd|7z\xbc\xaf|Rar!)/, 'an archive', unpackHint],
  [/^[\s\S]{257}ustar/, 'an archive', unpackHint],
]

/** @throws {PlantsError} `input` for a file that is surely no list of plants */
export function assertNoForeignFile(name: string, head: Buffer): void {
  const bytes = head.toString('latin1', 0, 1000)
  for (const [start, description, hint] of foreignFiles)
    if (start.test(bytes)) throw createInputError(`${name} is ${description}`, hint)
  const isSpreadsheet = spreadsheetEndings.includes(parseFileEnding(name).ending)
  if (head.length === 0 && isSpreadsheet) throw createEmptyFileError(name, 'save')
}

/** @throws {PlantsError} `input` for a text with U+0000 in its first 1000 characters */
export function assertNoNul(text: string, name: string): void {
  const index = text.slice(0, 1000).indexOf('\0')
  if (index === -1) return
  const line = countLineEnds(text, '\n', index) + 1
  throw createInputError(
    `${name} is a binary file: line ${line} contains the character U+0000`,
    `${saveListHint}. If it is a text, remove that character from it`,
  )
}
