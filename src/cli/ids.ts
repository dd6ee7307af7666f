import { assertDefined, createInputError, createUsageError } from '../errors.js'
import { idRule } from '../plant/fields.js'
import { isObject, parseJson } from '../plant/json.js'
import { parseDecimalId } from '../plant/plant.js'
import { isPlainWord, shorten } from '../platform/escape.js'
import { GrowingBuffer } from '../platform/growing-buffer.js'
import type { Io } from '../platform/io.js'
import { decodeUtf8, explainRead, maxDocumentBytes } from '../platform/text-files.js'

export const quotesHint = 'Put a text with spaces in quotes, as in: "Tree fern"'

export const idsDescription =
  'ids of the plants, or "-" to read ids or plants from stdin, one per line'

/** Whether the arguments name one plant, so that JSON output is one value and no array. */
export function isSingle(args: readonly string[]): boolean {
  return args.length === 1 && args[0] !== '-'
}

/**
 * Reads the ids of the arguments, or of the lines of stdin if the only argument is `-`. An id that
 * occurs twice is returned once.
 *
 * @param laterWordHint what to do about a word behind the first argument
 * @throws {PlantsError} `usage` for a wrong argument, and `input` for a wrong line
 */
export async function readIds(
  args: readonly string[],
  io: Io,
  laterWordHint?: string,
): Promise<bigint[]> {
  if (!args.includes('-'))
    return [...new Set(args.map((text, index) => parseIdArgument(text, index, laterWordHint)))]
  if (args.length > 1)
    throw createUsageError(
      '"-" reads all ids from stdin, and cannot be used with other ids',
      'Leave out either "-" or the ids',
    )
  const ids = new Set<bigint>()
  let lineNumber = 0
  for await (const line of readStdinLines(io)) {
    lineNumber += 1
    if (line.trim() !== '') ids.add(parseIdLine(line.trim(), lineNumber))
  }
  return [...ids]
}

function parseIdArgument(text: string, index: number, laterWordHint: string | undefined): bigint {
  const id = parseDecimalId(text)
  if (id !== undefined) return id
  const [, problem, hint] = assertDefined(wrongIds.find(([pattern]) => pattern.test(text)))
  const subject = isPlainWord(text) ? `"${text}"` : `Argument number ${index + 1}`
  const isLaterWord = index > 0 && isPlainWord(text)
  throw createUsageError(`${subject} ${problem}`, (isLaterWord && laterWordHint) || hint)
}

/** The first pattern that matches says what is wrong with a text that is no id. */
const wrongIds: readonly [pattern: RegExp, problem: string, hint: string][] = [
  [/^-?0\d/, 'begins with a zero', 'Write plain digits, such as 7'],
  [/^-?\d+$/, `must be ${idRule}`, 'To see the ids: plants list'],
  [/^\d/, 'is not an id', 'Name one id after the other, as in: 1 2 3'],
  [/^(?:all|\*)$/i, 'is not an id', 'For all plants: plants list | plants COMMAND -'],
  [/(?:)/, 'is not an id', 'To find an id: plants list --search TEXT'],
]

const linesHint = 'Pipe one id per line, or plants from: plants list --output ndjson'

/** Parses a line that has an id, or a plant as JSON, as `plants list --output ndjson` prints it. */
function parseIdLine(text: string, lineNumber: number): bigint {
  const parseResult = text.startsWith('{')
    ? parseJson(text)
    : { value: { id: parseDecimalId(text) } }
  const id =
    'value' in parseResult && isObject(parseResult.value) ? parseResult.value['id'] : undefined
  if (typeof id === 'bigint') return id
  const quotedText = JSON.stringify(shorten(text))
  const message = `Line ${lineNumber} of stdin is neither an id nor a plant with an id: ${quotedText}`
  throw createInputError(message, linesHint)
}

/**
 * Yields the lines of stdin, which end only at a line feed. `readline` is not used, because it also
 * ends a line at U+2028. If the name of a plant had U+2028 and a 7 after it, `plants delete -`
 * would delete plant 7.
 */
async function* readStdinLines(io: Io): AsyncGenerator<string> {
  const decode = (bytes: Buffer) => decodeUtf8(bytes, 'Stdin')
  let remainder = new GrowingBuffer()
  try {
    for await (const { buffer, byteOffset, byteLength } of io.stdin.readChunks()) {
      const block = Buffer.from(buffer, byteOffset, byteLength)
      const end = block.lastIndexOf('\n') + 1
      if (end > 0) {
        const lines = Buffer.concat([remainder.bytes, block.subarray(0, end - 1)])
        yield* decode(lines).split('\n')
        remainder = new GrowingBuffer()
      }
      remainder.append(block.subarray(end))
      if (remainder.length > maxLineBytes)
        throw createInputError('A line of stdin is longer than a plant can be', linesHint)
    }
    if (remainder.length > 0) yield decode(remainder.bytes)
  } catch (error) {
    throw explainRead('-', error, linesHint)
  }
}

/** JSON may escape each byte of a plant in six, such as `\u0041`. */
const maxLineBytes = 6 * maxDocumentBytes
