/*
 * Builds the SQL by which a list or a count selects and sorts plants. The texts of the statements
 * have no values in them, so a service prepares few of them, whatever its clients search for.
 */
import { foldString, listNormalForms } from '../../plant/folding.js'
import type { CountQuery } from '../query.js'
import { foldFunction } from './connection.js'

/** Builds the condition under which a plant is selected, and the values of its parameters. */
export function buildFilter({ tag, search }: CountQuery): { where: string; values: string[] } {
  const conditions: string[] = []
  const values: string[] = []
  if (tag === false) conditions.push('tag IS NULL')
  else if (tag !== undefined) {
    const forms = listNormalForms(tag)
    conditions.push(`tag IN (${forms.map(() => '?')})`)
    values.push(...forms)
  }
  if (search !== undefined) {
    const tests = ['name', 'tag'].map((column) => `instr(${buildFolding(column)}, ?)`)
    conditions.push(`(${tests.join(' OR ')})`)
    const foldedSearch = foldString(search)
    values.push(foldedSearch, foldedSearch)
  }
  return { where: conditions.join(' AND ') || everyPlantCondition, values }
}

/** The SQL of a condition that every plant meets. */
export const everyPlantCondition = 'true'

/**
 * Builds SQL that folds a field as `foldString` does. It calls `foldString` only for a field with
 * characters beyond ASCII, which takes six times as long. To compare the numbers of bytes and
 * characters takes less time than to examine each character.
 */
export function buildFolding(column: string): string {
  const isAscii = `octet_length(${column}) = length(${column})`
  return `CASE WHEN ${isAscii} THEN lower(${column}) ELSE ${foldFunction}(${column}) END`
}
