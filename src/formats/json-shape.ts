/*
 * Finds the plants in JSON that is no list of plants, and builds the jq program that prints them as
 * a list.
 *
 * It knows five shapes, which may be nested:
 *
 * - an object with a list in it: `{"plants": [{"id": 1, "name": "Fern"}]}`
 * - an object by name or by id: `{"Fern": {"id": 1}}`
 * - objects whose fields are in another object: `[{"id": 1, "fields": {"name": "Fern"}}]`
 * - GeoJSON, which has its fields in `properties`
 * - lists of cells, of which `json-rows.ts` makes objects, or a list of names
 *
 * An import does not read these shapes itself, because it could only guess the right list and the
 * right object. A hint shows a command line, which a person can check and change.
 */
import { isObject, isString } from '../plant/json.js'
import { quoteWord } from '../platform/shell.js'
import type { InputOptions } from './chunk.js'
import { findMissingFields } from './columns.js'
import { findRowList } from './json-rows.js'
import { type FieldKeys, KeyFinder } from './keys.js'

type JsonObject = Record<string, unknown>

/** A program of jq, and the first objects that it prints. */
export interface JqList {
  program: string
  objects: readonly JsonObject[]
  isGeoJson?: boolean
  /** The kind of the elements, if they are not objects. */
  elements?: 'lists' | 'strings'
  /** Whether the program prints several lists, of which a person may not want all. */
  hasSeveralLists?: boolean
}

/** Only the first objects of a list are looked at. */
export const maxObjects = 20

/** How deep a list may be nested in objects. */
const maxDepth = 3

/** Finds the list of plants in an object that is no plant. */
export function findListInObject(value: JsonObject, options: InputOptions): JqList | undefined {
  const list = findList(value, options) ?? findObjectsByName(value, options)
  return list ? pickNestedFields(list, options) : findListWithoutObjects(value, options)
}

/** Finds a list of rows in an object, or of names, unless the object has other strings. */
function findListWithoutObjects(value: JsonObject, options: InputOptions): JqList | undefined {
  const members = Object.entries(value)
  for (const [key, member] of members)
    if (isUniformList(member, Array.isArray)) {
      const list = findRowList(member.slice(0, maxObjects), formatPath(key), options)
      if (list) return list
    }
  const listsOfNames = members.filter(([, member]) => isUniformList(member, isString))
  const [[key] = []] = listsOfNames
  if (
    key === undefined ||
    listsOfNames.length > 1 ||
    members.some(([, member]) => isString(member))
  )
    return undefined
  return {
    program: `${formatPath(key)}[] | {name: .}`,
    objects: [{ name: '' }],
    elements: 'strings',
  }
}

/** Whether a value is a list, not empty, whose elements all have the type. */
function isUniformList<T>(
  value: unknown,
  isElement: (element: unknown) => element is T,
): value is T[] {
  return Array.isArray(value) && value.length > 0 && value.every(isElement)
}

/**
 * Adds a step to the program if the fields of each plant are in an object within its object, such
 * as `properties` or `tags`. The id may be outside of that object.
 *
 * @returns the list itself if its objects have names
 */
export function pickNestedFields(list: JqList, options: InputOptions): JqList {
  const { program, objects } = list
  if (hasName(objects, options)) return list
  const nestedKey = findNestedKey(list, options)
  if (nestedKey === undefined) return list
  const isIdOutside = objects.every(({ id }) => typeof id === 'number' || typeof id === 'bigint')
  const pickStep = `${isIdOutside ? '{id} + ' : ''}${formatPath(nestedKey)}`
  return {
    ...list,
    program: program === '.' ? pickStep : `${program} | ${pickStep}`,
    objects: objects.map((object) => {
      const fields = object[nestedKey] as JsonObject
      return isIdOutside ? { id: object['id'], ...fields } : fields
    }),
  }
}

function findNestedKey({ objects, isGeoJson }: JqList, options: InputOptions): string | undefined {
  if (isGeoJson) return 'properties'
  return Object.keys(objects[0] ?? {}).find((key) => {
    const nestedObjects = objects.map((object) => object[key]).filter(isObject)
    return hasName(nestedObjects, options)
  })
}

