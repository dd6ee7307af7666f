import { type NewPlant, type Plant, textFields } from '../../plant/fields.js'
import type { Rows } from './connection.js'

/** The plant of a row whose columns begin with those of a plant. */
export function toPlant([id, ...texts]: Rows[number]): NewPlant {
  return { id: BigInt(id ?? 0), ...toFields(texts) }
}

/** The fields besides the id, of as many columns. */
export function toFields(texts: Rows[number]): Plant {
  const plant: Plant = { name: '' }
  for (const [index, { name }] of textFields.entries()) {
    const text = texts[index]
    if (text != null) plant[name] = text
  }
  return plant
}
