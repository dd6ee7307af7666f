import type { NewPlant } from '../../plant/plant.js'
import type { Rows } from './connection.js'

/** The plant of a row whose columns begin with id, name and tag. */
export function toPlant([id, name, tag]: Rows[number]): NewPlant {
  return { id: BigInt(id ?? 0), name: name ?? '', ...(tag == null ? {} : { tag }) }
}
