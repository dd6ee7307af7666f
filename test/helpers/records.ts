import type { NewPlant } from '../../src/plant/plant.js'
import type { Format, FormatState } from '../../src/transfer/formats/format.js'
import { Portion } from '../../src/transfer/formats/portion.js'

/** What an input holds: its plants and its problems, in its order. */
export interface Read {
  records: ReadRecord[]
  otherFields: Map<string, number>
}

export interface ReadRecord {
  plant?: NewPlant
  /** the kind of a problem and its message */
  problem?: string
  line: number
  /** as it came */
  raw: string
}

interface Reader {
  /** makes the format afresh: with a state, before each portion, else once */
  make(): Format
  /** where the input is cut; nothing is given twice but what the format has not taken */
  cuts?: number[]
  isRestored?: boolean
}

/** Reads an input as an import does: what a format leaves is given to it again, with more behind it. */
export function readRecords(input: string | Uint8Array, { make, cuts = [], isRestored = false }: Reader): Read {
  const bytes = Buffer.from(input)
  const ends = [...cuts.filter((cut) => cut < bytes.length).toSorted((one, other) => one - other), bytes.length]
  const read: Collected = { records: [], raw: [], otherFields: new Map() }
  let format = make()
  let state: FormatState | undefined
  let from = 0
  for (let index = 0; from < bytes.length || index === 0; index += 1) {
    const end = ends[index] ?? bytes.length
    if (isRestored && state) {
      format = make()
      format.restore(JSON.parse(JSON.stringify(state)))
    }
    // The range of a portion need not begin with it.
    const before = Buffer.from('}"\n'.repeat(index % 3))
    const portion = new Portion(Buffer.concat([before, bytes.subarray(from, end), Buffer.from('"\n{')]))
    const left = format.read(portion, { start: before.length, end: before.length + end - from }, end === bytes.length) - before.length
    if (end === bytes.length && left !== end - from && (left === 0 || !portion.isFull))
      throw new Error(`Bytes from ${from + left} on were not read`)
    collect(portion, read)
    from += left
    state = format.save()
  }
  return {
    records: read.records.map((record, index) => ({ ...record, raw: Buffer.concat(read.raw[index] ?? []).toString() })),
    otherFields: read.otherFields,
  }
}

interface Collected {
  records: Omit<ReadRecord, 'raw'>[]
  /** the pieces of each record */
  raw: Buffer[][]
  otherFields: Map<string, number>
}

function collect(portion: Portion, { records, raw, otherFields }: Collected): void {
  const problems = [...portion.problems]
  const takeProblems = (row: number) => {
    while (problems[0] && problems[0].row <= row) {
      const { error, start, end, line } = problems.shift() ?? problems[0]
      const piece = portion.bytes.subarray(start, end)
      if (error === undefined) raw.at(-1)?.push(piece)
      else {
        records.push({ problem: `${error.kind}: ${error.message}`, line })
        raw.push([piece])
      }
    }
  }
  for (let row = 0; row < portion.rows.length; row += 1) {
    takeProblems(row)
    records.push({ plant: portion.rows.at(row), line: portion.recordLine[row] ?? 0 })
    raw.push([portion.bytes.subarray(portion.recordStart[row], portion.recordEnd[row])])
  }
  takeProblems(Infinity)
  for (const [field, count] of portion.otherFields) otherFields.set(field, (otherFields.get(field) ?? 0) + count)
}
