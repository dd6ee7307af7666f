/*
 * Reads the fields of plants from JSON values, which are parsed here.
 */
import { recordTooLargeReason } from '../formats/limits.js'
import { listNames } from '../formats/names.js'
import type { JsonValue } from '../formats/reader.js'
import { isObject, parseJson } from '../plant/json.js'
import { explainSyntaxError } from '../plant/json-syntax.js'
import { describeInvalidPlant } from '../plant/plant.js'
import { findProblems } from '../plant/schema.js'
import type { Chunk, ReadProblem } from './chunk.js'
import { KeyFinder } from './keys.js'
import type { FieldOptions } from './options.js'
import { joinNames } from './read-rows.js'
import { isRejectedText, replaceRejectedTextHint } from './rejects-names.js'

/** An input may have millions of names that are not read. */
export const maxUnreadNames = 1000

export class ObjectReader {
  readonly #keyFinder: KeyFinder
  /** The key of the id in the previous record. Most likely, the next record has the same key. */
  #idKey: string

  constructor(options: FieldOptions) {
    this.#keyFinder = new KeyFinder(options)
    this.#idKey = options.map.id?.[0] ?? 'id'
  }

  /** Adds a value to a chunk. */
  read({ text, line }: JsonValue, chunk: Chunk): void {
    chunk.characters += text?.length ?? 0
    const problem = text === null ? tooLargeProblem : this.#readText(text, line, chunk)
    if (problem) chunk.addProblem(problem, text, line)
  }

  /** @returns why the record cannot be read; undefined if it was added to the chunk */
  #readText(text: string, line: number, chunk: Chunk): ReadProblem | undefined {
    const parseResult = parseJson(text, { idKey: this.#idKey })
    if ('isInvalid' in parseResult) return createSyntaxProblem(text)
    const { value } = parseResult
    if (!isObject(value))
      return { kind: 'invalid', message: describeInvalidPlant(findProblems(value)) }
    const keys = this.#keyFinder.find(value)
    const id = keys.id === undefined ? undefined : this.#readId(text, value, keys.id)
    if ('ambiguousField' in keys) {
      const names = listNames(keys.candidateKeys)
      const message = `Several keys could be the ${keys.ambiguousField}: ${names}`
      return { kind: 'input', message, id }
    }
    const { name: nameKeys, tag: tagKey, unreadKeys } = keys
    if (nameKeys === undefined && keys.id === undefined && isRejectedText(value))
      return rejectedTextProblem
    for (const key of unreadKeys)
      if (chunk.unreadKeys.size < maxUnreadNames) chunk.unreadKeys.add(key)
    const tag = tagKey === undefined ? undefined : value[tagKey]
    chunk.add(id, nameKeys && readName(value, nameKeys), tag, text, line)
    return undefined
  }

  /**
   * JavaScript would round a large id. The parser keeps the digits of the id only if it knows the
   * key, so a record with another key than the one before it is parsed again.
   */
  #readId(text: string, value: Record<string, unknown>, idKey: string): unknown {
    if (idKey === this.#idKey) return value[idKey]
    this.#idKey = idKey
    const parseResult = parseJson(text, { idKey })
    return 'value' in parseResult ? (parseResult.value as typeof value)[idKey] : undefined
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
