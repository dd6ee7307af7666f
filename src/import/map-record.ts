/*
 * Maps records to changes of plants: of JSON, the fields of an object; of a table, the cells below
 * the header.
 *
 * A record without an id first gets one, from its name or from the ids that the import generates,
 * or is rejected. Then it becomes a create or an update. A mapper leaves records as they are: what
 * it remembers from one to the next, such as the next id, is its `MapperState` alone, which the
 * mappers of all inputs share.
 */
import { assertDefined } from '../errors.js'
import {
  type Cells,
  type Header,
  type InputOptions,
  type RawRecord,
  recordTooLarge,
} from '../formats/chunk.js'
import { isRejectsName, listNames } from '../formats/columns.js'
import { type FieldKeys, KeyFinder } from '../formats/keys.js'
import { type FieldName, fieldNames, isText } from '../plant/fields.js'
import { isInt64, isObject, parseJson } from '../plant/json.js'
import {
  buildPlant,
  describeInvalidPlant,
  type NewPlant,
  type PlantPatch,
  parsePlant,
} from '../plant/plant.js'
import { findProblems } from '../plant/schema.js'
import { shorten } from '../platform/escape.js'
import { type Change, createProblem, type Problem } from '../stores/change.js'

/** The ids of plants by their exact names. */
export type PlantNames = Map<string, bigint | bigint[]>

/**
 * Where the id of a change comes from.
 *
 * - `given`: the record has it.
 * - `foundByName`: it is the id of the plant that has the name of the record.
 * - `generated`: the import assigns it.
 * - `generatedBefore`: the plant was found by its name, and has the next generated id. A run that
 *   was killed has stored it at a service, before its checkpoint.
 */
type IdSource = 'given' | 'foundByName' | 'generated' | 'generatedBefore'

export type MappedChange = Exclude<Change, { type: 'delete' }> & { idSource: IdSource }

export interface MapperState {
  /** The first generated id: no record has one from there on, or one to come of `next`. */
  firstId?: bigint | undefined
  /** The id that the import generates for the next valid record without one. */
  nextId?: bigint | undefined
  names?: PlantNames | undefined
  otherFields?: Set<string>
}

/** The id is undefined for a record that has its own, or that gets none. */
interface AssignedId {
  id: bigint | undefined
  idSource: IdSource
}

const givenId: AssignedId = { id: undefined, idSource: 'given' }

export class Mapper {
  readonly #rules: InputOptions
  readonly #header: Header | undefined
  readonly #columns: readonly (readonly [FieldName, number])[]
  readonly #state: MapperState
  readonly #hasMap: boolean
  readonly #keyFinder: KeyFinder
  /** Whether each record has its id, and becomes a create: see `#mapPlain`. */
  readonly #isPlain: boolean
  /** The key of the id in the record before, with which the next one is parsed. */
  #idKey: string

  constructor(rules: InputOptions, header: Header | undefined, state: MapperState) {
    this.#rules = rules
    this.#header = header
    this.#columns = [...(header?.columns ?? [])]
    this.#state = state
    this.#hasMap = Object.keys(rules.map).length > 0
    this.#keyFinder = new KeyFinder(rules.map)
    this.#isPlain = isPlainImport(rules, state)
    this.#idKey = rules.map.id || 'id'
    for (const name of header?.unread ?? []) this.#addOtherField(name)
  }

