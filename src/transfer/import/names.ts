import type { NewPlant } from '../../plant/plant.js'
import { shorten } from '../../platform/escape.js'
import { type Problem, problem } from '../../stores/common/change.js'

/** The ids of plants by their names, which are the same if all their code points are. */
export class PlantNames {
  readonly #ids = new Map<string, bigint | bigint[]>()

  /** Takes pages in ascending order of ids. */
  static async of(pages: AsyncIterable<NewPlant[]> | undefined): Promise<PlantNames> {
    const names = new PlantNames()
    for await (const plants of pages ?? [])
      for (const { id, name } of plants) {
        const known = names.#ids.get(name)
        if (Array.isArray(known)) known.push(id)
        else names.#ids.set(name, known === undefined ? id : [known, id])
      }
    return names
  }

  /** A plant that the import makes: if there is one with its name, that stays the one. */
  add(name: string, id: bigint): void {
    // A part of a larger text, such as a cell, would keep all of that in memory.
    if (!this.#ids.has(name)) this.#ids.set(Buffer.from(name).toString(), id)
  }

  /** Undefined if no plant has the name, and a problem if several have. */
  find(name: string): bigint | Problem | undefined {
    const found = this.#ids.get(name)
    if (!Array.isArray(found)) return found
    const ids = found.length > maxShown ? [...found.slice(0, maxShown), '…'] : found
    return problem('invalid', `Several plants have ${described(name)}: ${ids.join(', ')}`)
  }
}

export function unknownName(name: string): Problem {
  return problem('invalid', `No plant has ${described(name)}`)
}

function described(name: string): string {
  return `the name ${JSON.stringify(shorten(name))}`
}

const maxShown = 5
