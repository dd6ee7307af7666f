/*
 * Maps records to changes of plants. A record is the text of a JSON object, or the cells of a row.
 *
 * First, the fields are read by their keys, or by the header. A record without an id then gets the
 * id of the plant with its name (`--match name`), or a generated id (`--id-from`), or is rejected.
 * Last, the record becomes a create or an update.
 *
 * Each input has its own mapper, because it has its own header. All mappers share a `MapperState`,
 * which has everything that they remember from one record to the next, such as the next generated
 * id.
 */
import { assertDefined } from '../errors.js'
import {
  type Cells,
  type Header,
  type InputOptions,
  type RawRecord,
  recordTooLargeReason,
} from '../formats/chunk.js'
import {
  describeColumnNumbers,
  isRejectedText,
  isRejectsName,
  listNames,
  replaceRejectedTextHint,
} from '../formats/columns.js'
import { type FieldKeys, KeyFinder } from '../formats/keys.js'
import { type FieldName, fieldNames } from '../plant/fields.js'
import { isObject, parseJson } from '../plant/json.js'
import { explainSyntaxError } from '../plant/json-syntax.js'
import { describeInvalidPlant, type PlantPatch, parsePlant } from '../plant/plant.js'
import { findProblems } from '../plant/schema.js'
import { shorten } from '../platform/escape.js'
import { createProblem } from '../stores/change.js'
import {
  buildCreate,
  buildUpdate,
  type IdSource,
  isFoundByName,
  isGenerated,
  type MappedChange,
} from './mapped-change.js'
import { isRoundedNumber, parseIdCell } from './parse-id-cell.js'
import { findIdCause, type RecordProblem, type RejectionCause } from './rejection-cause.js'

/** The ids of plants by their exact names. A name that several plants have has several ids. */
export type PlantNames = Map<string, bigint | bigint[]>

export interface MapperState {
  /**
   * The first generated id. No record may have an id that the import has generated or may still
   * generate.
   */
  firstId?: bigint | undefined
  /** The id for the next valid record without one; undefined if no ids are generated. */
  nextId?: bigint | undefined
  /** The plants that are found by their names; undefined without `--match name`. */
  names?: PlantNames | undefined
  /** Gathers the keys of JSON that are not read, for a warning. */
  otherFields?: Set<string>
  /** Gathers the names of columns that are not read, for a warning. */
  otherColumns?: Set<string>
}

/**
 * The id for a record without an id. It is undefined if the record has its own id, or gets none.
 */
interface AssignedId {
  id: bigint | undefined
  idSource: IdSource
}

const givenId: AssignedId = { id: undefined, idSource: 'given' }

export class Mapper {
  readonly #options: InputOptions
  readonly #header: Header | undefined
  readonly #columns: readonly (readonly [FieldName, number])[]
  readonly #state: MapperState
  readonly #hasMap: boolean
  readonly #keyFinder: KeyFinder
  /** Describes each column without a name that had no value so far. */
  readonly #unnamedColumns: Map<number, string>
  /** The key of the id in the previous record. Most likely, the next record has the same key. */
  #idKey: string

