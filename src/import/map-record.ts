/*
 * Maps records to changes of plants. A record is the text of a JSON object, or the cells of a row.
 *
 * First, the fields are read by their keys, or by the header. A record without an id then gets the
 * id of the plant with its name (`--by-name`), or an id by its place in the inputs (`--id-from`),
 * or is rejected. Last, the record becomes a create or an update.
 *
 * Each input has its own mapper, because it has its own header. All mappers share a `MapperState`,
 * which has everything that they remember from one record to the next.
 */
import { assertDefined } from '../errors.js'
import {
  type Cell,
  type Cells,
  type FormatReader,
  type Header,
  type InputOptions,
  type RawRecord,
  recordTooLargeReason,
} from '../formats/chunk.js'
import {
  countedIdName,
  describeColumnNumbers,
  foldName,
  isRejectedText,
  isRejectsName,
  listNames,
  replaceRejectedTextHint,
} from '../formats/columns.js'
import { type FieldKeys, KeyFinder } from '../formats/keys.js'
import { type FieldName, fieldNames, largestId } from '../plant/fields.js'
import { isInt64, isObject, parseJson } from '../plant/json.js'
import { explainSyntaxError } from '../plant/json-syntax.js'
import { describeInvalidPlant, parsePlant } from '../plant/plant.js'
import { findProblems } from '../plant/schema.js'
import { shorten } from '../platform/escape.js'
import { createProblem } from '../stores/change.js'
import { buildCreate, buildUpdate, type IdSource, type MappedChange } from './mapped-change.js'
import type { PlantNames } from './names.js'
import { isRoundedNumber, parseIdCell } from './parse-id-cell.js'
import { findIdCause, type RecordProblem, type RejectionCause } from './rejection-cause.js'

export interface MapperState {
  /** How many records of all inputs were mapped. */
  recordCount: number
  /** The plants that are found by their names; undefined without `--by-name`. */
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
  /** The column with the counted ids of a rejects file; undefined if there is none. */
  readonly #countedIdColumn: number | undefined
  /** Whether the input is a rejects file that has counted ids, so that none are counted. */
  #hasCountedIds: boolean
  readonly #columns: readonly (readonly [FieldName, readonly number[]])[]
  readonly #state: MapperState
  readonly #hasMap: boolean
  readonly #keyFinder: KeyFinder
  /** Describes each column without a name that had no value so far. */
  readonly #unnamedColumns: Map<number, string>
  /** The key of the id in the previous record. Most likely, the next record has the same key. */
  #idKey: string

