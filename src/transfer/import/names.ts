import type { NewPlant } from '../../plant/plant.js'

/** The ids of plants by their names, which are the same if all their code points are. */
export type PlantNames = Map<string, bigint | bigint[]>

/** Takes pages in ascending order of ids. */
export async function readNames(pages: AsyncIterable<NewPlant[]> | undefined): Promise<PlantNames> {
  const names: PlantNames = new Map()
  for await (const plants of pages ?? [])
    for (const { id, name } of plants) {
      const known = names.get(name)
      if (Array.isArray(known)) known.push(id)
      else names.set(name, known === undefined ? id : [known, id])
    }
  return names
}
