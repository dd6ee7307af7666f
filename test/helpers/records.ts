import type { NewPlant } from '../../src/plant/plant.js'
import type { InputOptions, RawRecord } from '../../src/transfer/formats/chunk.js'
import { openFormat } from '../../src/transfer/formats/formats.js'
import { Mapper } from '../../src/transfer/import/map.js'

interface Read {
  records: ReadRecord[]
  otherFields: Set<string>
  format: string
}

interface ReadRecord {
  plant?: NewPlant
  /** the `error` of a problem and its message */
  problem?: string
  line: number
  raw: RawRecord
}

type ReadOptions = Partial<InputOptions> & {
  name?: string
  /** where the input is cut into blocks; the first has 16 bytes, or all */
  cuts?: number[]
}

/** Reads an input as an import does, in blocks.  */
export async function readRecords(
  input: string | Uint8Array,
  options: ReadOptions = {},
): Promise<Read> {
  const { name = 'stdin', cuts = [], map = {}, ifExists = 'error', ...rest } = options
  const bytes = Buffer.from(input)
  const places = cuts
    .filter((cut) => cut >= 16 && cut < bytes.length)
    .toSorted((one, other) => one - other)
  async function* blocks(): AsyncGenerator<Buffer> {
    for (const [index, start] of [0, ...places].entries())
      if (start < bytes.length) yield bytes.subarray(start, places[index])
  }
  const given = { ...rest, map, ifExists }
  const file = {
    name,
    head: bytes.subarray(0, 65_536),
    blocks: blocks(),
    signal: new AbortController().signal,
  }
  const reader = await openFormat(file, given)
  const otherFields = new Set<string>()
  const mapper = new Mapper(given, reader.header, {
    otherFields,
  })
  const records: ReadRecord[] = []
  for await (const chunk of reader.chunks)
    for (const [index, raw] of chunk.records.entries()) {
      const line = chunk.lines[index] ?? 0
      const mapped = mapper.map(raw)
      if ('error' in mapped)
        records.push({ problem: `${mapped.error}: ${mapped.message}`, line, raw })
      else if (mapped.type === 'create') records.push({ plant: mapped.plant, line, raw })
    }
  return { records, otherFields, format: reader.format }
}

/** Each record as `LINE: ID NAME`, `LINE: ID NAME/TAG` or `LINE: PROBLEM`. */
export function shown({ records }: Read): string[] {
  return records.map(({ plant, problem, line }) => {
    const { id, name, tag } = plant ?? {}
    return `${line}: ${problem ?? `${id} ${name}${tag === undefined ? '' : `/${tag}`}`}`
  })
}
