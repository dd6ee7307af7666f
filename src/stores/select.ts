/*
 * Says what a query selects, and in which order, of plants that are in memory. Direct stores say
 * the same in SQL; the tests compare them with this.
 */
import { foldString, listNormalForms, toSortKey } from '../plant/folding.js'
import type { StoredPlant } from '../plant/plant.js'
import type { ReadQuery } from './query.js'

/** Whether the query selects the plant, without regard to its limit. */
export function matches(plant: StoredPlant, query: ReadQuery): boolean {
  return isBehindStart(plant, query) && hasTag(plant, query) && isFound(plant, query)
}

function isBehindStart({ id }: StoredPlant, { after, sort = 'id', desc }: ReadQuery): boolean {
  if (after === undefined) return true
  return desc && sort === 'id' ? id < after : id > after
}

function hasTag(plant: StoredPlant, { tag }: ReadQuery): boolean {
  if (tag === undefined) return true
  if (tag === false) return plant.tag === undefined
  return plant.tag !== undefined && listNormalForms(tag).includes(plant.tag)
}

function isFound({ name, tag = '' }: StoredPlant, { search }: ReadQuery): boolean {
  if (search === undefined) return true
  const foldedSearch = foldString(search)
  return [name, tag].some((text) => foldString(text).includes(foldedSearch))
}

/** Returns the function by which `toSorted` puts plants into the order of the query. */
export function compare({ sort = 'id', desc }: ReadQuery) {
  const direction = desc ? -1 : 1
  return (left: StoredPlant, right: StoredPlant): number => {
    const idOrder = compareValues(left.id, right.id)
    if (sort === 'id') return direction * idOrder
    const [leftText, rightText] = [left[sort], right[sort]]
    if (leftText !== undefined && rightText !== undefined)
      return direction * compareTexts(leftText, rightText) || idOrder
    return Number(leftText === undefined) - Number(rightText === undefined) || idOrder
  }
}

function compareTexts(left: string, right: string): number {
  const foldingOrder = compareValues(toSortKey(foldString(left)), toSortKey(foldString(right)))
  return foldingOrder || compareValues(toSortKey(left), toSortKey(right))
}

function compareValues<Value extends bigint | string>(left: Value, right: Value): number {
  return left < right ? -1 : Number(left > right)
}
