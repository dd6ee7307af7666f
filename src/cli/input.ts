import { parseJson, severalValues } from '../plant/json.js'
import { PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { capital, readText, sourceName } from '../platform/text-files.js'

/**
 * Reads one JSON document from a file, or from stdin when the path is `-`: UTF-8, at most 1 MiB, a byte order mark is skipped.
 *
 * @returns what `parseJson` gives
 * @throws {PlantsError} `malformed` or `tooLarge`, naming the source
 */
export async function readDocument(path: string, io: Io): Promise<unknown> {
  if (path === '') throw new PlantsError('malformed', '--file needs a path', { hint: 'Or read stdin with: --file -' })
  return parse(await readText(path, io, { wanted: 'Give a file that holds one plant as JSON', tooLarge: onePlant }), sourceName(path))
}

/** Hints for a document that is not what it should be. */
export const onePlant = 'plants create takes one plant. For many, use plants import'
export const example = 'A plant looks like this: {"id":1,"name":"Fern","tag":"shade"}'

function parse(text: string, source: string): unknown {
  if (text.trim() === '') throw nothing(source)
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    if (error.cause === severalValues)
      throw new PlantsError('malformed', `${capital(source)} holds ${error.message}`, { hint: onePlant, cause: error })
    throw new PlantsError('malformed', `${capital(source)} is not JSON: ${error.message}`, { hint: example, cause: error })
  }
}

function nothing(source: string): PlantsError {
  if (source !== 'stdin') return new PlantsError('malformed', `${source} is empty`, { hint: example })
  return new PlantsError('malformed', 'Nothing on stdin', { hint: 'Give the plant with flags: plants create --id 1 --name Fern' })
}
