/*
 * Checks that the objects of JSON have the keys of plants. If they lack a key, the error lists the
 * keys that they have. Its hint names the options that help, or the jq command that prints the
 * plants as a list.
 */
import { createInputError, PlantsError } from '../errors.js'
import type { FieldName } from '../plant/fields.js'
import { isObject, isString, parseJson } from '../plant/json.js'
import type { Chunk, InputOptions, RawRecord } from './chunk.js'
import {
  describeOnlyNames,
  findMissingFields,
  isRejectedText,
  listNames,
  replaceRejectedTextHint,
} from './columns.js'
import { findRowList } from './json-rows.js'
import {
  buildJqHint,
  findListInObject,
  type JqList,
  maxObjects,
  pickNestedFields,
} from './json-shape.js'
import { type AmbiguousKeys, KeyFinder } from './keys.js'
import { createMissingFieldsError } from './missing-fields.js'

/** The JSON is no list of plants, and no option helps: a person must convert it first. */
export class NoListError extends PlantsError {
  constructor(message: string, hint: string) {
    super('input', message, { hint })
  }
}

interface JsonSource {
  /** The file, for messages. */
  name: string
  /** Whether the text begins with an array. */
  isArray: boolean
}

/**
 * Checks that the first records have all needed fields. If only some records lack a field, only
 * these records are rejected later. So this throws only if all first records lack the same field.
 *
 * @throws {PlantsError} `input` if all of them lack such a key
 */
export function assertKeys({ records }: Chunk, options: InputOptions, source: JsonSource): void {
  const finder = new KeyFinder(options.map)
  const presentFields = new Set<FieldName>(['tag'])
  const objects: Record<string, unknown>[] = []
  const ambiguousKeys: AmbiguousKeys[] = []
  for (const record of records) {
    const object = parseObject(record)
    if (!object) continue
    objects.push(object)
    const keys = finder.find(object)
    if ('ambiguousField' in keys) {
      ambiguousKeys.push(keys)
      presentFields.add(keys.ambiguousField)
    } else {
      for (const field of Object.keys(keys)) presentFields.add(field as FieldName)
    }
    if (findMissingFields(presentFields, options).length === 0) return
  }
  if (objects.length === 0) {
    assertNoNamesOrRows(records, options, source)
    return
  }
  const [firstAmbiguousKeys] = ambiguousKeys
  if (firstAmbiguousKeys && ambiguousKeys.length === objects.length)
    throw createAmbiguousError(firstAmbiguousKeys, source)
  throw createKeyError(objects, presentFields, options, source)
}

/** @throws {PlantsError} `input` if all first records are strings, or lists of cells */
function assertNoNamesOrRows(
  records: readonly RawRecord[],
  options: InputOptions,
  source: JsonSource,
): void {
  if (records.length === 0) return
  if (records.every(isJsonString)) throw createNamesError(options, source)
  const rows = records.slice(0, maxObjects).map(parseRow)
  if (!rows.every((row) => row !== undefined)) return
  if (!rows.flat().some(isObject)) throw createRowsError(rows, options, source)
}

function isJsonString(record: RawRecord): boolean {
  return isString(parseRecord(record))
}

/** @returns undefined if the record is no array */
function parseRow(record: RawRecord): readonly unknown[] | undefined {
  const value = parseRecord(record)
  return Array.isArray(value) ? value : undefined
}

/** Creates the error for objects in which several keys may be the same field. */
function createAmbiguousError(
  { ambiguousField, candidateKeys }: AmbiguousKeys,
  { name }: JsonSource,
): PlantsError {
  return createInputError(
    `Several keys of ${name} could be the ${ambiguousField}: ${listNames(candidateKeys)}`,
    `Choose one with --map ${ambiguousField}=KEY`,
  )
}

/** Creates the error for a list of strings, such as `["Fern", "Moss"]`. */
function createNamesError(options: InputOptions, { name, isArray }: JsonSource): PlantsError {
  const program = `${isArray ? '.[] | ' : ''}{name: .}`
  return new NoListError(
    `${name} is not a list of plants: it contains only strings`,
    buildJqHint({ program, objects: [{ name: '' }] }, options, name),
  )
}

