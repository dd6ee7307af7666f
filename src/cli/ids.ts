import { inputError, usageError } from '../errors.js'
import { isObject, parseJson } from '../plant/json.js'
import { parseDecimalId } from '../plant/plant.js'
import { shorten } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import { joinWholeLines } from '../platform/lines.js'
import { createUtf8Decoder, explainRead, maxDocumentBytes } from '../platform/text-files.js'
import { parseId } from './options.js'

export const idsDescription = 'ids of the plants; "-" for ids or plants on stdin, one per line'

/** Whether the arguments name one plant, so that JSON output is one value and no array. */
export function isSingle(args: readonly string[]): boolean {
  return args.length === 1 && args[0] !== '-'
}

/** Returns the ids of the arguments, or for `-` those of stdin, each of them once. */
export async function readIds(args: readonly string[], io: Io): Promise<bigint[]> {
  if (!args.includes('-')) return [...new Set(args.map((text) => parseId('id', text)))]
  if (args.length > 1)
    throw usageError(
      '"-" reads all ids from stdin, and cannot be used with other ids',
      'Leave out either "-" or the ids',
    )
  const ids = new Set<bigint>()
  let line = 0
  for await (const text of readStdinLines(io)) {
    line += 1
    if (text.trim() !== '') ids.add(parseIdLine(text.trim(), line))
  }
  return [...ids]
}

const linesHint = 'Pipe one id per line, or plants from: plants list --output ndjson'

function parseIdLine(text: string, line: number): bigint {
  const parsed = text.startsWith('{') ? parseJson(text) : { value: { id: parseDecimalId(text) } }
  const id = 'value' in parsed && isObject(parsed.value) ? parsed.value['id'] : undefined
  if (typeof id === 'bigint') return id
  const shown = JSON.stringify(shorten(text))
  const message = `Line ${line} of stdin is neither an id nor a plant with an id: ${shown}`
  throw inputError(message, linesHint)
}

/**
 * Yields the lines of stdin, which end only at a line feed. `readline` would end them at U+2028,
 * too: what follows that in the name of a plant could be an id, which would be deleted.
 */
async function* readStdinLines(io: Io): AsyncGenerator<string> {
  const decode = createUtf8Decoder('Stdin')
  const tooLong = () => inputError('A line of stdin is longer than a plant can be', linesHint)
  const maxBytes = 6 * maxDocumentBytes // an escape takes six bytes
  try {
    for await (const block of joinWholeLines(io.stdin.chunks(), { maxBytes, tooLong }))
      yield* decode(block).replace(/\n$/, '').split('\n')
  } catch (error) {
    throw explainRead('-', error, linesHint)
  }
}
