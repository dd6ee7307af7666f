/*
 * Reads the sample that the dialogue of an import shows of a file that cannot be imported yet: its
 * first rows, whatever their columns are.
 */
import { type Cells, RawChunk } from '../formats/chunk.js'
import { decodeText } from '../formats/decode-text.js'
import { detectFormat, hasWorkbookStart, isTableFormat, readTableHeads } from '../formats/detect.js'
import { maxHeaderRows, type TableHead } from '../formats/header.js'
import { readDocument, readNdjson } from '../formats/json.js'
import { isObject, NumberLiteral, parseJson } from '../plant/json.js'
import type { Io } from '../platform/io.js'
import type { ImportInput } from './input-file.js'
import { type ImportPlan, openContent } from './inputs.js'

export interface Sample {
  type: 'table' | 'workbook' | 'objects'
  /**
   * A workbook has a head for each sheet, and any other file has one. JSON objects are shown as a
   * table: the first row has their keys, and each further row has the values of one object.
   */
  heads: readonly TableHead[]
}

/** @throws {PlantsError} as an import does, except if columns are missing */
export async function sampleInput(input: ImportInput, plan: ImportPlan, io: Io): Promise<Sample> {
  const content = await openContent(input, io)
  try {
    if (hasWorkbookStart(content))
      return { type: 'workbook', heads: await readTableHeads(content, plan) }
    const { format, ...encoding } = await detectFormat(content, plan)
    if (isTableFormat(format)) return { type: 'table', heads: await readTableHeads(content, plan) }
    const texts = decodeText(content, encoding)
    const valueChunks =
      format === 'json'
        ? readDocument(texts, content.name, content.signal, plan.key)
        : readNdjson(texts)
    return { type: 'objects', heads: [{ rows: await sampleObjects(valueChunks) }] }
  } finally {
    content.close()
  }
}

async function sampleObjects(valueChunks: AsyncIterable<RawChunk>): Promise<RawChunk<Cells>> {
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
  return new RawChunk<Cells>(keys.length > 0 ? [keys, ...rows] : [])
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