/** Creates the error for lists of cells, such as `[[1, "Fern"], [2, "Moss"]]`. */
function createRowsError(
  rows: readonly (readonly unknown[])[],
  options: InputOptions,
  { name, isArray }: JsonSource,
): PlantsError {
  const list = findRowList(rows, isArray ? '.' : undefined, options)
  return new NoListError(
    `${name} is not a list of plants: ${isArray ? 'it is a list of lists' : 'its lines are lists'}`,
    list
      ? buildJqHint(list, options, name)
      : 'Write each plant as an object, such as {"id":1,"name":"Fern"}',
  )
}

/**
 * Checks that the lines of a text are no lists of cells. A text that begins with an array is
 * otherwise read as one list.
 *
 * @param text the beginning of a text that begins with `[`
 * @throws {PlantsError} `input` if the first two lines are lists of cells
 */
export function assertNoRowLines(text: string, name: string, options: InputOptions): void {
  const lines = text.split('\n', maxObjects).filter((line) => line.trim() !== '')
  const rows = lines.map(parseRow)
  const areRows = rows.length >= 2 && rows.slice(0, 2).every((row) => row && row.length > 0)
  const cellRows = rows.filter((row) => row !== undefined)
  if (areRows && !cellRows.flat().some(isObject))
    throw createRowsError(cellRows, options, { name, isArray: false })
}

function parseObject(record: RawRecord): Record<string, unknown> | undefined {
  const value = parseRecord(record)
  return isObject(value) ? value : undefined
}

/** @returns undefined if the record is not JSON */
function parseRecord(record: RawRecord): unknown {
  const parseResult = typeof record === 'string' ? parseJson(record) : {}
  return 'value' in parseResult ? parseResult.value : undefined
}

function createKeyError(
  objects: readonly Record<string, unknown>[],
  presentFields: ReadonlySet<FieldName>,
  options: InputOptions,
  source: JsonSource,
): PlantsError {
  if (objects.every(isRejectedText)) return createRejectedTextError(source)
  const [firstObject = {}] = objects
  const isSingle = objects.length === 1 && !source.isArray
  const list = isSingle ? findListInObject(firstObject, options) : undefined
  if (list) return createNoListError(firstObject, list, options, source.name)
  if (isSingle && presentFields.size === 1) {
    const emptyListKey = findEmptyListKey(firstObject)
    if (emptyListKey !== undefined) return createEmptyListError(firstObject, emptyListKey, source)
  }

  const program = source.isArray ? '.[]' : '.'
  const isGeoJson = firstObject['type'] === 'Feature'
  const nestedList = pickNestedFields(
    { program, objects: objects.slice(0, maxObjects), isGeoJson },
    options,
  )
  const missingFields = findMissingFields(presentFields, options)
  const description = describeOnlyNames([...new Set(objects.flatMap(Object.keys))])
  const { name } = source
  const tagKey = options.map.tag ?? 'tag'
  const error = createMissingFieldsError(missingFields, options, {
    name,
    noun: 'key',
    description,
    hasTag: objects.some((object) => Object.hasOwn(object, tagKey)),
  })
  if (nestedList.program === program) return error
  return new NoListError(error.message, buildJqHint(nestedList, options, name))
}

function createRejectedTextError({ name }: JsonSource): PlantsError {
  const message = `${name} has no plants: its lines have only "rejected_text", the text of lines that were not JSON`
  return new NoListError(message, replaceRejectedTextHint)
}

/** @returns the key of the first empty list in an object; undefined if it has none */
function findEmptyListKey(object: Record<string, unknown>): string | undefined {
  return Object.keys(object).find((key) => {
    const value = object[key]
    return Array.isArray(value) && value.length === 0
  })
}

function createEmptyListError(
  { type }: Record<string, unknown>,
  key: string,
  { name }: JsonSource,
): PlantsError {
  const isGeoJson = type === 'FeatureCollection'
  const message = `${name} contains no plants: ${isGeoJson ? 'it is GeoJSON, and ' : ''}its list ${listNames([key])} is empty`
  return new NoListError(message, 'Save the list again with its plants, or choose another file')
}

/**
 * Creates the error for an object that has the list of plants in it.
 *
 * @param value the object, or a sample of it
 */
export function createNoListError(
  value: Record<string, unknown>,
  list: JqList,
  options: InputOptions,
  name: string,
): PlantsError {
  const description = list.isGeoJson
    ? 'GeoJSON'
    : `an object with the keys ${listNames(Object.keys(value))}`
  const keys = listNames([...new Set(list.objects.flatMap(Object.keys))])
  return new NoListError(
    `${name} is not a list of plants: it is ${description}, which contains ${list.elements ?? `objects with ${keys}`}`,
    buildJqHint(list, options, name),
  )
}
