import { isObject, parseJson } from '../../plant/exact-json.js'
import { acceptNewPlant, type FieldName, invalidPlant, type NewPlant, type PlantPatch } from '../../plant/plant.js'
import { problemsOf } from '../../plant/plant-schema.js'
import { shorten } from '../../platform/escape.js'
import { must } from '../../platform/values.js'
import { type Change, idOf, type Problem, problem } from '../../stores/common/change.js'
import type { ExistsPolicy } from '../../stores/common/conflict.js'
import type { Cells, FieldRules, Header, RawRecord } from '../formats/chunk.js'
import { rejectNames } from '../formats/header.js'

export type MappedChange = Exclude<Change, { type: 'delete' }>

/** Makes changes of the records of an import. */
export class Mapper {
  readonly #rules: FieldRules
  readonly #ifExists: ExistsPolicy
  readonly #sources: ReadonlySet<string>
  readonly #isIdentity: boolean
  readonly #header: Header | undefined
  /** the id of the next record that has none */
  nextId: bigint | undefined
  /** the first of those of `--id-from next`, below which the ids of records must be */
  readonly #firstId: bigint | undefined
  /** numbers of records by unknown field, of up to a thousand fields */
  readonly otherFields: Map<string, number>
  /** records that are invalid only because they have no id, or one such as "A-7" */
  withoutIds = 0

  /** @param start where it goes on */
  constructor(
    rules: FieldRules,
    ifExists: ExistsPolicy,
    header: Header | undefined,
    firstId: bigint | undefined,
    start: { nextId?: string | undefined; otherFields: Record<string, number> },
  ) {
    this.#rules = rules
    this.#ifExists = ifExists
    this.#header = header
    this.#sources = new Set([...Object.values(rules.map), ...rejectNames])
    this.#isIdentity = Object.keys(rules.map).length === 0
    this.#firstId = firstId
    const begin = rules.idFrom === 'next' ? firstId : rules.idFrom
    this.nextId = start.nextId === undefined ? begin : BigInt(start.nextId)
    this.otherFields = new Map(Object.entries(start.otherFields))
  }

  get position() {
    const { nextId, otherFields } = this
    return { otherFields: Object.fromEntries(otherFields), ...(nextId !== undefined && { nextId: String(nextId) }) }
  }

  map(raw: RawRecord): MappedChange | Problem {
    if (typeof raw !== 'string') return this.#tooWide(raw) ?? this.#change(this.#recordOf(raw), raw)
    const idKey = this.#rules.map.id || 'id'
    const parsed = parseJson(raw, { idKey })
    if ('value' in parsed) return this.#change(this.#isIdentity ? parsed.value : this.#renamed(parsed.value))
    return problem('malformed', `Not JSON: ${parsed.reason}`)
  }

  /** The id that a record names. */
  idOf(raw: RawRecord): bigint | undefined {
    const change = this.map(raw)
    return 'error' in change ? undefined : idOf(change)
  }

