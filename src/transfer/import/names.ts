import { getHeapStatistics } from 'node:v8'
import { grouped, type NewPlant } from '../../plant/plant.js'
import { inputError } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { type Problem, problem } from '../../stores/common/change.js'

/** Plants with the same name. */
interface Several {
  /** The smallest ones. */
  ids: bigint[]
  count: number
}

/**
 * The ids of plants by their names: of those in the store when an import begins, and of those that it creates. Names are
 * the same if all their code points are. Before the store is read, the names that are looked up are those to keep.
 */
export class PlantNames {
  /** Undefined for a name that no plant has yet. */
  readonly #ids = new Map<string, bigint | Several | undefined>()
  readonly #isLimited: boolean
  readonly #maxSize: number
  #isRead = false
  #size = 0
  /** The names of the inputs, and of the plants that were read. */
  greatestId: bigint | undefined
  /** Whether a record was rejected because no plant has its name. */
  hasUnknown = false

  /**
   * @param isLimited whether only the names that are looked up before are kept
   * @param maxSize in bytes, approximately
   */
  constructor(
    isLimited: boolean,
    maxSize = Math.min(getHeapStatistics().heap_size_limit / 2, maxMapSize),
  ) {
    this.#isLimited = isLimited
    this.#maxSize = maxSize
  }

  /** Takes pages in ascending order of ids. */
  async read(pages: AsyncIterable<NewPlant[]> | Iterable<NewPlant[]>): Promise<void> {
    this.#isRead = true
    for await (const plants of pages)
      for (const { id, name } of plants) {
        const first = this.#ids.get(name)
        if (first === undefined) this.add(name, id)
        else if (typeof first === 'bigint') this.#ids.set(name, { ids: [first, id], count: 2 })
        else {
          first.count += 1
          if (first.ids.length < maxIds) first.ids.push(id)
        }
        if (this.greatestId === undefined || id > this.greatestId) this.greatestId = id
      }
  }

  /** A plant that the import creates: if there is one with its name, that stays the one. */
  add(name: string, id: bigint): void {
    if (!this.#isRead) return
    const isKnown = this.#ids.has(name)
    if (isKnown ? this.#ids.get(name) === undefined : !this.#isLimited) this.#keep(name, id)
  }

  /** Undefined if no plant has the name, and a problem if several have. */
  find(name: string): bigint | Problem | undefined {
    const found = this.#ids.get(name)
    if (!this.#isRead && !this.#ids.has(name)) this.#keep(name, undefined)
    if (typeof found !== 'object') return found
    const { ids, count } = found
    const last = count > ids.length ? `${grouped(count - ids.length)} more` : ids.at(-1)
    const shown = (count > ids.length ? ids : ids.slice(0, -1)).join(', ')
    return problem(
      'invalid',
      `${grouped(count)} plants have ${described(name)}: ${shown} and ${last}`,
    )
  }

  /** Why a record is rejected that needs a number, if there are none. */
  unknown(name: string): Problem {
    this.hasUnknown = true
    return problem('invalid', `No plant has ${described(name)}`)
  }

  #keep(name: string, id: bigint | undefined): void {
    const isNew = !this.#ids.has(name)
    // A part of a larger text, such as a cell, would keep all of that in memory.
    this.#ids.set(isNew ? Buffer.from(name).toString() : name, id)
    if (!isNew) return
    this.#size += bytesOfEntry + 2 * name.length
    if (this.#size <= this.#maxSize) return
    const what = `${grouped(this.#ids.size)} different names are too many to match them in the memory of this process`
    const ofPipe = 'Import from a file: then the other names of the store are not kept'
    throw inputError(what, this.#isLimited ? 'Split the file' : ofPipe)
  }
}

function described(name: string): string {
  return `the name ${JSON.stringify(shorten(name))}`
}

/** Ids that are listed. */
const maxIds = 5

/** Bytes of an entry in a map of texts to ids, besides the text. */
const bytesOfEntry = 120

/** Less than V8's maximum of 2^24 entries. */
const maxMapSize = 2_000_000_000
