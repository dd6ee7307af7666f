import type { NewPlant } from '../../plant/plant.js'
import { BadRowError } from './failure.js'

export function toPlant(row: unknown): NewPlant {
  const { id, name, tag } = row as { id: bigint; name: unknown; tag: unknown } // a row id, and what stands in the columns
  if (typeof name !== 'string' || (tag !== null && typeof tag !== 'string'))
    throw new BadRowError(`the plant ${id} has a value that is no text`)
  return tag === null ? { id, name } : { id, name, tag }
}