  /** @param key of the create at a service; undefined for a direct store */
  map(raw: RawRecord, key?: string): MappedChange | Problem {
    if (raw === null) return createProblem('tooLarge', recordTooLarge)
    const plain = this.#isPlain ? this.#mapPlain(raw, key) : undefined
    if (plain) return plain
    if (typeof raw === 'string') return this.#mapJson(raw, key)
    const width = assertDefined(this.#header).names.length
    if (raw.some((cell, column) => column >= width && cell !== undefined))
      return createProblem('input', `The row has ${raw.length} cells, but the header has ${width}`)
    return this.#mapRecord(this.#readCells(raw), raw, key)
  }

  /**
   * Maps a valid row, or an object as exports write it, to its create, without the record in
   * between that matching, generated ids and updates need. It gives what the general path gives, to
   * which it leaves every other one.
   */
  #mapPlain(raw: string | Cells, key: string | undefined): MappedChange | undefined {
    const plant = typeof raw === 'string' ? this.#parsePlainJson(raw) : this.#readPlainRow(raw)
    if (!plant) return undefined
    return {
      type: 'create',
      plant,
      key,
      ifExists: chooseExistsPolicy('given', key, this.#rules.ifExists),
      isFoundByName: false,
      idSource: 'given',
    }
  }

  #parsePlainJson(text: string): NewPlant | undefined {
    if (this.#hasMap) return undefined
    const [, digits, name, tag] = plainObject.exec(text) ?? []
    return digits === undefined ? undefined : createPlainPlant(BigInt(digits), name, tag)
  }

  #readPlainRow(cells: Cells): NewPlant | undefined {
    const { names, columns } = assertDefined(this.#header)
    const idCell = cells[columns.get('id') ?? -1]
    const name = cells[columns.get('name') ?? -1]
    const tag = cells[columns.get('tag') ?? -1]
    if (cells.length > names.length || typeof idCell !== 'string') return undefined
    return createPlainPlant(parseId(idCell), name, tag)
  }

  #mapJson(text: string, key: string | undefined): MappedChange | Problem {
    const parsed = parseJson(text, { idKey: this.#idKey })
    if ('reason' in parsed) return createProblem('input', `Not JSON: ${parsed.reason}`)
    const { value } = parsed
    if (!isObject(value)) return this.#mapRecord(value, [], key)
    const keys = this.#keyFinder.find(value)
    if ('ambiguous' in keys) {
      const names = listNames(keys.candidates)
      return createProblem('input', `Several keys may be the ${keys.ambiguous}: ${names}`)
    }
    if (keys.id !== undefined && keys.id !== this.#idKey) {
      // The id is exact only under the key that the parser was told.
      this.#idKey = keys.id
      return this.#mapJson(text, key)
    }
    this.#addOtherKeys(value, keys)
    const isPlain = !this.#hasMap && areFieldNames(keys)
    return this.#mapRecord(isPlain ? value : pickFields(value, keys), [], key)
  }

  #mapRecord(record: unknown, cells: Cells, key: string | undefined): MappedChange | Problem {
    const assigned = this.#assignId(record)
    if ('error' in assigned) return assigned
    const { id, idSource } = assigned
    const withId = id === undefined || !isObject(record) ? record : addId(record, id)

    // A plant that gets a generated id is new: there are no fields to keep.
    const isUpdate = this.#rules.ifExists === 'update' && idSource !== 'generated'
    const form = isUpdate ? 'patch' : 'record'
    const patch = parsePlant(withId, form)
    if (!patch)
      return createProblem('invalid', describeInvalidPlant(this.#findReasons(withId, form, cells)))

    if (isGenerated(idSource)) this.#state.nextId = patch.id + 1n
    else if (idSource === 'given' && this.#isReserved(patch.id))
      return createProblem(
        'conflict',
        `The id ${patch.id} must be below ${this.#state.firstId}, the first number`,
      )
    if (!isFoundByName(idSource)) this.#rememberName(patch)
    return isUpdate
      ? buildUpdate(patch, idSource, key)
      : buildCreate(patch, idSource, key, this.#rules.ifExists)
  }

  /** Finds or generates an id for a record that has none, or says why that is not possible. */
  #assignId(record: unknown): AssignedId | Problem {
    if (!isObject(record) || Object.hasOwn(record, 'id')) return givenId
    const { nextId } = this.#state
    const id = this.#findByName(record['name'])
    if (typeof id === 'object') return id
    if (id !== undefined) return { id, idSource: id === nextId ? 'generatedBefore' : 'foundByName' }
    return nextId === undefined ? givenId : { id: nextId, idSource: 'generated' }
  }

  /** The id of the plant with a name, or why that is not known. Undefined for a new plant. */
  #findByName(name: unknown): bigint | Problem | undefined {
    const { names, nextId } = this.#state
    if (!names || typeof name !== 'string') return undefined
    const found = names.get(name)
    if (typeof found === 'bigint' || (!found && nextId !== undefined)) return found
    const plants = found ? `Plants ${found.slice(0, 5).join(', ')} have` : 'No plant has'
    return createProblem('invalid', `${plants} the name ${JSON.stringify(shorten(name))}`)
  }

  /** Whether the import generates this id, or may generate it later. */
  #isReserved(id: bigint): boolean {
    const { firstId, nextId } = this.#state
    const isLimited = this.#rules.idFrom === 'next' || (nextId !== undefined && id < nextId)
    return isLimited && firstId !== undefined && id >= firstId
  }

  /** A later record without an id may have the same name. */
  #rememberName({ id, name }: PlantPatch): void {
    const { names } = this.#state
    if (!names || name == null || names.has(name)) return
    // The name may be a part of a larger string, all of which it would keep in memory.
    names.set(Buffer.from(name).toString(), id)
  }

  #findReasons(record: unknown, form: 'patch' | 'record', cells: Cells): string[] {
    for (const [name, column] of this.#columns) {
      const cell = cells[column]
      if (typeof cell === 'object') return [`the ${name} ${cell.reason}`]
    }
    return findProblems(record, form)
  }