  constructor(options: InputOptions, header: Header | undefined, state: MapperState) {
    this.#options = options
    this.#header = header
    this.#columns = [...(header?.columns ?? [])]
    this.#state = state
    this.#hasMap = Object.keys(options.map).length > 0
    this.#keyFinder = new KeyFinder(options.map)
    this.#idKey = options.map.id || 'id'
    for (const name of header?.unreadNames ?? []) this.#noteUnreadName(name)
    const { names = [], unnamedColumns = [] } = header ?? {}
    const descriptions = unnamedColumns.length > 0 ? describeColumnNumbers(names) : []
    this.#unnamedColumns = new Map(
      unnamedColumns.map((column) => [column, assertDefined(descriptions[column])]),
    )
  }

  /**
   * @param idempotencyKey the key of the change at a service; undefined for a direct store
   * @returns the change, or why the record is rejected
   */
  map(raw: RawRecord, idempotencyKey?: string): MappedChange | RecordProblem {
    if (raw === null) return createProblem('tooLarge', recordTooLargeReason)
    if (typeof raw === 'string') return this.#mapJson(raw, idempotencyKey)
    const width = assertDefined(this.#header).names.length
    if (this.#unnamedColumns.size > 0) this.#noteUnnamedColumns(raw)
    if (raw.slice(width).some((cell) => cell !== undefined))
      return createSurplusProblem(raw.length, width)
    return this.#mapRecord(this.#readCells(raw), raw, idempotencyKey)
  }

  #mapJson(text: string, idempotencyKey: string | undefined): MappedChange | RecordProblem {
    const parseResult = parseJson(text, { idKey: this.#idKey })
    if ('isInvalid' in parseResult) return createSyntaxProblem(text)
    const { value } = parseResult
    if (!isObject(value)) return this.#mapRecord(value, [], idempotencyKey)
    if (isRejectedText(value))
      return createProblem(
        'invalid',
        `The line has only the text of a line that was not JSON. ${replaceRejectedTextHint}`,
      )
    const keys = this.#keyFinder.find(value)
    if ('ambiguousField' in keys) {
      const names = listNames(keys.candidateKeys)
      return createProblem('input', `Several keys could be the ${keys.ambiguousField}: ${names}`)
    }
    if (keys.id !== undefined && keys.id !== this.#idKey) {
      // JavaScript would round a large id. The parser keeps the digits of the id only if it knows
      // the key, so the record is parsed again.
      this.#idKey = keys.id
      return this.#mapJson(text, idempotencyKey)
    }
    this.#noteUnreadKeys(value, keys)
    const isPlain = !this.#hasMap && areFieldNames(keys)
    const changeOrProblem = this.#mapRecord(
      isPlain ? value : pickFields(value, keys),
      [],
      idempotencyKey,
    )
    const isNameMissing =
      keys.name === undefined && 'error' in changeOrProblem && changeOrProblem.kind === 'invalid'
    return isNameMissing ? addUnknownKeys(changeOrProblem, value, keys) : changeOrProblem
  }

  #mapRecord(
    record: unknown,
    cells: Cells,
    idempotencyKey: string | undefined,
  ): MappedChange | RecordProblem {
    const assignedId = this.#assignId(record)
    if ('error' in assignedId) return assignedId
    const { id, idSource } = assignedId
    const recordWithId = id === undefined || !isObject(record) ? record : addId(record, id)

    // A plant that gets a generated id is new, so the store has no fields of it to keep.
    const isUpdate = this.#options.ifExists === 'update' && idSource !== 'generated'
    const form = isUpdate ? 'patch' : 'record'
    const patch = parsePlant(recordWithId, form)
    if (!patch) {
      const cellProblem = this.#findCellProblem(cells)
      if (cellProblem) return cellProblem
      const reasons = findProblems(recordWithId, form)
      const rejectionCause = findIdCause(recordWithId, form)
      return { ...createProblem('invalid', describeInvalidPlant(reasons)), rejectionCause }
    }

    if (isGenerated(idSource)) this.#state.nextId = patch.id + 1n
    else if (idSource === 'given' && this.#isReserved(patch.id))
      return createProblem(
        'conflict',
        `The id ${patch.id} is reserved: generated ids start at ${this.#state.firstId}`,
      )
    if (!isFoundByName(idSource)) this.#rememberName(patch)
    return isUpdate
      ? buildUpdate(patch, idSource, idempotencyKey)
      : buildCreate(patch, idSource, idempotencyKey, this.#options.ifExists)
  }

  /** Finds or generates an id for a record that has none, or says why that is not possible. */
  #assignId(record: unknown): AssignedId | RecordProblem {
    if (!isObject(record) || (record['id'] ?? null) !== null) return givenId
    const { names, nextId } = this.#state
    const newId: AssignedId = nextId === undefined ? givenId : { id: nextId, idSource: 'generated' }
    const { name } = record
    if (!names || typeof name !== 'string') return newId
    const idOrIds = names.get(name)
    if (Array.isArray(idOrIds)) return createCommonNameProblem(name, idOrIds)
    if (idOrIds === undefined) return nextId === undefined ? createNewNameProblem(name) : newId
    // `IdSource` says how a plant with the next id can be there already.
    return { id: idOrIds, idSource: idOrIds === nextId ? 'generatedBefore' : 'foundByName' }
  }

  /**
   * Whether the import has generated this id, or may still generate it. With `--id-from next`, all
   * ids from the first generated one on are reserved: when the files were examined, no id in them
   * was as large. With `--id-from NUMBER`, only the ids that were generated are reserved. A later
   * conflict is found when the id is generated.
   */
  #isReserved(id: bigint): boolean {
    const { firstId, nextId } = this.#state
    const mayBeGenerated = this.#options.idFrom === 'next' || (nextId !== undefined && id < nextId)
    return mayBeGenerated && firstId !== undefined && id >= firstId
  }

  /** Remembers the plant, because a later record without an id may have the same name. */
  #rememberName({ id, name }: PlantPatch): void {
    const { names } = this.#state
    if (!names || name == null || names.has(name)) return
    // In V8, a substring keeps the string from which it was cut in memory, here a block of the
    // input. A copy does not.
    names.set(Buffer.from(name).toString(), id)
  }

  /** Finds a cell whose value is lost, which is why its record is no valid plant. */
  #findCellProblem(cells: Cells): RecordProblem | undefined {
    for (const [name, column] of this.#columns) {
      const cell = cells[column]
      if (typeof cell === 'object')
        return createCellProblem(
          `the ${name} ${cell.reason}`,
          cell.isUnsavedFormula && 'unsavedFormula',
        )
      if (name === 'id' && cell !== undefined && isRoundedNumber(cell))
        return createCellProblem(
          'the id is a number that a spreadsheet has rounded. Enter all its digits',
        )
    }
    return undefined
  }

  #readCells(cells: Cells): Record<string, unknown> {
    const record: Record<string, unknown> = {}
    for (const [name, column] of this.#columns) {
      // A row of a text that is shorter than the header lacks its last cells.
      if (column >= cells.length) continue
      const cell = cells[column]
      // An empty cell has no value. For an optional field, that is null, which removes a stored
      // tag.
      if (name !== 'id') record[name] = cell === undefined && name === 'tag' ? null : cell
      else if (cell !== undefined)
        record['id'] = typeof cell === 'string' ? parseIdCell(cell) : cell
    }
    return record
  }

  /**
   * Notes the keys that are not read, for a warning. With `--map name=kind`, a key `name` is not
   * read, but a person has chosen that.
   */
  #noteUnreadKeys(record: object, keys: FieldKeys): void {
    const { id, name, tag } = keys
    for (const field in record)
      if (
        field !== id &&
        field !== name &&
        field !== tag &&
        !Object.hasOwn(this.#options.map, field)
      )
        this.#noteUnreadName(field)
  }

  /** Notes the columns without a name that have a value in a row, each of them once. */
  #noteUnnamedColumns(row: Cells): void {
    // The header may have thousands of these columns, and the row only a few cells.
    for (const index in row) {
      const column = Number(index)
      const description = row[column] === undefined ? undefined : this.#unnamedColumns.get(column)
      if (description === undefined) continue
      this.#noteUnreadName(description)
      this.#unnamedColumns.delete(column)
    }
  }

  #noteUnreadName(field: string): void {
    const { otherFields, otherColumns } = this.#state
    const names = this.#header ? otherColumns : otherFields
    if (!names || names.size >= 1000 || isRejectsName(field)) return
    names.add(shorten(field))
  }
}

