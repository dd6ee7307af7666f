import { isObject, parseJson } from '../../plant/exact-json.js'
import {
  type FieldName,
  invalidPlant,
  type NewPlant,
  type PlantPatch,
  parsePlant,
} from '../../plant/plant.js'
import { problemsOf } from '../../plant/plant-schema.js'
import { must } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import {
  type Change,
  type ExistsPolicy,
  idOf,
  type Problem,
  problem,
} from '../../stores/common/change.js'
import type { Cell, Cells, FieldRules, Header, RawRecord } from '../formats/chunk.js'
import { rejectNames } from '../formats/header.js'
import { trimWhiteSpace } from '../formats/text.js'
import type { PlantNames } from './names.js'

export type MappedChange = Exclude<Change, { type: 'delete' }>

/** What two records of the input have in common when they are one plant. */
export function twin(change: MappedChange): string {
  return change.isMatched ? 'The name' : `The id ${idOf(change)}`
}

/** Makes changes of the records of an import. */
export class Mapper {
  readonly #rules: FieldRules
  /** The names of mapped fields in the input. */
  readonly #sources: readonly string[]
  readonly #ifExists: ExistsPolicy
  readonly #header: Header | undefined
  /** Of the header: a Map makes an array of each entry, for each row. */
  readonly #columns: readonly (readonly [FieldName, number])[]
  /** Of numbered records: the ids of others must be below. */
  readonly #firstId: bigint | undefined
  /** If records are matched by their names. */
  readonly #names: PlantNames | undefined
  readonly #otherFields: Map<string, number>
  /** The id of the next valid record that has none. */
  nextId: bigint | undefined

  /** @param otherFields counts the records with an unknown field, for up to a thousand fields */
  constructor(
    { rules, ifExists }: { rules: FieldRules; ifExists: ExistsPolicy },
    header: Header | undefined,
    ids: {
      firstId?: bigint | undefined
      nextId?: bigint | undefined
      names?: PlantNames | undefined
    },
    otherFields: Map<string, number>,
  ) {
    this.#rules = rules
    this.#sources = Object.values(rules.map)
    this.#ifExists = ifExists
    this.#header = header
    this.#columns = [...(header?.columns ?? [])]
    this.#firstId = ids.firstId
    this.#names = ids.names
    this.#otherFields = otherFields
    this.nextId = ids.nextId
  }

