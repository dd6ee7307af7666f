/*
 * What a person sees of a file that cannot be imported yet: its first rows, whatever their columns
 * are, or the first line that another encoding would read otherwise.
 */
import { type Cells, Chunk, type FormatInput } from '../formats/chunk.js'
import { decodeText } from '../formats/decode-text.js'
import { detectFormat, hasWorkbookStart, readTableHeads } from '../formats/detect.js'
import { countLineFeeds, findEncoding } from '../formats/encoding.js'
import { maxHeaderRows, type TableHead } from '../formats/header.js'
import { readDocument, readNdjson } from '../formats/json.js'
import { isObject, NumberText, parseJson } from '../plant/json.js'
import type { Io } from '../platform/io.js'
import { type ImportInput, type ImportPlan, openContent } from './inputs.js'

export interface Sample {
  type: 'table' | 'workbook' | 'objects'
  /**
   * Of a workbook, those of each sheet; otherwise one. Of objects, the first row has the keys, and
   * each other row has the values of one.
   */
  heads: readonly TableHead[]
}

/** Throws as an import does, but not for want of columns. */
export async function sampleInput(input: ImportInput, plan: ImportPlan, io: Io): Promise<Sample> {
  const content = await openContent(input, io)
  try {
    if (hasWorkbookStart(content))
      return { type: 'workbook', heads: await readTableHeads(content, plan) }
    const { format, ...encoding } = await detectFormat(content, plan)
    if (format === 'csv' || format === 'tsv')
      return { type: 'table', heads: await readTableHeads(content, plan) }
    const texts = decodeText(content, encoding)
    const values =
      format === 'json' ? readDocument(texts, content.name, content.signal) : readNdjson(texts)
    return { type: 'objects', heads: [{ rows: await sampleObjects(values) }] }
  } finally {
    content.close()
  }
}

async function sampleObjects(values: AsyncIterable<Chunk>): Promise<Chunk<Cells>> {
  const objects: { text: string; fields: Record<string, unknown> }[] = []
  for await (const { records } of values) {
    for (const record of records.slice(0, maxHeaderRows - objects.length)) {
      const text = typeof record === 'string' ? record : ''
      const parsed = parseJson(text)
      if ('value' in parsed && isObject(parsed.value)) objects.push({ text, fields: parsed.value })
    }
    if (objects.length >= maxHeaderRows) break
  }
  const keys = [...new Set(objects.flatMap(({ fields }) => Object.keys(fields)))]
  const rows = objects.map(({ text, fields }) =>
    keys.map((key) => formatScalar(readExact(fields[key], key, text))),
  )
  return new Chunk<Cells>(keys.length > 0 ? [keys, ...rows] : [])
}

/** The value of a key, or its digits if it is a number that JavaScript would round. */
function readExact(value: unknown, key: string, text: string): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value
  const parsed = parseJson(text, { idKey: key })
  const exact = 'value' in parsed && isObject(parsed.value) ? parsed.value[key] : value
  return exact instanceof NumberText ? exact.text : exact
}

/** Undefined for what no field can be: an object, an array, or nothing. */
function formatScalar(value: unknown): string | undefined {
  if (value === null || value === undefined || Array.isArray(value) || isObject(value))
    return undefined
  return String(value)
}

export interface SampleLine {
  line: number
  text: string
}

/**
 * Finds the first line with a letter beyond ASCII. Throws `input` for bytes of another encoding.
 */
export async function findForeignLine(
  input: Pick<FormatInput, 'blocks' | 'name'>,
  name: string,
): Promise<SampleLine | undefined> {
  let line = 1
  // Other encodings are not looked for, as for a text whose mark names its own.
  const encoding = { encoding: await findEncoding(name), source: 'mark' } as const
  for await (const text of decodeText(input, encoding)) {
    const index = text.search(/[^\0-\x7f]/)
    if (index === -1) {
      line += countLineFeeds(text)
      continue
    }
    const start = text.lastIndexOf('\n', index) + 1
    const end = text.indexOf('\n', index)
    const found = text.slice(start, end === -1 ? undefined : end)
    return { line: line + countLineFeeds(text, index), text: found.trim() }
  }
  return undefined
}
