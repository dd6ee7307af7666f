/* Whether JSON has the keys of plants. If not, the error says what it has, and how jq helps. */
import { inputError, PlantsError } from '../errors.js'
import type { FieldName } from '../plant/fields.js'
import { isObject, parseJson } from '../plant/json.js'
import type { Chunk, InputOptions, RawRecord } from './chunk.js'
import { findMissingFields, listNames } from './columns.js'
import { findListInObject, formatJqCommand, type JqList, pickNestedFields } from './json-shape.js'
import { KeyFinder } from './keys.js'

/** No choice of keys leads to plants: the text must be changed first. */
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

/** Throws `input` if the records of JSON together have no key for a field that is needed. */
export function assertKeys({ records }: Chunk, rules: InputOptions, source: JsonSource): void {
  const finder = new KeyFinder(rules.map)
  const found = new Set<FieldName>(['tag'])
  const objects: Record<string, unknown>[] = []
  for (const record of records) {
    const object = parseObject(record)
    if (!object) continue
    objects.push(object)
    const keys = finder.find(object)
    for (const field of 'ambiguous' in keys ? [keys.ambiguous] : Object.keys(keys))
      found.add(field as FieldName)
    if (findMissingFields(found, rules).length === 0) return
  }
  if (objects.length > 0) throw createKeyError(objects, found, rules, source)
}

function parseObject(record: RawRecord): Record<string, unknown> | undefined {
  const parsed = typeof record === 'string' ? parseJson(record) : {}
  return 'value' in parsed && isObject(parsed.value) ? parsed.value : undefined
}

function createKeyError(
  objects: readonly Record<string, unknown>[],
  found: ReadonlySet<FieldName>,
  rules: InputOptions,
  source: JsonSource,
): PlantsError {
  const [first = {}] = objects
  const isSingle = objects.length === 1 && !source.isArray
  const list = isSingle ? findListInObject(first, rules) : undefined
  if (list) return createNoListError(first, list, rules, source.name)

  const program = source.isArray ? '.[]' : '.'
  const isGeoJson = first['type'] === 'Feature'
  const nested = pickNestedFields({ program, objects: objects.slice(0, 20), isGeoJson }, rules)
  const missing = findMissingFields(found, rules)
  const wanted = listNames(missing.map((field) => rules.map[field] || field))
  const keys = listNames([...new Set(objects.flatMap(Object.keys))])
  const message = `${source.name} has no key ${wanted}: it has only ${keys}`
  if (nested.program === program) return inputError(message, chooseHint(missing))
  const command = formatJqCommand(nested, rules, source.name)
  return new NoListError(message, `Pick the fields out: ${command}`)
}

function chooseHint(missing: readonly FieldName[]): string {
  return missing.join() === 'id'
    ? 'Generate ids with --id-from next, or choose their key with --map id=KEY'
    : 'Choose keys with --map id=KEY,name=KEY. Plants without ids: --id-from next'
}

/** @param value the object that has the list */
export function createNoListError(
  value: Record<string, unknown>,
  list: JqList,
  rules: InputOptions,
  name: string,
): PlantsError {
  const what = list.isGeoJson
    ? 'GeoJSON'
    : `an object with the keys ${listNames(Object.keys(value))}`
  const keys = listNames([...new Set(list.objects.flatMap(Object.keys))])
  return new NoListError(
    `${name} is no list of plants: it is ${what}, and there are objects with ${keys} in it`,
    `Pick them out: ${formatJqCommand(list, rules, name)}`,
  )
}