interface NestedList {
  list: JqList
  length: number
  /** Whether its objects have names, as plants have. */
  isNamed: boolean
}

/**
 * Finds the lists of plants: all lists whose objects have names, or else the longest list, because
 * a file has more plants than anything else.
 */
function findList(value: JsonObject, options: InputOptions): JqList | undefined {
  const lists = listLists(value, '', options, maxDepth)
  const namedLists = lists.filter(({ isNamed }) => isNamed).map(({ list }) => list)
  if (namedLists.length > 1)
    return {
      program: namedLists.map(({ program }) => program).join(', '),
      objects: namedLists.flatMap(({ objects }) => objects),
      hasSeveralLists: true,
    }
  return namedLists[0] ?? lists.toSorted((a, b) => b.length - a.length)[0]?.list
}

/** Lists the arrays of objects in an object. If it has none, its members are searched. */
function listLists(
  value: JsonObject,
  path: string,
  options: InputOptions,
  depth: number,
): NestedList[] {
  const members = Object.entries(value)
  const lists = members.flatMap(([key, member]) => {
    const objects = Array.isArray(member) ? member.slice(0, maxObjects).filter(isObject) : []
    const isGeoJson = value['type'] === 'FeatureCollection' && key === 'features'
    const list = { program: `${path}${formatPath(key)}[]`, objects, isGeoJson }
    if (!Array.isArray(member) || objects.length === 0) return []
    return [{ list, length: member.length, isNamed: hasName(objects, options) }]
  })
  if (lists.length > 0 || depth === 0 || haveCommonKey(value)) return lists
  return members.flatMap(([key, member]) =>
    isObject(member) ? listLists(member, path + formatPath(key), options, depth - 1) : [],
  )
}

/**
 * Whether all members of an object are objects with a common key. Then they are most likely plants
 * by name, and a list within a member is only a property of one plant.
 */
function haveCommonKey(value: JsonObject): boolean {
  const members = Object.values(value).slice(0, maxObjects)
  const [firstMember] = members
  if (members.length < 2 || !isObject(firstMember) || !members.every(isObject)) return false
  return Object.keys(firstMember).some((key) =>
    members.every((member) => Object.hasOwn(member, key)),
  )
}

/** Finds plants whose names or ids are the keys of the object around them. */
function findObjectsByName(value: JsonObject, options: InputOptions): JqList | undefined {
  const entries = Object.entries(value).slice(0, maxObjects)
  const haveIds = entries.length > 0 && entries.every(([key]) => /^\d{1,15}$/.test(key))
  if (haveIds && entries.every(([, member]) => typeof member === 'string'))
    return {
      program: 'to_entries[] | {id: (.key | tonumber), name: .value}',
      objects: entries.map(([key, name]) => ({ id: Number(key), name })),
    }
  const objects = entries.map(([, member]) => member).filter(isObject)
  if (entries.length === 0 || objects.length < entries.length) return undefined
  if (haveIds && !objects.some((object) => 'id' in object))
    return {
      program: 'to_entries[] | {id: (.key | tonumber)} + .value',
      objects: entries.map(([key], index) => ({ id: Number(key), ...objects[index] })),
    }
  // If an object has only one member, it is a list by name only if the member has an id, and no
  // name.
  const isOnlyMember = entries.length === 1
  if (isOnlyMember && (hasName(objects, options) || !hasId(objects, options))) return undefined
  return {
    program: 'to_entries[] | {name: .key} + .value',
    objects: entries.map(([key], index) => ({ name: key, ...objects[index] })),
  }
}

function hasName(objects: readonly JsonObject[], options: InputOptions): boolean {
  return findFieldKeys(objects, options).name !== undefined
}

function hasId(objects: readonly JsonObject[], options: InputOptions): boolean {
  return findFieldKeys(objects, options).id !== undefined
}

