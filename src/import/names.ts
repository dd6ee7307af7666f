/*
 * Finds plants by their exact names for `--by-name`, and generates ids for new names.
 *
 * The names and the greatest id are read once, before the first record: a query for each record
 * would take far longer. From then on, the same records get the same ids, whatever others store.
 */
import { largestId } from '../plant/fields.js'
import type { StoredPlant } from '../plant/plant.js'
import type { Store } from '../stores/store.js'

interface StoredNames {
  ids: Map<string, bigint | bigint[]>
  greatestId: bigint | undefined
}

export class PlantNames {
  /** The ids of plants by their names. A name that several plants have has several ids. */
  readonly #ids: Map<string, bigint | bigint[]>
  /** The first id that is generated. No record may have this id or a greater one. */
  readonly firstId: bigint
  #nextId: bigint

  private constructor(storedNames: StoredNames) {
    const { ids, greatestId } = storedNames
    this.#ids = ids
    this.firstId = greatestId === undefined ? 1n : greatestId + 1n
    this.#nextId = this.firstId
  }

  /**
   * @param store undefined for a store that does not exist yet
   * @param greatestIdOfFiles undefined if no record of the files has an id
   */
  static async read(
    store: Pick<Store, 'read'> | undefined,
    greatestIdOfFiles: bigint | undefined,
    signal?: AbortSignal,
  ): Promise<PlantNames> {
    const storedNames: StoredNames = { ids: new Map(), greatestId: greatestIdOfFiles }
    for await (const plants of store?.read({ signal }) ?? [])
      for (const plant of plants) addStoredName(storedNames, plant)
    return new PlantNames(storedNames)
  }

  find(name: string): bigint | readonly bigint[] | undefined {
    return this.#ids.get(name)
  }

  /** The id of the next new name; undefined if no greater id is left. */
  get nextId(): bigint | undefined {
    return this.#nextId > largestId ? undefined : this.#nextId
  }

  /** Remembers the plant of a record, because a later record without an id may have its name. */
  add(id: bigint, name: string): void {
    if (id === this.#nextId) this.#nextId += 1n
    // In V8, a substring keeps the string from which it was cut in memory, here a block of the
    // input. A copy does not.
    if (!this.#ids.has(name)) this.#ids.set(Buffer.from(name).toString(), id)
  }
}

function addStoredName(storedNames: StoredNames, { id, name }: StoredPlant): void {
  const { ids, greatestId } = storedNames
  if (greatestId === undefined || id > greatestId) storedNames.greatestId = id
  const knownId = ids.get(name)
  if (Array.isArray(knownId)) knownId.push(id)
  else ids.set(name, knownId === undefined ? id : [knownId, id])
}
