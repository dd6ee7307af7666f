/*
 * Shows the first objects of JSON as a table: the first row has their keys, and each further row
 * has the values of one object.
 */
import { isObject, NumberLiteral, parseJson } from '../plant/json.js'
import { type Cells, RawChunk } from './chunk.js'
import { maxHeaderRows, type TableHead } from './header.js'

/** Reads the first objects, whatever their keys are. */
export async function readObjectHead(
  valueChunks: AsyncIterable<RawChunk<string | null>>,
): Promise<TableHead> {
  const objects: { text: string; fields: Record<string, unknown> }[] = []
  for await (const { records } of valueChunks) {
    for (const record of records.slice(0, maxHeaderRows - objects.length)) {
      const text = typeof record === 'string' ? record : ''
      const parseResult = parseJson(text)
      if ('value' in parseResult && isObject(parseResult.value))
        objects.push({ text, fields: parseResult.value })
    }
    if (objects.length >= maxHeaderRows) break
  }
  const keys = [...new Set(objects.flatMap(({ fields }) => Object.keys(fields)))]
  const rows = objects.map(({ text, fields }) =>
    keys.map((key) => formatScalar(readExact(fields[key], key, text))),
  )
  return { rows: new RawChunk<Cells>(keys.length > 0 ? [keys, ...rows] : []) }
}

/** Returns the value of a key. A number that JavaScript would round is returned as its digits. */
function readExact(value: unknown, key: string, text: string): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value
  const parseResult = parseJson(text, { idKey: key })
  const exactValue =
    'value' in parseResult && isObject(parseResult.value) ? parseResult.value[key] : value
  return exactValue instanceof NumberLiteral ? exactValue.source : exactValue
}

/** @returns undefined for what no field can be: an object, an array, or null */
function formatScalar(value: unknown): string | undefined {
  if (value === null || value === undefined || Array.isArray(value) || isObject(value))
    return undefined
  return String(value)
}
