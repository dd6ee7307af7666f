/*
 * Finds the fields of plants in JSON values, which are parsed here.
 */
import { assertDefined } from '../errors.js'
import { isObject, parseJson } from '../plant/json.js'
import { explainSyntaxError } from '../plant/json-syntax.js'
import { describeInvalidPlant } from '../plant/plant.js'
import { findProblems } from '../plant/schema.js'
import {
  Chunk,
  type FieldReader,
  type InputOptions,
  maxUnreadNames,
  type RawChunk,
  type ReadProblem,
  recordTooLargeReason,
} from './chunk.js'
import { isRejectedText, joinNames, listNames, replaceRejectedTextHint } from './columns.js'
import { KeyFinder } from './keys.js'

export class JsonFields implements FieldReader<string | null> {
  /** The keys that are not read. */
  readonly unreadNames = new Set<string>()
  readonly #keyFinder: KeyFinder
  /** The key of the id in the previous record. Most likely, the next record has the same key. */
  #idKey: string

  constructor(options: InputOptions) {
    this.#keyFinder = new KeyFinder(options)
    this.#idKey = options.map.id?.[0] ?? 'id'
  }

  read({ records, lines }: RawChunk<string | null>): Chunk {
    const chunk = new Chunk()
    for (let index = 0; index < records.length; index += 1) {
      const record = records[index] ?? null
      const line = assertDefined(lines[index])
      const problem = record === null ? tooLargeProblem : this.#readRecord(record, line, chunk)
      if (problem) chunk.addProblem(problem, record, line)
    }
    return chunk
  }

  /** @returns why the record cannot be read; undefined if it was added to the chunk */
  #readRecord(record: string, line: number, chunk: Chunk): ReadProblem | undefined {
    const parseResult = parseJson(record, { idKey: this.#idKey })
    if ('isInvalid' in parseResult) return createSyntaxProblem(record)
    const { value } = parseResult
    if (!isObject(value)) return createNoObjectProblem(value)
    const keys = this.#keyFinder.find(value)
    if ('ambiguousField' in keys) {
      const names = listNames(keys.candidateKeys)
      return {
        kind: 'input',
        message: `Several keys could be the ${keys.ambiguousField}: ${names}`,
      }
    }
    const { id: idKey, name: nameKeys, tag: tagKey, unreadKeys } = keys
    if (idKey !== undefined && idKey !== this.#idKey) {
      // JavaScript would round a large id. The parser keeps the digits of the id only if it knows
      // the key, so the record is parsed again.
      this.#idKey = idKey
      return this.#readRecord(record, line, chunk)
    }
    if (nameKeys === undefined && idKey === undefined && isRejectedText(value))
      return rejectedTextProblem
    for (const key of unreadKeys)
      if (this.unreadNames.size < maxUnreadNames) this.unreadNames.add(key)
    chunk.ids.push(idKey === undefined ? undefined : value[idKey])
    chunk.names.push(nameKeys && readName(value, nameKeys))
    chunk.tags.push(tagKey === undefined ? undefined : value[tagKey])
    chunk.records.push(record)
    chunk.lines.push(line)
    return undefined
  }
}

function readName(object: Record<string, unknown>, keys: readonly string[]): unknown {
  const [key = ''] = keys
  return keys.length === 1
    ? object[key]
    : (joinNames(keys.map((nameKey) => object[nameKey])) ?? null)
}

const tooLargeProblem: ReadProblem = { kind: 'tooLarge', message: recordTooLargeReason }

const rejectedTextProblem: ReadProblem = {
  kind: 'invalid',
  message: `The line has only the text of a line that was not JSON. ${replaceRejectedTextHint}`,
}

function createSyntaxProblem(text: string): ReadProblem {
  const { description, cause } = explainSyntaxError(text)
  return { kind: 'input', message: `Not JSON: ${description}`, cause }
}

function createNoObjectProblem(value: unknown): ReadProblem {
  return { kind: 'invalid', message: describeInvalidPlant(findProblems(value)) }
}
