/*
 * Maps records to changes of plants.
 *
 * A record without an id gets the id of the plant with its name (`--by-name`), or an id by its
 * place in the inputs (`--id-from`), or is rejected. Then the record becomes a create or an update.
 *
 * Each input has its own mapper. All mappers share a `MapperState`, which has everything that they
 * remember from one record to the next.
 */
import { assertDefined } from '../errors.js'
import type {
  Cell,
  Chunk,
  FormatReader,
  InputOptions,
  RawRecord,
  ReadProblem,
} from '../formats/chunk.js'
import { type FieldName, fieldNames, largestId } from '../plant/fields.js'
import { isInt64 } from '../plant/json.js'
import { describeInvalidPlant, type PlantPatch, parsePlant } from '../plant/plant.js'
import { findProblems } from '../plant/schema.js'
import { shorten } from '../platform/escape.js'
import { createProblem } from '../stores/change.js'
import { buildCreate, buildUpdate, type IdSource, type MappedChange } from './mapped-change.js'
import type { PlantNames } from './names.js'
import { findIdCause, type RecordProblem } from './rejection-cause.js'

export interface MapperState {
  /** How many records of all inputs were mapped. */
  recordCount: number
  /** The plants that are found by their names; undefined without `--by-name`. */
  names?: PlantNames | undefined
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
  readonly #fields: FormatReader['fields']
  readonly #state: MapperState
  /**
   * Whether the input is a rejects file that has counted ids, so that none are counted. The first
   * record decides it. Undefined before that.
   */
  #hasCountedIds: boolean | undefined

  constructor(options: InputOptions, { fields }: Pick<FormatReader, 'fields'>, state: MapperState) {
    this.#options = options
    this.#fields = fields
    this.#state = state
  }

  /** @returns for each record, its change, or why it is rejected */
  map(chunk: Chunk): (MappedChange | RecordProblem)[] {
    return chunk.records.map((_, index) => this.#mapRecord(chunk, index))
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
    const id = this.#fields.readCountedId(raw)
    if (isInt64(id)) return id
    return this.#hasCountedIds ? undefined : idFrom + BigInt(number)
  }

  #mapRecord(chunk: Chunk, index: number): MappedChange | RecordProblem {
    const number = this.#state.recordCount
    this.#state.recordCount += 1
    const raw = assertDefined(chunk.records[index])
    if (raw !== null && this.#options.idFrom !== undefined)
      this.#hasCountedIds ??= this.#fields.readCountedId(raw) !== undefined
    const readProblem = chunk.problems.get(index)
    if (readProblem) return createReadProblem(readProblem)
    const ownId = chunk.ids[index]
    const name = chunk.names[index]
    const assignedId = this.#assignId(ownId, name, raw, number)
    if ('error' in assignedId) return assignedId
    const { id = ownId, idSource } = assignedId

    // A plant that gets a generated id is new, so the store has no fields of it to keep.
    const isUpdate = this.#options.ifExists === 'update' && idSource !== 'generated'
    const tag = chunk.tags[index]
    // Only an update can remove a tag. Otherwise, null means that the record has none.
    const record = { id, name, tag: isUpdate ? tag : (tag ?? undefined) }
    const plant = isUpdate ? undefined : parsePlant(record)
    const patch = isUpdate ? parsePatch(record) : plant
    if (!patch) return this.#explainInvalid(record, raw, isUpdate)

    const { names } = this.#state
    if (names && idSource === 'given' && patch.id >= names.firstId)
      return createReservedProblem(patch.id, names.firstId)
    if (patch.name != null) names?.add(patch.id, patch.name)
    return plant
      ? buildCreate(plant, idSource, this.#options.ifExists)
      : buildUpdate(patch, idSource)
  }

  /** Finds or generates an id for a record that has none, or says why that is not possible. */
  #assignId(
    ownId: unknown,
    name: unknown,
    raw: RawRecord,
    number: number,
  ): AssignedId | RecordProblem {
    if ((ownId ?? null) !== null) return givenId
    const { names } = this.#state
    if (names) return findIdByName(names, name)
    const id = this.findCountedId(raw, number)
    if (id === undefined) return givenId
    return id > largestId ? createNoIdLeftProblem() : { id, idSource: 'generated' }
  }

  #explainInvalid(record: MappedFields, raw: RawRecord, isUpdate: boolean): RecordProblem {
    const cellProblem = typeof raw === 'string' ? undefined : findCellProblem(record)
    if (cellProblem) return cellProblem
    const { id, name, tag } = record
    const form = isUpdate ? 'patch' : 'newPlant'
    // An empty cell has no name, and neither has null.
    const fields =
      isUpdate && name === undefined ? { id, tag } : { id, name: name ?? undefined, tag }
    const reasons = findProblems(fields, form)
    const problem = createProblem('invalid', describeInvalidPlant(reasons))
    const rejectionCause = findIdCause(id, reasons)
    return { ...problem, rejectionCause }
  }
}

type MappedFields = Record<FieldName, unknown>

/** A patch may lack its name, which then stays as it is stored. */
function parsePatch({ id, name, tag }: MappedFields): PlantPatch | undefined {
  return parsePlant(name === undefined ? { id, tag } : { id, name, tag }, 'patch')
}

function createReadProblem({ kind, message, cause }: ReadProblem): RecordProblem {
  return { ...createProblem(kind, message), rejectionCause: cause }
}

/** Finds a cell whose value is lost, which is why its record is no valid plant. */
function findCellProblem(fields: MappedFields): RecordProblem | undefined {
  for (const field of fieldNames) {
    const cell = fields[field] as Cell | bigint | null
    if (typeof cell !== 'object' || cell === null) continue
    const message = describeInvalidPlant([`the ${field} ${cell.reason}`])
    const rejectionCause = cell.isUnsavedFormula && 'unsavedFormula'
    return { ...createProblem('invalid', message), rejectionCause }
  }
  return undefined
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
