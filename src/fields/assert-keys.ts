/*
 * Checks the first objects of JSON. If all of them lack a field, the error names their keys, and
 * the dialogue of an import asks about them as about a table: its first row has the keys, and each
 * further row has the values of one object.
 */
import { createInputError } from '../errors.js'
import { foldLabel, listNames } from '../formats/names.js'
import { type Cells, type FormatOptions, type JsonValue, maxHeadRows } from '../formats/reader.js'
import { isObject, NumberLiteral, parseJson } from '../plant/json.js'
import { isCalledName } from './guess-columns.js'
import { type AmbiguousKeys, KeyFinder } from './keys.js'
import { ColumnsError, createMissingFieldsError, type Sample } from './missing-fields.js'
import { type FieldOptions, findMissingNames } from './options.js'
import { isRejectedText, replaceRejectedTextHint } from './rejects-names.js'

const otherJsonHint = 'See: plants help importing'

/**
 * Checks that the first records have all needed fields. If only some records lack a field, only
 * these records are rejected later. So this throws only if all first records lack the same field.
 *
 * @returns the first objects
 * @throws {PlantsError} `input` if all of them lack such a key
 */
export function assertKeys(
  values: readonly JsonValue[],
  options: FieldOptions & Pick<FormatOptions, 'key'>,
  name: string,
): Sample {
  const rows = readObjectRows(values)
  const sample: Sample = { noun: 'key', heads: [{ rows }] }
  const finder = new KeyFinder(options)
  // No object needs a tag, so the key of the tag may be in none of the first records.
  const foldedKeys = new Set((options.map.tag ?? ['tag']).map(foldLabel))
  const findMissingKeys = () => findMissingNames((key) => foldedKeys.has(foldLabel(key)), options)
  const objects: Record<string, unknown>[] = []
  const ambiguousKeys: AmbiguousKeys[] = []
  for (const value of values) {
    const object = parseValue(value)
    if (!isObject(object)) continue
    objects.push(object)
    const keys = finder.find(object)
    for (const key of Object.keys(object)) foldedKeys.add(foldLabel(key))
    if ('ambiguousField' in keys) ambiguousKeys.push(keys)
    else if (findMissingKeys().length === 0) return sample
  }
  if (objects.length === 0) {
    assertObjects(values, name)
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
  throw createMissingFieldsError(findMissingKeys(), options, { name, sample, rows, headerRow: 0 })
}

/** @throws {PlantsError} `input` if all first records are JSON, but no objects */
function assertObjects(values: readonly JsonValue[], name: string): void {
  const isJson = values.length > 0 && values.every((value) => parseValue(value) !== undefined)
  if (isJson)
    throw createInputError(`${name} is not a list of plants: it has no objects`, otherJsonHint)
}

/** @returns undefined if the text is not JSON */
function parseValue({ text }: JsonValue): unknown {
  const parseResult = text === null ? {} : parseJson(text)
  return 'value' in parseResult ? parseResult.value : undefined
}

/** @throws {PlantsError} `input` for objects that are no plants, whatever keys are chosen */
function assertList(
  objects: readonly Record<string, unknown>[],
  { key }: Pick<FormatOptions, 'key'>,
  name: string,
): void {
  if (objects.every(isRejectedText))
    throw createInputError(
      `${name} has no plants: its lines have only "rejected_text", the text of lines that were not JSON`,
      replaceRejectedTextHint,
    )
  const [firstObject = {}] = objects
  const isOutermost = objects.length === 1 && key === undefined
  const lists = Object.entries(firstObject).filter(([, value]) => isObject(readFirst(value)))
  const records = isOutermost ? lists.map(([, list]) => readFirst(list)) : objects
  const isNested = isOutermost && lists.length === 0 && Object.values(firstObject).some(isNesting)
  const deepRecord = isNested ? firstObject : records.find(hasDeeperFields)
  if (deepRecord) {
    const reason = isOutermost ? 'it is an object' : 'its objects hold objects'
    const deepEntries = Object.entries(deepRecord).filter(([, value]) => isNesting(value))
    const deepKeys = listNames(deepEntries.map(([deepKey]) => deepKey))
    throw createInputError(`${name} is not a list of plants: ${reason}`, otherJsonHint, undefined, [
      `keys with objects or lists: ${deepKeys}`,
    ])
  }
  if (isOutermost && lists.length > 0)
    throw createInputError(
      `${name} is not a list of plants: it is an object`,
      'Add --key with one of these keys',
      undefined,
      [`keys with lists: ${listNames(lists.map(([listKey]) => listKey))}`],
    )
}

function readFirst(value: unknown): unknown {
  return Array.isArray(value) ? value[0] : undefined
}

/** Whether a value is an object or an array. An id that is no integer is parsed to a literal. */
function isNesting(value: unknown): boolean {
  return Array.isArray(value) || (isObject(value) && !(value instanceof NumberLiteral))
}

/** Whether the fields of a plant must be deeper in an object, as in GeoJSON and ArcGIS. */
function hasDeeperFields(record: unknown): record is object {
  const members = isObject(record) ? Object.entries(record) : []
  const hasName = members.some(([key, value]) => !isNesting(value) && isCalledName(key))
  return !hasName && members.some(([, value]) => isNesting(value) && !Array.isArray(value))
}

/** Reads the first objects as rows, below a row of their keys that can have fields. */
function readObjectRows(values: readonly JsonValue[]): Cells[] {
  const objects: Record<string, unknown>[] = []
  for (const value of values) {
    const object = parseValue(value)
    if (isObject(object)) objects.push(object)
    if (objects.length >= maxHeadRows) break
  }
  const keys = [...new Set(objects.flatMap(Object.keys))].filter(
    (key) => !objects.some((object) => isNesting(object[key])),
  )
  const rows = objects.map((object) => keys.map((key) => formatScalar(object[key])))
  return keys.length > 0 ? [keys, ...rows] : []
}

function formatScalar(value: unknown): string | undefined {
  if (value instanceof NumberLiteral) return value.source
  return value === null || value === undefined ? undefined : String(value)
}
