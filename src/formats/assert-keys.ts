/*
 * Checks the first objects of JSON. If all of them lack a field, the error names their keys, and
 * the dialogue of an import asks about them as about a table: its first row has the keys, and each
 * further row has the values of one object.
 */
import { createInputError, type PlantsError } from '../errors.js'
import { isObject, parseJson } from '../plant/json.js'
import { type Cells, type InputOptions, RawChunk, type RawRecord, type Sample } from './chunk.js'
import {
  findMissingNames,
  foldName,
  isRejectedText,
  listNames,
  replaceRejectedTextHint,
} from './columns.js'
import { maxHeaderRows } from './header.js'
import { type AmbiguousKeys, KeyFinder } from './keys.js'
import { ColumnsError, createMissingFieldsError, describeColumns } from './sample.js'

const otherJsonHint = 'See: plants help importing'
const addKeyHint = 'Add --key with one of these keys'

/**
 * Checks that the first records have all needed fields. If only some records lack a field, only
 * these records are rejected later. So this throws only if all first records lack the same field.
 *
 * @returns the first objects
 * @throws {PlantsError} `input` if all of them lack such a key
 */
export function assertKeys({ records }: RawChunk, options: InputOptions, name: string): Sample {
  const sample: Sample = { noun: 'key', heads: [{ rows: readObjectRows(records) }] }
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
    else if (findMissingKeys().length === 0) return sample
  }
  if (objects.length === 0) {
    assertObjects(records, name)
    return sample
  }
  const [firstAmbiguousKeys] = ambiguousKeys
  if (firstAmbiguousKeys && ambiguousKeys.length === objects.length) {
    const { ambiguousField, candidateKeys } = firstAmbiguousKeys
    throw new ColumnsError(
      `Several keys of ${name} could be the ${ambiguousField}: ${listNames(candidateKeys)}`,
      `Choose one with --map ${ambiguousField}=KEY`,
      sample,
    )
  }
  assertList(objects, options, name)
  const rows = sample.heads.flatMap(({ rows: head }) => head.records)
  const names = describeColumns(rows, 0).map((column) => column.name)
  throw createMissingFieldsError(findMissingKeys(), options, { name, names, sample })
}

/** @throws {PlantsError} `input` if all first records are JSON, but no objects */
function assertObjects(records: readonly RawRecord[], name: string): void {
  const isJson = records.length > 0 && records.every((record) => parseRecord(record) !== undefined)
  if (isJson)
    throw createInputError(`${name} is not a list of plants: it has no objects`, otherJsonHint)
}

/** @returns undefined if the record is not JSON */
function parseRecord(record: RawRecord): unknown {
  const parseResult = typeof record === 'string' ? parseJson(record) : {}
  return 'value' in parseResult ? parseResult.value : undefined
}

/** @throws {PlantsError} `input` for objects that are no plants, whatever keys are chosen */
function assertList(
  objects: readonly Record<string, unknown>[],
  options: InputOptions,
  name: string,
): void {
  if (objects.every(isRejectedText))
    throw createInputError(
      `${name} has no plants: its lines have only "rejected_text", the text of lines that were not JSON`,
      replaceRejectedTextHint,
    )
  const [firstObject = {}] = objects
  if (objects.length > 1 || options.key !== undefined) return
  const listKeys = Object.keys(firstObject).filter((key) => isList(firstObject[key]))
  const values = Object.values(firstObject)
  const hasNested = values.some((value) => isObject(value) || Array.isArray(value))
  if (hasNested) throw createNoListError(name, listKeys)
}

/** Whether a value is a list of objects that may be plants. Those of GeoJSON have them deeper. */
function isList(value: unknown): boolean {
  const first: unknown = Array.isArray(value) ? value[0] : undefined
  return isObject(first) && first['type'] !== 'Feature'
}

/** @param listKeys the keys of the outermost object that hold lists of objects */
export function createNoListError(name: string, listKeys: readonly string[]): PlantsError {
  const message = `${name} is not a list of plants: it is an object`
  if (listKeys.length === 0) return createInputError(message, otherJsonHint)
  return createInputError(message, addKeyHint, undefined, [
    `keys with lists: ${listNames(listKeys)}`,
  ])
}

/** Reads the first objects as rows, whatever their keys are. */
function readObjectRows(records: readonly RawRecord[]): RawChunk<Cells> {
  const objects: Record<string, unknown>[] = []
  for (const record of records) {
    const object = parseRecord(record)
    if (isObject(object)) objects.push(object)
    if (objects.length >= maxHeaderRows) break
  }
  const keys = [...new Set(objects.flatMap(Object.keys))]
  const rows = objects.map((object) => keys.map((key) => formatScalar(object[key])))
  return new RawChunk<Cells>(keys.length > 0 ? [keys, ...rows] : [])
}

/** @returns undefined for what no field can be: an object, an array, or null */
function formatScalar(value: unknown): string | undefined {
  if (value === null || value === undefined || Array.isArray(value) || isObject(value))
    return undefined
  return String(value)
}