  #change(record: unknown, cells?: Cells): MappedChange | Problem {
    if (isObject(record) && !cells) this.#countFields(record)
    const isNumbered = this.nextId !== undefined && isObject(record) && !Object.hasOwn(record, 'id')
    if (isNumbered) record['id'] = this.nextId
    const isPartial = this.#ifExists === 'update' && !isNumbered
    const kind = isPartial ? 'patch' : 'record'
    const patch = acceptNewPlant(record, kind)
    const why = patch ? this.#limitOf(patch, isNumbered) : problem('invalid', this.#reasonOf(record, isPartial, cells))
    // A number is used up by its record even if that is invalid: corrected, it must not take that of another one.
    if (isNumbered && this.nextId !== undefined) this.nextId += 1n
    const hasId = !isObject(record) || ['bigint', 'object'].includes(typeof record['id'])
    if (!patch && !hasId && acceptNewPlant({ ...record, id: 0n }, kind)) this.withoutIds += 1
    if (why || !patch) return must(why)
    if (isPartial) return { type: 'update', patch, ifMissing: 'create' }
    // A plant must not be skipped, or changed, because another one has the number that the import has given to it.
    const policy = this.#ifExists === 'update' ? 'same' : this.#ifExists
    return { type: 'create', plant: complete(patch), ifExists: isNumbered && policy === 'skip' ? 'same' : policy }
  }

  #limitOf({ id }: PlantPatch, isNumbered: boolean): Problem | undefined {
    if (isNumbered || this.#firstId === undefined || id < this.#firstId) return undefined
    const rule = `must be below ${this.#firstId}, the first that --id-from next assigns`
    return problem('conflict', `The id ${id} ${rule}: name a greater one with --id-from`)
  }

  #reasonOf(record: unknown, isPartial: boolean, cells: Cells | undefined): string {
    const problems = problemsOf(record, isPartial ? 'patch' : 'record')
    const bad = cells && this.#badCell(cells)
    const id = isObject(record) && cells ? dateProblem(record['id']) : undefined
    return invalidPlant(bad ? [bad] : id ? [id, ...problems.slice(1)] : problems)
  }

  #badCell(cells: Cells): string | undefined {
    for (const column of this.#header?.columns.values() ?? []) {
      const cell = cells[column]
      if (typeof cell === 'object') return cell.reason
    }
    return undefined
  }

  #tooWide({ length }: Cells): Problem | undefined {
    const { names } = must(this.#header)
    if (length <= names.length) return undefined
    const row = `The row has ${length} ${length === 1 ? 'cell' : 'cells'}`
    return problem('malformed', `${row}, but the header has ${names.length}`)
  }

  #recordOf(cells: Cells): Record<string, unknown> {
    const { columns, others } = must(this.#header)
    const record: Record<string, unknown> = {}
    for (const [name, column] of columns) {
      const cell = cells[column]
      // An empty cell has no text, which only an optional field may have.
      if (name !== 'id') record[name] = cell === undefined && name === 'tag' ? null : cell
      else if (cell !== undefined) record['id'] = typeof cell === 'string' ? idIn(cell) : cell
    }
    for (const column of others) {
      if (column >= cells.length) break // a header can have many more columns than a row
      if (cells[column]) this.#count(must(must(this.#header).names[column]))
    }
    return record
  }

  #renamed(value: unknown): unknown {
    if (!isObject(value)) return value
    const { map } = this.#rules
    const renamed = new Map<string, unknown>()
    // A field of the record with the name of a mapped field is an unknown field.
    for (const [key, item] of Object.entries(value))
      if (!this.#sources.has(key) && map[key as FieldName] !== '')
        renamed.set(Object.hasOwn(map, key) ? `${key} (of the input)` : key, item)
    for (const [field, source] of Object.entries(map))
      if (source !== '' && Object.hasOwn(value, source)) renamed.set(field, value[source])
    return Object.fromEntries(renamed)
  }

  #countFields(record: Record<string, unknown>): void {
    for (const key in record)
      if (key !== 'id' && key !== 'name' && key !== 'tag' && !rejectNames.some((name) => name === key)) this.#count(key)
  }

  #count(field: string): void {
    const name = shorten(field)
    const count = this.otherFields.get(name)
    if (count !== undefined || this.otherFields.size < 1000) this.otherFields.set(name, (count ?? 0) + 1)
  }
}

function complete(patch: PlantPatch): NewPlant {
  const { id, name, tag } = patch
  return tag === null ? { id, name: must(name ?? undefined) } : (patch as NewPlant) // with a name, as a record is
}

/** In a table, zeros before an id and `.0` after it do not count. */
function idIn(cell: string): bigint | string {
  if (/^-?\d{1,18}$/.test(cell)) return BigInt(cell)
  const { sign, digits } = /^(?<sign>-?)0*(?<digits>\d{1,19})(?:\.0{1,40})?$/.exec(cell.trim())?.groups ?? {}
  return digits === undefined ? cell : BigInt(`${sign}${digits}`)
}

/** For an id that the schema would only call a wrong text. */
function dateProblem(id: unknown): string | undefined {
  const isDate = typeof id === 'string' && /^(?:\d{4}-\d\d-\d\d(?:T.*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4})$/.test(id)
  return isDate ? `id must be an integer, but was the date ${JSON.stringify(id)}` : undefined
}
