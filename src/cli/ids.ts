import { isObject, parseJson } from '../plant/exact-json.js'
import { idFromText } from '../plant/plant.js'
import { malformed } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import { decoderOf, explainRead, maxDocumentBytes } from '../platform/text-files.js'
import { grouped } from '../platform/values.js'
import { parseId } from './options.js'

/** Each once, from the arguments or, for `-`, from stdin, which is read to its end. */
export async function readIds(args: readonly string[], io: Io): Promise<bigint[]> {
  if (!args.includes('-')) return [...new Set(args.map((text) => parseId('id', text)))]
  if (args.length > 1)
    throw malformed('"-" reads all ids from stdin, but other ids were given', 'Leave out one of them')
  if (!io.stdin.isPiped && !io.stdin.isTerminal) throw malformed('Stdin cannot be read', oneOnEachLine)
  const ids = new Set<bigint>()
  let line = 0
  let count = 0
  for await (const text of linesOf(io)) {
    line += 1
    if (text.trim() === '') continue
    ids.add(idIn(text.trim(), line))
    count += 1
    if (count > maxIds)
      throw malformed(`Stdin has more than ${grouped(maxIds)} ids`, `For parts of that many: split -l ${maxIds}`)
  }
  return [...ids]
}

const maxIds = 1_000_000

/** UTF-16 code units: of a plant of 1 MiB, an escape may take six for each byte */
const maxLine = 6 * maxDocumentBytes + 64

function idIn(text: string, line: number): bigint {
  const parsed = text.startsWith('{') ? parseJson(text) : { value: { id: idFromText(text) } }
  const id = 'value' in parsed && isObject(parsed.value) ? parsed.value['id'] : undefined
  if (typeof id === 'bigint') return id
  if (/^[+-]?\d/.test(text)) return parseId(`Line ${line} of stdin`, text) // says what is wrong with it
  throw malformed(
    `Line ${line} of stdin is neither an id nor a plant with an id: ${JSON.stringify(shorten(text))}`,
    'For one plant on each line: plants list --output ndjson',
  )
}

/** Without line breaks, except for the CR of a CRLF. */
async function* linesOf({ stdin }: Io): AsyncGenerator<string> {
  const decode = decoderOf('Stdin')
  let rest = ''
  try {
    for await (const chunk of stdin.chunks()) {
      const [first = '', ...others] = decode(chunk, false).split('\n')
      rest += first
      if (rest.length > maxLine) throw malformed('A line of stdin is too long for a plant', oneOnEachLine)
      const last = others.pop()
      if (last === undefined) continue
      yield rest
      yield* others
      rest = last
    }
    yield rest + decode(new Uint8Array())
  } catch (error) {
    throw explainRead('-', error, oneOnEachLine)
  }
}

const oneOnEachLine = 'Pipe ids or plants to stdin, one on each line'
