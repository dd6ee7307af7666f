/*
 * Builds the change that a record becomes, a create or an update, once its id is known.
 */
import { assertDefined } from '../errors.js'
import type { InputOptions } from '../formats/chunk.js'
import { buildPlant, type PlantPatch } from '../plant/plant.js'
import type { Change } from '../stores/change.js'

/**
 * Where the id of a change comes from.
 *
 * - `given`: the record has it.
 * - `foundByName`: it is the id of the plant that has the name of the record.
 * - `generated`: the import assigns it.
 * - `generatedBefore`: the plant was found by its name, and its id is just the next one that the
 *   import generates. So it is a plant of this import: a run that was killed had sent it to a
 *   service, and had not saved its checkpoint yet.
 */
export type IdSource = 'given' | 'foundByName' | 'generated' | 'generatedBefore'

export type MappedChange = Exclude<Change, { type: 'delete' }> & { idSource: IdSource }

/** Whether the id of the change is one that this import has generated. */
export function isGenerated(idSource: IdSource): boolean {
  return idSource === 'generated' || idSource === 'generatedBefore'
}

/** Whether the record has no id, and a plant was found that has its name. */
export function isFoundByName(idSource: IdSource): boolean {
  return idSource === 'foundByName' || idSource === 'generatedBefore'
}

/** @param key the idempotency key at a service; undefined for a direct store */
export function buildUpdate(
  patch: PlantPatch,
  idSource: IdSource,
  key: string | undefined,
): MappedChange {
  return {
    type: 'update',
    patch,
    ifMissing: 'create',
    key: idSource === 'foundByName' ? undefined : key,
    isFoundByName: isFoundByName(idSource),
    idSource,
  }
}

/** @param key the idempotency key at a service; undefined for a direct store */
export function buildCreate(
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
 * Chooses what happens if a plant with the id of a create exists.
 *
 * Usually `--if-exists` says so. But if the id is generated, the plant that has it is another one,
 * even if it is equal: two plants of a list may have the same name and tag. So it is neither
 * skipped nor changed. The exception is a service, where an equal plant is the one that the same
 * request stored when it was sent before.
 *
 * @returns undefined if the create is then rejected
 */
export function chooseExistsPolicy(
  idSource: IdSource,
  key: string | undefined,
  ifExists: InputOptions['ifExists'],
): 'same' | 'skip' | undefined {
  if (idSource === 'generated') return key === undefined ? undefined : 'same'
  return ifExists === 'update' ? 'same' : ifExists
}
