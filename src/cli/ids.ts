import { isObject, parseJson } from '../plant/exact-json.js'
import { idFromText } from '../plant/plant.js'
import { inputError, usageError } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import { wholeLines } from '../platform/lines.js'
import { decoderOf, explainRead, maxDocumentBytes } from '../platform/text-files.js'
import { parseId } from './options.js'

export const idsArgument = [
  '<id...>',
  'ids of the plants; "-" for ids or plants on stdin, one on each line',
] as const

/** Whether the arguments name one plant, of which JSON is one value. */
export function isSingle(args: readonly string[]): boolean {
  return args.length === 1 && args[0] !== '-'
}

/** The ids, each once, of the arguments or, for `-`, of stdin to its end. */
export async function readIds(args: readonly string[], io: Io): Promise<bigint[]> {
  if (!args.includes('-')) return [...new Set(args.map((text) => parseId('id', text)))]
  if (args.length > 1)
    throw usageError(
      '"-" reads all ids from stdin, but other ids were given',
      'Leave out one of them',
    )
  const ids = new Set<bigint>()
  let line = 0
  for await (const text of linesOfStdin(io)) {
    line += 1
    if (text.trim() !== '') ids.add(idIn(text.trim(), line))
  }
  return [...ids]
}

function idIn(text: string, line: number): bigint {
  const parsed = text.startsWith('{') ? parseJson(text) : { value: { id: idFromText(text) } }
  const id = 'value' in parsed && isObject(parsed.value) ? parsed.value['id'] : undefined
  if (typeof id === 'bigint') return id
  throw inputError(
    `Line ${line} of stdin is neither an id nor a plant with an id: ${JSON.stringify(shorten(text))}`,
    'For one plant on each line: plants list --output ndjson',
  )
}

/** Of a plant of 1 MiB in JSON, an escape may take six bytes for each. */
const maxLineBytes = 6 * maxDocumentBytes + 64

/**
 * Lines end at a line feed alone. `readline` would end them at U+2028, too, so that a name could choose an id that is
 * deleted. The CR of a CRLF stays.
 */
async function* linesOfStdin(io: Io): AsyncGenerator<string> {
  const hint = 'Pipe ids or plants to stdin, one on each line'
  const tooLong = () => inputError('A line of stdin is too long for a plant', hint)
  const decode = decoderOf('Stdin')
  try {
    for await (const block of wholeLines(io.stdin.chunks(), { max: maxLineBytes, tooLong })) {
      const text = decode(block, false)
      yield* (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n')
    }
    decode(new Uint8Array()) // throws if the input ends within a character
  } catch (error) {
    throw explainRead('-', error, hint)
  }
}
