import { type NewPlant, patchedPlant } from '../../src/plant/plant.js'
import { Chunk } from '../../src/transfer/formats/chunk.js'
import type { FormatReader, ReaderState } from '../../src/transfer/formats/format.js'

/** What an input holds: its plants and its invalid records, in its order. */
interface Read {
  records: ReadRecord[]
  otherFields: Map<string, number>
}

interface ReadRecord {
  plant?: NewPlant | undefined
  /** the `error` of a problem and its message */
  problem?: string
  line: number
  /** as it came */
  raw: string
}

interface Reader {
  /** makes the format afresh: with a state, before each chunk, else once */
  make(): FormatReader
  /** where the input is cut; nothing is given twice but what the format has not read */
  cuts?: number[]
  isRestored?: boolean
}

/** Reads an input as an import does: what a format leaves is given to it again, with more behind it. */
export function readRecords(input: string | Uint8Array, { make, cuts = [], isRestored = false }: Reader): Read {
  const bytes = Buffer.from(input)
  const ends = [...cuts.filter((cut) => cut < bytes.length).toSorted((one, other) => one - other), bytes.length]
  const read: Read = { records: [], otherFields: new Map() }
  let format = make()
  let state: ReaderState | undefined
  let from = 0
  for (let index = 0; from < bytes.length || index === 0; index += 1) {
    const end = ends[index] ?? bytes.length
    if (isRestored && state) {
      format = make()
      format.restore(JSON.parse(JSON.stringify(state)))
    }
    const chunk = new Chunk(bytes.subarray(from, end))
    const left = format.read(chunk, end === bytes.length)
    if (chunk.syntaxError === undefined && end === bytes.length && left !== end - from && (left === 0 || !chunk.isFull))
      throw new Error(`Bytes from ${from + left} on were not read`)
    collect(chunk, read)
    if (chunk.syntaxError) break
    from += left
    state = format.save()
  }
  return read
}

function collect(chunk: Chunk, { records, otherFields }: Read): void {
  const problems = [...chunk.invalid, ...(chunk.syntaxError ? [chunk.syntaxError] : [])]
  const rawOf = (start = 0, end = 0) => chunk.bytes.subarray(start, end).toString()
  for (let row = 0; row <= chunk.rows.length; row += 1) {
    for (; problems[0] && (problems[0].row <= row || row === chunk.rows.length); problems.shift()) {
      const { error, message, start, end, line } = problems[0]
      records.push({ problem: `${error}: ${message}`, line, raw: rawOf(start, end) })
    }
    if (row === chunk.rows.length) break
    const raw = rawOf(chunk.recordStart[row], chunk.recordEnd[row])
    records.push({ plant: patchedPlant(chunk.rows.at(row)), line: chunk.recordLine[row] ?? 0, raw })
  }
  for (const [field, count] of chunk.otherFields) otherFields.set(field, (otherFields.get(field) ?? 0) + count)
}

/** Each record as `LINE: ID NAME`, `LINE: ID NAME/TAG` or `LINE: PROBLEM`. */
export function shown(records: ReadRecord[]): string[] {
  return records.map(({ plant, problem, line }) => {
    const { id, name, tag } = plant ?? {}
    return `${line}: ${problem ?? `${id} ${name}${tag === undefined ? '' : `/${tag}`}`}`
  })
}