function createCellProblem(reason: string, rejectionCause?: RejectionCause): RecordProblem {
  return { ...createProblem('invalid', describeInvalidPlant([reason])), rejectionCause }
}

function createSyntaxProblem(text: string): RecordProblem {
  const { description, cause } = explainSyntaxError(text)
  return { ...createProblem('input', `Not JSON: ${description}`), rejectionCause: cause }
}

function createSurplusProblem(cellCount: number, width: number): RecordProblem {
  const message = `The row has ${cellCount} cells, but the header has ${width}`
  return { ...createProblem('input', message), rejectionCause: 'surplusCells' }
}

function createCommonNameProblem(name: string, ids: readonly bigint[]): RecordProblem {
  const list = ids.slice(0, 5).join(', ')
  const message = `Several plants have the name ${JSON.stringify(shorten(name))}: ${list}`
  return { ...createProblem('invalid', message), rejectionCause: 'commonName' }
}

function createNewNameProblem(name: string): RecordProblem {
  const message = `No plant has the name ${JSON.stringify(shorten(name))}`
  return { ...createProblem('invalid', message), rejectionCause: 'newName' }
}

/** Whether each field has the key with its name, as in most files, so that nothing is renamed. */
function areFieldNames({ id = 'id', name = 'name', tag = 'tag' }: FieldKeys): boolean {
  return id === 'id' && name === 'name' && tag === 'tag'
}

/** Adds the keys that are not read to a problem, because one of them may be a misspelled `name`. */
function addUnknownKeys(
  problem: RecordProblem,
  record: object,
  { id, tag }: FieldKeys,
): RecordProblem {
  const otherKeys = Object.keys(record).filter(
    (idempotencyKey) => idempotencyKey !== id && idempotencyKey !== tag,
  )
  // An empty key has no name that could be listed.
  const names = listNames(otherKeys)
  return names === '' ? problem : { ...problem, message: `${problem.message}; unknown: ${names}` }
}

function pickFields(record: Record<string, unknown>, keys: FieldKeys): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const field of fieldNames) {
    const key = keys[field]
    if (key !== undefined) fields[field] = record[key]
  }
  return fields
}

/** Returns a copy of the fields. To spread the record would take half of the time of an import. */
function addId({ name, tag }: Record<string, unknown>, id: bigint): Record<string, unknown> {
  return { id, name, tag }
}
