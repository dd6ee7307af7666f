/*
 * Checks that the objects of JSON have the keys of plants. If they lack a key, the error lists the
 * keys that they have, or the keys under which there are lists of objects.
 */
import { createInputError, PlantsError } from '../errors.js'
import { isObject, parseJson } from '../plant/json.js'
import type { InputOptions, RawChunk, RawRecord } from './chunk.js'
import {
  findMissingNames,
  foldName,
  isRejectedText,
  listNames,
  replaceRejectedTextHint,
  type WantedName,
} from './columns.js'
import { type AmbiguousKeys, KeyFinder } from './keys.js'
import { createMissingFieldsError } from './missing-fields.js'

/** The JSON is no list of plants, and no choice of keys helps. */
export class NoListError extends PlantsError {
  constructor(message: string, hint: string, details?: readonly string[]) {
    super('input', message, { hint, details })
  }
}

const otherJsonHint = 'See docs/import.md, "JSON that is not a list of plants"'
const addKeyHint = 'Add --key with one of these keys'

/**
 * Checks that the first records have all needed fields. If only some records lack a field, only
 * these records are rejected later. So this throws only if all first records lack the same field.
 *
 * @throws {PlantsError} `input` if all of them lack such a key
 */
export function assertKeys({ records }: RawChunk, options: InputOptions, name: string): void {
  const finder = new KeyFinder(options)
  // No object needs a tag, so the key of the tag may be in none of the first records.
  const foldedKeys = new Set((options.map.tag ?? ['tag']).map(foldName))
  const findMissingKeys = () => findMissingNames((key) => foldedKeys.has(foldName(key)), options)
  const objects: Record<string, unknown>[] = []
  const ambiguousKeys: AmbiguousKeys[] = []
  for (const record of records) {
    const object = parseRecord(record)
    if (!isObject(object)) continue
    objects.push(object)
    const keys = finder.find(object)
    for (const key of Object.keys(object)) foldedKeys.add(foldName(key))
    if ('ambiguousField' in keys) ambiguousKeys.push(keys)
    else if (findMissingKeys().length === 0) return
  }
  if (objects.length === 0) {
    assertObjects(records, name)
    return
  }
  const [firstAmbiguousKeys] = ambiguousKeys
  throw firstAmbiguousKeys && ambiguousKeys.length === objects.length
    ? createAmbiguousError(firstAmbiguousKeys, name)
    : createKeyError(objects, findMissingKeys(), options, name)
}

/** @throws {PlantsError} `input` if all first records are JSON, but no objects */
function assertObjects(records: readonly RawRecord[], name: string): void {
  const isJson = records.length > 0 && records.every((record) => parseRecord(record) !== undefined)
  if (isJson)
    throw new NoListError(`${name} is not a list of plants: it has no objects`, otherJsonHint)
}

/** Creates the error for objects in which several keys may be the same field. */
function createAmbiguousError(
  { ambiguousField, candidateKeys }: AmbiguousKeys,
  name: string,
): PlantsError {
  return createInputError(
    `Several keys of ${name} could be the ${ambiguousField}: ${listNames(candidateKeys)}`,
    `Choose one with --map ${ambiguousField}=KEY`,
  )
}

/** @returns undefined if the record is not JSON */
function parseRecord(record: RawRecord): unknown {
  const parseResult = typeof record === 'string' ? parseJson(record) : {}
  return 'value' in parseResult ? parseResult.value : undefined
}

function createKeyError(
  objects: readonly Record<string, unknown>[],
  missingKeys: readonly WantedName[],
  options: InputOptions,
  name: string,
): PlantsError {
  if (objects.every(isRejectedText))
    return new NoListError(
      `${name} has no plants: its lines have only "rejected_text", the text of lines that were not JSON`,
      replaceRejectedTextHint,
    )
  const [firstObject = {}] = objects
  if (objects.length === 1 && options.key === undefined) {
    const listKeys = Object.keys(firstObject).filter((key) => isList(firstObject[key]))
    const values = Object.values(firstObject)
    const hasNested = values.some((value) => isObject(value) || Array.isArray(value))
    if (hasNested) return createNoListError(name, listKeys)
  }
  const names = [...new Set(objects.flatMap(Object.keys))]
  return createMissingFieldsError(missingKeys, options, { name, noun: 'key', names })
}

/** Whether a value is a list of objects that may be plants. Those of GeoJSON have them deeper. */
function isList(value: unknown): boolean {
  const first: unknown = Array.isArray(value) ? value[0] : undefined
  return isObject(first) && first['type'] !== 'Feature'
}

/** @param listKeys the keys of the outermost object that hold lists of objects */
export function createNoListError(name: string, listKeys: readonly string[]): NoListError {
  const message = `${name} is not a list of plants: it is an object`
  if (listKeys.length === 0) return new NoListError(message, otherJsonHint)
  return new NoListError(message, addKeyHint, [`keys with lists: ${listNames(listKeys)}`])
}
