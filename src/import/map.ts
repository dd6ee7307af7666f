/*
 * Maps records to changes of plants: a create or an update, nothing if the plant is equal already,
 * or the reason why a record is rejected. With `--by-name`, the match of a record without an id says
 * for which plant it stands. With `--sync`, a record without a tag removes the tag of its plant, if
 * any record of the inputs has one.
 */
import type { Chunk, ReadProblem } from '../fields/chunk.js'
import type { FieldOptions } from '../fields/options.js'
import { UnusableCell } from '../formats/reader.js'
import { type FieldName, fieldNames, largestId } from '../plant/fields.js'
import {
  describeInvalidPlant,
  type NewPlant,
  type PlantPatch,
  parsePlant,
  type StoredPlant,
} from '../plant/plant.js'
import { findProblems } from '../plant/schema.js'
import { createProblem, type ExistsPolicy, getTargetId } from '../stores/change.js'
import { type Matches, parseWithoutId } from './match.js'
import {
  findIdCause,
  isChange,
  type MappedChange,
  type MappedRecord,
  type RecordProblem,
} from './outcomes.js'

interface MapOptions extends Pick<FieldOptions, 'byName' | 'ifExists'> {
  /** Undefined without `--by-name` and `--sync`. */
  matches: Matches | undefined
  /** Whether a record without a tag removes the tag of its plant. */
  removesMissingTags: boolean
}

export function mapRecords(chunk: Chunk, options: MapOptions): MappedRecord[] {
  return chunk.records.map((_, index) => mapRecord(chunk, index, options))
}

function mapRecord(chunk: Chunk, index: number, options: MapOptions): MappedRecord {
  const { byName, ifExists, matches, removesMissingTags } = options
  const readProblem = chunk.problems.get(index)
  if (readProblem) return createReadProblem(readProblem)
  const id = chunk.ids[index]
  const tag = chunk.tags[index]
  const removesTag = removesMissingTags && tag === undefined
  const record = { id, name: chunk.names[index], tag: removesTag ? null : tag }
  if (matches && byName && (id ?? null) === null) {
    const plant = parseWithoutId(chunk, index)
    // The id means nothing, but the reason is not that it is missing.
    return plant
      ? applyMatch(plant, record.tag, matches, ifExists)
      : explainInvalid({ ...record, id: 0n }, false)
  }
  if (ifExists !== 'update') return mapCreate(record, ifExists)
  const mapping = mapUpdate(record)
  return matches && isChange(mapping) ? compareWithList(mapping, record, matches) : mapping
}

function compareWithList(
  mapping: MappedChange,
  record: MappedFields,
  matches: Matches,
): MappedRecord {
  const id = getTargetId(mapping)
  if (!matches.compareWithFirst(id, record)) return createRepetition(id)
  return matches.equalIds.has(id) ? { type: 'skipped' } : mapping
}

/** With `--sync`, the list has one plant for each id. */
function createRepetition(id: bigint): RecordProblem {
  const message = `The id ${id} also occurs in an earlier record, with a different plant`
  return { ...createProblem('conflict', message), rejectionCause: 'repeatedId' }
}

function mapCreate({ id, name, tag }: MappedFields, ifExists: 'same' | 'skip'): MappedRecord {
  // Only an update can remove a tag. Otherwise, null means that the record has none.
  const record = { id, name, tag: tag ?? undefined }
  const plant = parsePlant(record)
  return plant
    ? { type: 'create', plant, ifExists, isGenerated: false }
    : explainInvalid(record, false)
}

function mapUpdate(record: MappedFields): MappedRecord {
  const patch = parsePatch(record)
  return patch
    ? { type: 'update', patch, ifMissing: 'create', isGenerated: false }
    : explainInvalid(record, true)
}

/**
 * Maps a record without an id by its match.
 *
 * @param record the record, with an id that means nothing
 * @param tag the tag as it was read: undefined if the record has none, and null if its cell is empty
 */
function applyMatch(
  record: NewPlant,
  tag: unknown,
  matches: Matches,
  ifExists: ExistsPolicy,
): MappedRecord {
  const match = matches.take()
  switch (match.type) {
    case 'equal':
      return { type: 'skipped' }
    case 'unmatched':
      return createProblem('invalid', `No id is left for the record: the greatest is ${largestId}`)
    case 'new':
      // An equal plant that has the id is that of an earlier run. Any other plant is neither skipped
      // nor changed.
      return {
        type: 'create',
        plant: { ...record, id: match.id },
        ifExists: 'same',
        isGenerated: true,
      }
    case 'different':
      return mapDifference(record, matches.hasTags ? tag : undefined, match.plant, ifExists)
  }
}

function mapDifference(
  record: NewPlant,
  tag: unknown,
  { id, name: expectedName, tag: storedTag }: StoredPlant,
  ifExists: ExistsPolicy,
): MappedRecord {
  if (ifExists === 'skip') return { type: 'skipped' }
  if (ifExists === 'same') {
    const difference = record.tag === storedTag ? 'is spelled otherwise' : 'its tag differs'
    const problem = `Plant ${id} has this name, but ${difference}`
    return createProblem('conflict', problem)
  }
  const patch = parsePatch({ id, name: record.name, tag })
  return patch
    ? { type: 'update', patch, ifMissing: 'create', expectedName, isGenerated: false }
    : explainInvalid({ id, name: record.name, tag }, true)
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