  #readCells(cells: Cells): Record<string, unknown> {
    const record: Record<string, unknown> = {}
    for (const [name, column] of this.#columns) {
      const cell = cells[column]
      // An empty cell has no value, which only an optional field may have.
      if (name !== 'id') record[name] = cell === undefined && name === 'tag' ? null : cell
      else if (cell !== undefined) record['id'] = typeof cell === 'string' ? parseId(cell) : cell
    }
    return record
  }

  /** A field that `--map` reads from another key is left aside on purpose. */
  #addOtherKeys(record: object, keys: FieldKeys): void {
    const { id, name, tag } = keys
    for (const field in record)
      if (field !== id && field !== name && field !== tag && !Object.hasOwn(this.#rules.map, field))
        this.#addOtherField(field)
  }

  #addOtherField(field: string): void {
    const { otherFields } = this.#state
    if (!otherFields || otherFields.size >= 1000 || isRejectsName(field)) return
    otherFields.add(shorten(field))
  }
}

function isPlainImport(
  { ifExists }: InputOptions,
  { firstId, nextId, names }: MapperState,
): boolean {
  const generatesIds = firstId !== undefined || nextId !== undefined
  return ifExists !== 'update' && !generatesIds && names === undefined
}

/** An object with strings that have no escapes. Its id may still be too large for an int64. */
const plainObject =
  /^\{"id": ?(0|-?[1-9]\d{0,18}), ?"name": ?"([^"\\\0-\x1f]*)"(?:, ?"tag": ?"([^"\\\0-\x1f]*)")?\}\r?$/

/** Returns undefined for what is no plant. */
function createPlainPlant(id: unknown, name: unknown, tag: unknown): NewPlant | undefined {
  if (!isInt64(id) || !isText(name)) return undefined
  if (tag === undefined) return { id, name }
  return isText(tag) ? { id, name, tag } : undefined
}

/** Whether the fields have keys of their own names, as in most files. */
function areFieldNames({ id = 'id', name = 'name', tag = 'tag' }: FieldKeys): boolean {
  return id === 'id' && name === 'name' && tag === 'tag'
}

function pickFields(record: Record<string, unknown>, keys: FieldKeys): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const field of fieldNames) {
    const key = keys[field]
    if (key !== undefined) fields[field] = record[key]
  }
  return fields
}

/** Returns a copy: spreading the record would take half of the time of an import. */
function addId({ name, tag }: Record<string, unknown>, id: bigint): Record<string, unknown> {
  return { id, name, tag }
}

/** Whether the import has used an id of its own for the change. */
export function isGenerated(idSource: IdSource): boolean {
  return idSource === 'generated' || idSource === 'generatedBefore'
}

function isFoundByName(idSource: IdSource): boolean {
  return idSource === 'foundByName' || idSource === 'generatedBefore'
}

function buildUpdate(patch: PlantPatch, idSource: IdSource, key: string | undefined): MappedChange {
  return {
    type: 'update',
    patch,
    ifMissing: 'create',
    key: idSource === 'foundByName' ? undefined : key,
    isFoundByName: isFoundByName(idSource),
    idSource,
  }
}

function buildCreate(
  { id, name, tag }: PlantPatch,
  idSource: IdSource,
  key: string | undefined,
  ifExists: InputOptions['ifExists'],
): MappedChange {
  return {
    type: 'create',
    plant: buildPlant(id, assertDefined(name ?? undefined), tag),
    key: idSource === 'foundByName' ? undefined : key,
    ifExists: chooseExistsPolicy(idSource, key, ifExists),
    isFoundByName: isFoundByName(idSource),
    idSource,
  }
}

/**
 * A plant that has the generated id is another one, although it may be equal: it is neither skipped
 * nor changed. At a service, an equal plant is the one that the same create has stored before.
 */
function chooseExistsPolicy(
  idSource: IdSource,
  key: string | undefined,
  ifExists: InputOptions['ifExists'],
): 'same' | 'skip' | undefined {
  if (idSource === 'generated') return key === undefined ? undefined : 'same'
  return ifExists === 'update' ? 'same' : ifExists
}

/**
 * In a table, spaces around an id, zeros before it and `.0` after it do not count. `1.000` is
 * one in half of the world, and a thousand in the other. Excel keeps the zeros of `="00123"` and
 * `'00123`.
 */
function parseId(cell: string): bigint | string {
  if (/^-?\d{1,19}$/.test(cell)) return BigInt(cell)
  const { quoted, apostrophized, plain } = idForms.exec(cell)?.groups ?? {}
  const digits = quoted ?? apostrophized ?? plain
  return digits === undefined ? cell : BigInt(digits)
}

const idForms =
  /^\s*(?:="(?<quoted>-?\d{1,40})"|'(?<apostrophized>-?\d{1,40})|(?<plain>-?\d{1,40})(?:\.0)?)\s*$/
