import { assertDefined } from '../../../src/errors.js'
import type { RawRecord } from '../../../src/fields/chunk.js'
import { type InputOptions, openRecords } from '../../../src/fields/open.js'
import { detectFormat } from '../../../src/formats/detect.js'
import { mapRecords } from '../../../src/import/map.js'
import type { NewPlant, PlantPatch } from '../../../src/plant/plant.js'

interface ReadRecord {
  plant?: NewPlant
  /** The fields that a record changes, with `--if-exists update`. */
  patch?: PlantPatch
  /** The `error` of a rejected record, and the first word of the reason, unless it is an input error. */
  problem?: string
  line: number
  raw: RawRecord
}

interface ReadOptions extends Partial<InputOptions> {
  name?: string
  /** Where the input is cut into blocks; the first has 16 bytes, or all. */
  cuts?: Iterable<number>
  /** Whether the input is a pipe. */
  isReadOnce?: boolean
}

export async function readRecords(
  input: string | Uint8Array,
  { name = 'stdin', cuts = [], isReadOnce = false, ...given }: ReadOptions = {},
) {
  const bytes = Buffer.from(input)
  const places = [...cuts].filter((cut) => cut >= 16 && cut < bytes.length)
  async function* blocks(): AsyncGenerator<Buffer> {
    let start = 0
    for (const end of [...places.toSorted((one, other) => one - other), bytes.length]) {
      if (start < end) yield bytes.subarray(start, end)
      start = end
    }
  }
  const options = { map: {}, ifExists: 'skip' as const, ...given }
  const { signal } = new AbortController()
  const file = { name, head: bytes.subarray(0, 65_536), blocks: blocks(), isReadOnce, signal }
  const reader = await openRecords(file, options)
  const { format } = await detectFormat(file, options)
  const records: ReadRecord[] = []
  const otherFields = new Set(reader.type === 'table' ? reader.header?.unreadNames : [])
  for await (const chunk of reader.readChunks()) {
    for (const key of chunk.unreadKeys) otherFields.add(key)
    const results = mapRecords(chunk, { ...options, matches: undefined, removesMissingTags: false })
    for (const [index, record] of chunk.records.entries()) {
      const raw = reader.type === 'table' ? reader.readCells(record) : record
      const at = { line: chunk.lines[index] ?? 0, raw }
      records.push({ ...describeOutcome(assertDefined(results[index])), ...at })
    }
  }
  return { records, otherFields, format }
}

function describeOutcome(mapped: ReturnType<typeof mapRecords>[number]): Partial<ReadRecord> {
  if ('error' in mapped) {
    const [word] = mapped.message.replace(/^Invalid plant: (?:the )?/, '').split(' ')
    return { problem: `${mapped.error}${mapped.error === 422 ? ` ${word}` : ''}` }
  }
  if (mapped.type === 'create') return { plant: mapped.plant }
  return mapped.type === 'update' ? { patch: mapped.patch } : {}
}

/** Each record as `LINE: ID NAME`, `LINE: ID NAME/TAG` or `LINE: PROBLEM`. */
export function formatRecords({ records }: { records: ReadRecord[] }): string[] {
  return records.map(({ plant, problem, line }) => {
    const { id, name, tag } = plant ?? {}
    return `${line}: ${problem ?? `${id} ${name}${tag === undefined ? '' : `/${tag}`}`}`
  })
}
