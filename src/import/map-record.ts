import { must } from '../errors.js'
import {
  type Cells,
  type Header,
  type InputOptions,
  type RawRecord,
  recordTooLarge,
} from '../formats/chunk.js'
import { isRejectsName } from '../formats/header.js'
import { isObject, parseJson } from '../plant/json.js'
import { type FieldName, invalidPlant, parsePlant, plantFrom } from '../plant/plant.js'
import { problemsOf } from '../plant/schema.js'
import { shorten } from '../platform/escape.js'
import { type Change, type Problem, problem } from '../stores/change.js'

/** The ids of plants by their exact names. */
export type PlantNames = Map<string, bigint | bigint[]>

export type MappedChange = Exclude<Change, { type: 'delete' }> & {
  isNumbered: boolean
}

export interface MapperState {
  /** The first number: no other record has one, or one to come of `next`. */
  firstId?: bigint | undefined
  /** The number of the next valid record without an id. */
  nextId?: bigint | undefined
  names?: PlantNames | undefined
  otherFields?: Set<string>
}

export class Mapper {
  readonly #rules: InputOptions
  readonly #header: Header | undefined
  readonly #columns: readonly (readonly [FieldName, number])[]
  readonly #state: MapperState

  constructor(rules: InputOptions, header: Header | undefined, state: MapperState) {
    this.#rules = rules
    this.#header = header
    this.#columns = [...(header?.columns ?? [])]
    this.#state = state
    for (const name of header?.unread ?? []) this.#addOther(name)
  }

  map(raw: RawRecord): MappedChange | Problem {
    if (raw === null) return problem('tooLarge', recordTooLarge)
    if (typeof raw !== 'string') {
      const width = must(this.#header).names.length
      if (raw.every((cell, column) => column < width || cell === undefined))
        return this.#change(this.#recordOf(raw), raw)
      return problem('input', `The row has ${raw.length} cells, but the header has ${width}`)
    }
    const parsed = parseJson(raw, { idKey: this.#rules.map.id || 'id' })
    if ('reason' in parsed) return problem('input', `Not JSON: ${parsed.reason}`)
    const record = this.#renamed(parsed.value)
    if (isObject(record))
      for (const key in record)
        if (key !== 'id' && key !== 'name' && key !== 'tag') this.#addOther(key)
    return this.#change(record)
  }

  #change(record: unknown, cells: Cells = []): MappedChange | Problem {
    const { ifExists, idFrom } = this.#rules
    const { firstId, nextId, names } = this.#state
    const lacksId = isObject(record) && !Object.hasOwn(record, 'id')
    const match = lacksId ? this.#match(record) : undefined
    if (typeof match === 'object') return match
    const isMatched = match !== undefined
    const id = match ?? nextId
    if (lacksId && id !== undefined) record['id'] = id
    // A run that was killed at a service may have given the next number to this plant, which is then matched.
    const isNumbered = lacksId && id !== undefined && id === nextId

    const isPartial = ifExists === 'update' && (isMatched || !isNumbered)
    const form = isPartial ? 'patch' : 'record'
    const patch = parsePlant(record, form)
    if (!patch) return problem('invalid', invalidPlant(this.#reasonsOf(record, form, cells)))
    if (isNumbered) this.#state.nextId = id + 1n
    const isBelow = idFrom === 'next' || (nextId !== undefined && patch.id < nextId)
    if (isBelow && !lacksId && firstId !== undefined && patch.id >= firstId)
      return problem('conflict', `The id ${patch.id} must be below ${firstId}, the first number`)
    // A part of a larger text would keep all of that in memory.
    if (!isMatched && patch.name != null && !names?.has(patch.name))
      names?.set(Buffer.from(patch.name).toString(), patch.id)
    if (isPartial) return { type: 'update', patch, ifMissing: 'create', isMatched, isNumbered }
    // Another plant may have the number that this one was given: it is neither skipped nor changed.
    const policy = (isNumbered && !isMatched) || ifExists === 'update' ? 'same' : ifExists
    const plant = plantFrom(patch.id, must(patch.name ?? undefined), patch.tag)
    return { type: 'create', plant, ifExists: policy, isMatched, isNumbered }
  }

  /** The id of the plant that has its name, or why that is not known. Undefined for a new plant. */
  #match({ name }: Record<string, unknown>): bigint | Problem | undefined {
    const { names, nextId } = this.#state
    if (!names || typeof name !== 'string') return undefined
    const found = names.get(name)
    if (typeof found === 'bigint' || (!found && nextId !== undefined)) return found
    const plants = found ? `Plants ${found.slice(0, 5).join(', ')} have` : 'No plant has'
    return problem('invalid', `${plants} the name ${JSON.stringify(shorten(name))}`)
  }

  #reasonsOf(record: unknown, form: 'patch' | 'record', cells: Cells): string[] {
    for (const [name, column] of this.#columns) {
      const cell = cells[column]
      if (typeof cell === 'object') return [`${name} ${cell.reason}`]
    }
    return problemsOf(record, form)
  }

  #recordOf(cells: Cells): Record<string, unknown> {
    const record: Record<string, unknown> = {}
    for (const [name, column] of this.#columns) {
      const cell = cells[column]
      // An empty cell has no text, which only an optional field may have.
      if (name !== 'id') record[name] = cell === undefined && name === 'tag' ? null : cell
      else if (cell !== undefined) record['id'] = typeof cell === 'string' ? idIn(cell) : cell
    }
    return record
  }

  #renamed(value: unknown): unknown {
    const sources = Object.entries(this.#rules.map)
    if (sources.length === 0 || !isObject(value)) return value
    const record = { ...value }
    for (const [field, source] of sources) {
      delete record[field]
      delete record[source]
    }
    for (const [field, source] of sources)
      if (source !== '' && Object.hasOwn(value, source)) record[field] = value[source]
    return record
  }

  #addOther(field: string): void {
    const { otherFields } = this.#state
    if (!otherFields || otherFields.size >= 1000 || isRejectsName(field)) return
    otherFields.add(shorten(field))
  }
}

/** In a table, spaces around an id, zeros before it and `.0` after it do not count. */
function idIn(cell: string): bigint | string {
  if (/^-?\d{1,19}$/.test(cell)) return BigInt(cell)
  const digits = cell.replace(/\.0+\s*$/, '')
  return /^\s*-?\d{1,40}\s*$/.test(digits) ? BigInt(digits) : cell
}