/** Finds the keys of fields that at least one of the objects has. */
function findFieldKeys(objects: readonly JsonObject[], { map }: InputOptions): FieldKeys {
  const finder = new KeyFinder(map)
  const allKeys: FieldKeys = {}
  for (const object of objects) {
    const keys = finder.find(object)
    if ('ambiguousField' in keys) allKeys[keys.ambiguousField] = keys.ambiguousField
    else Object.assign(allKeys, keys)
  }
  return allKeys
}

/** Formats a key as a step of a program of jq: `.plants`, or `.["my plants"]`. */
function formatPath(key: string): string {
  return /^[A-Za-z_]\w*$/.test(key) ? `.${key}` : `.[${JSON.stringify(key)}]`
}

/**
 * Builds the hint with the jq program. The hint does not repeat the command with all of its
 * options: if a person copied only a part of it, such as without `--store`, the plants would be
 * stored elsewhere. A field whose key is not found is written as `--map name=KEY`, for a person to
 * complete.
 */
export function buildJqHint(list: JqList, options: InputOptions, file: string): string {
  // jq decodes its input as UTF-8, whatever the encoding is, and replaces invalid bytes.
  if (options.encoding !== undefined)
    return `Save ${file === 'stdin' ? 'the input' : file} as UTF-8, and import it without --encoding`
  const keys = findFieldKeys(list.objects, options)
  const missingFields = findMissingFields({ has: (field) => keys[field] !== undefined }, options)
  const isNameMissing = missingFields.includes('name')
  const pairs = missingFields.filter((field) => isNameMissing || field !== 'id')
  const map = pairs.length > 0 ? ` --map ${pairs.map((field) => `${field}=KEY`).join()}` : ''
  const idFrom = !isNameMissing && missingFields.includes('id') ? ' --by-name' : ''
  const optionAdvice = map + idFrom === '' ? '' : `, and add${map}${idFrom}`
  const selectAdvice = list.hasSeveralLists ? ', with only the lists that you want' : ''
  const pipeAdvice =
    file === 'stdin'
      ? 'Pipe the input through this first'
      : `Pipe this into the same command, with - instead of ${file}`
  return `${pipeAdvice}${optionAdvice}${selectAdvice}: ${formatJqCommand(list.program, file)}`
}

function formatJqCommand(program: string, file: string): string {
  const jq = `jq -c ${quoteWord(program)}`
  if (file === 'stdin') return jq
  return file.endsWith('.gz') ? `gzip -dc ${quoteWord(file)} | ${jq}` : `${jq} ${quoteWord(file)}`
}

/** The length is in UTF-16 units. A longer value is not parsed. */
const maxSampleLength = 65_536

/**
 * Parses a sample of an object that is too large to be parsed as a whole. The sample has all keys.
 * A list has only its first element, and a value that is large, or comes after many others, is
 * undefined. That is enough to find the list of plants for a hint.
 *
 * @param findEnd returns the index after the value that begins at `start`
 */
export function sampleObject(
  text: string,
  start: number,
  findEnd: (text: string, start: number) => number,
): JsonObject {
  const sample: [key: string, value: unknown][] = []
  const blank = /[\s,:]*/y
  const skip = (index: number) => {
    blank.lastIndex = index
    return index + (blank.exec(text)?.[0].length ?? 0)
  }
  let index = skip(start + 1)
  while (text[index] === '"') {
    const keyEnd = findEnd(text, index)
    const valueStart = skip(keyEnd)
    const valueEnd = findEnd(text, valueStart)
    const key = parseShort(text.slice(index, keyEnd))
    if (typeof key !== 'string') break
    const elementStart = skip(valueStart + 1)
    const isList = text[valueStart] === '['
    if (isList)
      sample.push([key, [parseShort(text.slice(elementStart, findEnd(text, elementStart)))]])
    else if (sample.length >= maxObjects) sample.push([key, undefined])
    else sample.push([key, parseShort(text.slice(valueStart, valueEnd))])
    index = skip(valueEnd)
  }
  return Object.fromEntries(sample)
}

function parseShort(text: string): unknown {
  if (text.length > maxSampleLength) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
