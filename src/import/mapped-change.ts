/*
 * Builds the change of a record whose id is known: a create or an update.
 */
import type { InputOptions } from '../formats/chunk.js'
import type { NewPlant, PlantPatch } from '../plant/plant.js'
import type { Change } from '../stores/change.js'

/**
 * Where the id of a change comes from.
 *
 * - `given`: the record has it.
 * - `foundByName`: it is the id of the plant that has the name of the record.
 * - `generated`: the import assigns it.
 */
export type IdSource = 'given' | 'foundByName' | 'generated'

export type MappedChange = Exclude<Change, { type: 'delete' }> & {
  /** Whether the import has assigned the id. */
  isGenerated: boolean
}

export function buildUpdate(patch: PlantPatch, idSource: IdSource): MappedChange {
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
export function buildCreate(
  plant: NewPlant,
  idSource: IdSource,
  ifExists: InputOptions['ifExists'],
): MappedChange {
  return {
    type: 'create',
    plant,
    ifExists: idSource === 'generated' || ifExists === 'update' ? 'same' : ifExists,
    isFoundByName: idSource === 'foundByName',
    isGenerated: idSource === 'generated',
  }
}