  constructor(options: InputOptions, { header }: Pick<FormatReader, 'header'>, state: MapperState) {
    this.#options = options
    this.#header = header
    const countedIdColumn = header?.names.findIndex((name) => foldName(name) === countedIdName)
    this.#countedIdColumn = countedIdColumn === -1 ? undefined : countedIdColumn
    this.#hasCountedIds = this.#countedIdColumn !== undefined
    this.#columns = [...(header?.columns ?? [])]
    this.#state = state
    this.#hasMap = Object.keys(options.map).length > 0
    this.#keyFinder = new KeyFinder(options)
    this.#idKey = options.map.id?.[0] ?? 'id'
    for (const name of header?.unreadNames ?? []) this.#noteUnreadName(name)
    const { names = [], unnamedColumns = [] } = header ?? {}
    const descriptions = unnamedColumns.length > 0 ? describeColumnNumbers(names) : []
    this.#unnamedColumns = new Map(
      unnamedColumns.map((column) => [column, assertDefined(descriptions[column])]),
    )
  }

  /** @returns the change, or why the record is rejected */
  map(raw: RawRecord): MappedChange | RecordProblem {
    const number = this.#state.recordCount
    this.#state.recordCount += 1
    if (raw === null) return createProblem('tooLarge', recordTooLargeReason)
    if (typeof raw === 'string') return this.#mapJson(raw, number)
    const width = assertDefined(this.#header).names.length
    if (this.#unnamedColumns.size > 0) this.#noteUnnamedColumns(raw)
    if (raw.slice(width).some((cell) => cell !== undefined))
      return createSurplusProblem(raw.length, width)
    return this.#mapRecord(this.#readCells(raw), raw, number)
  }

  /**
   * Finds the id that `--id-from` gives to a record without an id. In a rejects file, the record
   * has the id that it had in the list.
   *
   * @param number how many records of all inputs precede the record
   * @returns undefined without `--id-from`, or if the record lacks it in a rejects file
   */
  findCountedId(raw: RawRecord, number: number): bigint | undefined {
    const { idFrom } = this.#options
    if (idFrom === undefined) return undefined
    const id = typeof raw === 'string' ? parseCountedId(raw) : this.#readCountedId(raw)
    if (id !== undefined) this.#hasCountedIds = true
    if (this.#hasCountedIds) return isInt64(id) ? id : undefined
    return idFrom + BigInt(number)
  }

  #readCountedId(cells: Cells | null): unknown {
    const cell = cells?.[this.#countedIdColumn ?? -1]
    return typeof cell === 'string' ? parseIdCell(cell) : undefined
  }

  /** Reads the id that a record has itself, also if the record is not valid. */
  readOwnId(raw: RawRecord): bigint | undefined {
    const id = typeof raw === 'string' ? this.#readOwnIdOfJson(raw) : this.#readIdCell(raw ?? [])
    return isInt64(id) ? id : undefined
  }

  #readIdCell(cells: Cells): unknown {
    const [idColumn = -1] = this.#header?.columns.get('id') ?? []
    const cell = cells[idColumn]
    return typeof cell === 'string' ? parseIdCell(cell) : undefined
  }

  #readOwnIdOfJson(text: string): unknown {
    const result = this.#parseObject(text)
    return 'keys' in result ? pickFields(result.object, result.keys)['id'] : undefined
  }

  #mapJson(text: string, number: number): MappedChange | RecordProblem {
    const result = this.#parseObject(text)
    if ('error' in result) return result
    if (!('keys' in result)) return this.#mapRecord(result.value, text, number)
    const { object, keys } = result
    this.#noteUnreadKeys(object, keys)
    const isPlain = !this.#hasMap && areFieldNames(keys)
    const record = isPlain ? object : pickFields(object, keys)
    const changeOrProblem = this.#mapRecord(record, text, number)
    const isNameMissing =
      keys.name === undefined && 'error' in changeOrProblem && changeOrProblem.kind === 'invalid'
    return isNameMissing ? addUnknownKeys(changeOrProblem, object, keys) : changeOrProblem
  }

  /** Parses a JSON object and finds its keys. Any other JSON is returned as its value. */
  #parseObject(
    text: string,
  ): { object: Record<string, unknown>; keys: FieldKeys } | { value: unknown } | RecordProblem {
    const parseResult = parseJson(text, { idKey: this.#idKey })
    if ('isInvalid' in parseResult) return createSyntaxProblem(text)
    const { value } = parseResult
    if (!isObject(value)) return { value }
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
    const [idKey = this.#idKey] = keys.id ?? []
    if (idKey === this.#idKey) return { object: value, keys }
    // JavaScript would round a large id. The parser keeps the digits of the id only if it knows the
    // key, so the record is parsed again.
    this.#idKey = idKey
    return this.#parseObject(text)
  }

  #mapRecord(record: unknown, raw: string | Cells, number: number): MappedChange | RecordProblem {
    const assignedId = this.#assignId(record, raw, number)
    if ('error' in assignedId) return assignedId
    const { id, idSource } = assignedId
    const recordWithId = id === undefined || !isObject(record) ? record : addId(record, id)

    // A plant that gets a generated id is new, so the store has no fields of it to keep.
    const isUpdate = this.#options.ifExists === 'update' && idSource !== 'generated'
    const form = isUpdate ? 'patch' : 'record'
    const patch = parsePlant(recordWithId, form)
    if (!patch) {
      const cellProblem = typeof raw === 'string' ? undefined : this.#findCellProblem(raw)
      if (cellProblem) return cellProblem
      const reasons = findProblems(recordWithId, form)
      const rejectionCause = findIdCause(recordWithId, form)
      return { ...createProblem('invalid', describeInvalidPlant(reasons)), rejectionCause }
    }

    const { names } = this.#state
    if (names && idSource === 'given' && patch.id >= names.firstId)
      return createReservedProblem(patch.id, names.firstId)
    if (patch.name != null) names?.add(patch.id, patch.name)
    return isUpdate
      ? buildUpdate(patch, idSource)
      : buildCreate(patch, idSource, this.#options.ifExists)
  }

  /** Finds or generates an id for a record that has none, or says why that is not possible. */
  #assignId(record: unknown, raw: string | Cells, number: number): AssignedId | RecordProblem {
    if (!isObject(record) || (record['id'] ?? null) !== null) return givenId
    const { names } = this.#state
    if (names) return findIdByName(names, record['name'])
    const id = this.findCountedId(raw, number)
    if (id === undefined) return givenId
    return id > largestId ? createNoIdLeftProblem() : { id, idSource: 'generated' }
  }

  /** Finds a cell whose value is lost, which is why its record is no valid plant. */
  #findCellProblem(cells: Cells): RecordProblem | undefined {
    for (const [field, columns] of this.#columns) {
      const cell = joinValues(columns.map((column) => cells[column])) as Cell
      if (typeof cell === 'object')
        return createCellProblem(
          `the ${field} ${cell.reason}`,
          cell.isUnsavedFormula && 'unsavedFormula',
        )
      if (field === 'id' && cell !== undefined && isRoundedNumber(cell))
        return createCellProblem(
          'the id is a number that a spreadsheet has rounded. Enter all its digits',
        )
    }
    return undefined
  }

  #readCells(cells: Cells): Record<string, unknown> {
    const record: Record<string, unknown> = {}
    for (const [field, columns] of this.#columns) {
      if (this.#isMissing(columns, cells)) continue
      const cell = joinValues(columns.map((column) => cells[column]))
      // An empty cell has no value. For an optional field, that is null, which removes a stored
      // tag.
      if (field !== 'id') record[field] = cell === undefined && field === 'tag' ? null : cell
      else if (cell !== undefined)
        record['id'] = typeof cell === 'string' ? parseIdCell(cell) : cell
    }
    return record
  }

  /**
   * Whether a row of a text is shorter than the header, and lacks the cells of a field. An update
   * must not shorten a name of which it has only a part.
   */
  #isMissing(columns: readonly number[], { length }: Cells): boolean {
    const isUpdate = this.#options.ifExists === 'update'
    const isCellMissing = (column: number) => column >= length
    return isUpdate ? columns.some(isCellMissing) : columns.every(isCellMissing)
  }

  /**
   * Notes the keys that are not read, for a warning. With `--map name=kind`, a key `name` is not
   * read, but a person has chosen that.
   */
  #noteUnreadKeys(record: object, keys: FieldKeys): void {
    const readKeys = Object.values(keys).flat()
    for (const key in record)
      if (!readKeys.includes(key) && !Object.hasOwn(this.#options.map, key))
        this.#noteUnreadName(key)
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

function createReservedProblem(id: bigint, firstId: bigint): RecordProblem {
  const message = `The id ${id} is reserved: generated ids start at ${firstId}`
  return { ...createProblem('conflict', message), rejectionCause: 'reservedId' }
}

function createNoIdLeftProblem(): RecordProblem {
  return createProblem('conflict', `No id is left for the record: the greatest is ${largestId}`)
}

/** @param name of a record without an id; any value, which may be missing */
function findIdByName(names: PlantNames, name: unknown): AssignedId | RecordProblem {
  const knownId = typeof name === 'string' ? names.find(name) : undefined
  if (Array.isArray(knownId)) return createCommonNameProblem(String(name), knownId)
  if (typeof knownId === 'bigint') return { id: knownId, idSource: 'foundByName' }
  const id = names.nextId
  return id === undefined ? createNoIdLeftProblem() : { id, idSource: 'generated' }
}

/** Reads the counted id from a line of a rejects file. */
function parseCountedId(text: string): unknown {
  // Most lines do not have the key, and need not be parsed again.
  if (!text.includes(`"${countedIdName}"`)) return undefined
  const result = parseJson(text, { idKey: countedIdName })
  return 'value' in result && isObject(result.value) ? result.value[countedIdName] : undefined
}

/** Whether each field has the key with its name, as in most files, so that nothing is renamed. */
function areFieldNames(keys: FieldKeys): boolean {
  return fieldNames.every((field) => (keys[field]?.[0] ?? field) === field)
}

/** Adds the keys that are not read to a problem, because one of them may be a misspelled `name`. */
function addUnknownKeys(problem: RecordProblem, record: object, keys: FieldKeys): RecordProblem {
  const readKeys = Object.values(keys).flat()
  const otherKeys = Object.keys(record).filter((key) => !readKeys.includes(key))
  // An empty key has no name that could be listed.
  const names = listNames(otherKeys)
  return names === '' ? problem : { ...problem, message: `${problem.message}; unknown: ${names}` }
}

function pickFields(record: Record<string, unknown>, keys: FieldKeys): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const field of fieldNames) {
    const fieldKeys = keys[field]
    if (fieldKeys) fields[field] = joinValues(fieldKeys.map((key) => record[key]))
  }
  return fields
}

/**
 * Joins the values of the columns or keys of a field, of which only a name may have several. A
 * value that is no string makes the whole name invalid.
 */
function joinValues(values: readonly unknown[]): unknown {
  if (values.length === 1) return values[0]
  const filledValues = values.filter((value) => (value ?? '') !== '')
  const invalidValue = filledValues.find((value) => typeof value !== 'string')
  return invalidValue ?? (filledValues.join(' ') || undefined)
}

/** Returns a copy of the fields. To spread the record would take half of the time of an import. */
function addId({ name, tag }: Record<string, unknown>, id: bigint): Record<string, unknown> {
  return { id, name, tag }
}