  map(raw: RawRecord): MappedChange | Problem {
    if (typeof raw !== 'string') {
      const { names } = must(this.#header)
      const row = `The row has ${raw.length} ${raw.length === 1 ? 'cell' : 'cells'}`
      if (raw.length > names.length)
        return problem('input', `${row}, but the header has ${names.length}`)
      return this.#change(this.#recordOf(raw), raw)
    }
    const parsed = parseJson(raw, { idKey: this.#rules.map.id || 'id' })
    if ('reason' in parsed) return problem('input', `Not JSON: ${parsed.reason}`)
    const record = this.#renamed(parsed.value)
    if (isObject(record)) this.#countFields(record)
    return this.#change(record)
  }

  #change(record: unknown, cells?: Cells): MappedChange | Problem {
    const lacksId = isObject(record) && !Object.hasOwn(record, 'id')
    const match = lacksId ? this.#match(record) : undefined
    if (typeof match === 'object') return match
    const isMatched = match !== undefined
    const isNumbered = lacksId && !isMatched && this.nextId !== undefined
    if (lacksId && (isMatched || isNumbered)) record['id'] = match ?? this.nextId
    const isPartial = this.#ifExists === 'update' && !isNumbered
    const form = isPartial ? 'patch' : 'record'
    const patch = parsePlant(record, form)
    if (!patch) return problem('invalid', invalidPlant(this.#reasonsOf(record, form, cells)))
    // A service may have created a plant with the next number for the same import, before that was killed.
    if (this.nextId !== undefined && (isNumbered || match === this.nextId)) this.nextId += 1n
    if (!lacksId && this.#firstId !== undefined && patch.id >= this.#firstId) {
      const rule = `must be below ${this.#firstId}, the first number that the import assigns`
      return problem('conflict', `The id ${patch.id} ${rule}`)
    }
    if (!isMatched && patch.name != null) this.#names?.add(patch.name, patch.id)
    if (isPartial) return { type: 'update', patch, ifMissing: 'create', isMatched }
    // A plant must not be skipped, or changed, because another one has the number that the import has given to it.
    const policy = this.#ifExists === 'update' ? 'same' : this.#ifExists
    const ifExists = isNumbered && policy === 'skip' ? 'same' : policy
    return { type: 'create', plant: complete(patch), ifExists, isMatched }
  }

  /** The id of the plant that has the name of the record, or why that is not known. Undefined for a new plant. */
  #match({ name }: Record<string, unknown>): bigint | Problem | undefined {
    if (!this.#names || typeof name !== 'string') return undefined
    return (
      this.#names.find(name) ?? (this.nextId === undefined ? this.#names.unknown(name) : undefined)
    )
  }

  #reasonsOf(record: unknown, form: 'patch' | 'record', cells: Cells = []): string[] {
    for (const [name, column] of this.#columns) {
      const cell = cells[column]
      if (typeof cell === 'object' && (name === 'id' || cell.digits === undefined))
        return [`${name} ${cell.reason}`]
    }
    const problems = problemsOf(record, form)
    const id = isObject(record) && this.#header ? record['id'] : undefined
    const isDate =
      typeof id === 'string' &&
      /^(?:\d{4}-\d\d-\d\d(?:T.*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4})$/.test(id)
    return isDate
      ? [`id must be an integer, but was the date ${JSON.stringify(id)}`, ...problems.slice(1)]
      : problems
  }

  #recordOf(cells: Cells): Record<string, unknown> {
    const { others, names } = must(this.#header)
    const record: Record<string, unknown> = {}
    for (const [name, column] of this.#columns) {
      const cell = cells[column]
      // An empty cell has no text, which only an optional field may have.
      if (name !== 'id') record[name] = cell === undefined && name === 'tag' ? null : textOf(cell)
      else if (cell !== undefined) record['id'] = typeof cell === 'string' ? idIn(cell) : cell
    }
    for (const column of others) {
      if (column >= cells.length) break // a header can have many more columns than a row
      if (cells[column]) this.#count(must(names[column]))
    }
    return record
  }

  /** A field of the record with the name of a mapped field is an unknown field. */
  #renamed(value: unknown): unknown {
    const { map } = this.#rules
    const sources = this.#sources
    if (sources.length === 0 || !isObject(value)) return value
    const renamed = new Map<string, unknown>()
    for (const [key, item] of Object.entries(value))
      if (!sources.includes(key) && !rejectNames.includes(key) && map[key as FieldName] !== '')
        renamed.set(Object.hasOwn(map, key) ? `${key} (of the input)` : key, item)
    for (const [field, source] of Object.entries(map))
      if (source !== '' && Object.hasOwn(value, source)) renamed.set(field, value[source])
    return Object.fromEntries(renamed)
  }

  #countFields(record: Record<string, unknown>): void {
    for (const key in record)
      if (key !== 'id' && key !== 'name' && key !== 'tag' && !rejectNames.includes(key))
        this.#count(key)
  }

  #count(field: string): void {
    const name = shorten(field)
    const count = this.#otherFields.get(name)
    if (count !== undefined || this.#otherFields.size < maxOtherFields)
      this.#otherFields.set(name, (count ?? 0) + 1)
  }
}

/** Unknown fields whose records are counted. */
export const maxOtherFields = 1000

function complete(patch: PlantPatch): NewPlant {
  const { id, name, tag } = patch
  return tag === null ? { id, name: must(name ?? undefined) } : (patch as NewPlant) // with a name, as a record is
}

/** Not a text if the cell is bad. */
function textOf(cell: Cell): Cell {
  return typeof cell === 'object' ? (cell.digits ?? cell) : cell
}

/** In a table, zeros before an id and `.0` after it do not count. */
function idIn(cell: string): bigint | string {
  if (/^-?\d{1,19}$/.test(cell)) return BigInt(cell)
  const { sign, digits } =
    /^(?<sign>-?)0*(?<digits>\d{1,19})(?:\.0{1,40})?$/.exec(trimWhiteSpace(cell))?.groups ?? {}
  return digits === undefined ? cell : BigInt(`${sign}${digits}`)
}
