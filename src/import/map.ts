/*
 * Maps records to changes of plants.
 *
 * With `--by-name`, a record without an id gets the id of the plant with its name, or a new one.
 * Otherwise it is rejected. Then the record becomes a create or an update.
 */
import type { Chunk, ReadProblem } from '../fields/chunk.js'
import type { FieldOptions } from '../fields/options.js'
import { UnusableCell } from '../formats/reader.js'
import { type FieldName, fieldNames, largestId } from '../plant/fields.js'
import { describeInvalidPlant, type NewPlant, type PlantPatch, parsePlant } from '../plant/plant.js'
import { findProblems } from '../plant/schema.js'
import { shorten } from '../platform/escape.js'
import { createProblem, type ExistsPolicy } from '../stores/change.js'
import type { PlantNames } from './names.js'
import { findIdCause, type MappedChange, type RecordProblem } from './outcomes.js'

/**
 * Where the id of a change comes from.
 *
 * - `given`: the record has it.
 * - `foundByName`: it is the id of the plant that has the name of the record.
 * - `generated`: the import assigns it.
 */
type IdSource = 'given' | 'foundByName' | 'generated'

/**
 * The id for a record without an id. It is undefined if the record has its own id, or gets none.
 */
interface AssignedId {
  id: bigint | undefined
  idSource: IdSource
}

const givenId: AssignedId = { id: undefined, idSource: 'given' }

/**
 * Maps the records of a chunk.
 *
 * @param names the plants that are found by their names, to which the new ones are added; undefined
 *   without `--by-name`
 * @returns for each record, its change, or why it is rejected
 */
export function mapRecords(
  chunk: Chunk,
  options: FieldOptions,
  names: PlantNames | undefined,
): (MappedChange | RecordProblem)[] {
  return chunk.records.map((_, index) => mapRecord(chunk, index, options, names))
}

function mapRecord(
  chunk: Chunk,
  index: number,
  { ifExists }: FieldOptions,
  names: PlantNames | undefined,
): MappedChange | RecordProblem {
  const readProblem = chunk.problems.get(index)
  if (readProblem) return createReadProblem(readProblem)
  const ownId = chunk.ids[index]
  const name = chunk.names[index]
  const isMissing = (ownId ?? null) === null
  const assignedId = names && isMissing ? findIdByName(names, name) : givenId
  if ('error' in assignedId) return assignedId
  const { id = ownId, idSource } = assignedId

  // A plant that gets a generated id is new, so the store has no fields of it to keep.
  const isUpdate = ifExists === 'update' && idSource !== 'generated'
  const tag = chunk.tags[index]
  // Only an update can remove a tag. Otherwise, null means that the record has none.
  const record = { id, name, tag: isUpdate ? tag : (tag ?? undefined) }
  const plant = isUpdate ? undefined : parsePlant(record)
  const patch = isUpdate ? parsePatch(record) : plant
  if (!patch) return explainInvalid(record, isUpdate)

  if (names && idSource === 'given' && patch.id >= names.firstId)
    return createReservedProblem(patch.id, names.firstId)
  if (patch.name != null) names?.add(patch.id, patch.name)
  return plant ? buildCreate(plant, idSource, ifExists) : buildUpdate(patch, idSource)
}

function explainInvalid(record: MappedFields, isUpdate: boolean): RecordProblem {
  const cellProblem = findCellProblem(record)
  if (cellProblem) return cellProblem
  const { id, name, tag } = record
  const form = isUpdate ? 'patch' : 'newPlant'
  // An empty cell has no name, and neither has null.
  const fields = isUpdate && name === undefined ? { id, tag } : { id, name: name ?? undefined, tag }
  const reasons = findProblems(fields, form)
  const problem = createProblem('invalid', describeInvalidPlant(reasons))
  const rejectionCause = findIdCause(id, reasons)
  return { ...problem, rejectionCause }
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
    const cell = fields[field]
    if (!(cell instanceof UnusableCell)) continue
    const message = describeInvalidPlant([`the ${field} ${cell.reason}`])
    const rejectionCause = cell.isUnsavedFormula ? 'unsavedFormula' : undefined
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

function buildUpdate(patch: PlantPatch, idSource: IdSource): MappedChange {
  return {
    type: 'update',
    patch,
    ifMissing: 'create',
    isFoundByName: idSource === 'foundByName',
    isGenerated: idSource === 'generated',
  }
}

/**
 * A plant that has a generated id already is skipped if it is equal, because it is that of an
 * earlier run. Any other plant is neither skipped nor changed, whatever `--if-exists` says.
 */
function buildCreate(plant: NewPlant, idSource: IdSource, ifExists: ExistsPolicy): MappedChange {
  return {
    type: 'create',
    plant,
    ifExists: idSource === 'generated' || ifExists === 'update' ? 'same' : ifExists,
    isFoundByName: idSource === 'foundByName',
    isGenerated: idSource === 'generated',
  }
}
