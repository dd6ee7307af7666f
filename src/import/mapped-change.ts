/*
 * Builds the change of a record whose id is known: a create or an update.
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
 * - `generatedBefore`: the plant was found by its name, and has exactly the next id that the import
 *   would generate. So this import has created the plant: it was killed after it had sent the plant
 *   to a service, and before it saved its checkpoint.
 */
export type IdSource = 'given' | 'foundByName' | 'generated' | 'generatedBefore'

export type MappedChange = Exclude<Change, { type: 'delete' }> & { idSource: IdSource }

/** Whether the id of the change is one that this import has generated. */
export function isGenerated(idSource: IdSource): boolean {
  return idSource === 'generated' || idSource === 'generatedBefore'
}

/** Whether the record has no id, but the name of an existing plant. */
export function isFoundByName(idSource: IdSource): boolean {
  return idSource === 'foundByName' || idSource === 'generatedBefore'
}

/** @param key the idempotency key for a service; undefined for a direct store */
export function buildUpdate(
  patch: PlantPatch,
  idSource: IdSource,
  key: string | undefined,
): MappedChange {
  return {
    type: 'update',
    patch,
    ifMissing: 'create',
    key: chooseKey(idSource, key),
    isFoundByName: isFoundByName(idSource),
    idSource,
  }
}

/** @param key the idempotency key for a service; undefined for a direct store */
export function buildCreate(
  { id, name, tag }: PlantPatch,
  idSource: IdSource,
  key: string | undefined,
  ifExists: InputOptions['ifExists'],
): MappedChange {
  return {
    type: 'create',
    plant: buildPlant(id, assertDefined(name ?? undefined), tag),
    key: chooseKey(idSource, key),
    ifExists: chooseExistsPolicy(idSource, key, ifExists),
    isFoundByName: isFoundByName(idSource),
    idSource,
  }
}

/**
 * Returns no key for a plant that was found by its name. Without a key, the service is asked for
 * the plant before it is changed, because the plant may have another name by now.
 */
function chooseKey(idSource: IdSource, key: string | undefined): string | undefined {
  return idSource === 'foundByName' ? undefined : key
}

/**
 * Chooses what happens if a plant with the id of a create exists.
 *
 * Usually `--if-exists` decides that. But a plant that has a generated id already is another plant,
 * even if it is equal, because two plants of a list may have the same name and tag. So the existing
 * plant is neither skipped nor changed. At a service, however, an equal plant was created by the
 * same request when it was sent before.
 *
 * @returns undefined if the create is then rejected
 */
function chooseExistsPolicy(
  idSource: IdSource,
  key: string | undefined,
  ifExists: InputOptions['ifExists'],
): 'same' | 'skip' | undefined {
  if (idSource === 'generated') return key === undefined ? undefined : 'same'
  return ifExists === 'update' ? 'same' : ifExists
}
