import { foldString } from '../plant/folding.js'
import { shorten } from '../platform/escape.js'

/**
 * Folds a label, which is the name of a column, a key or a sheet, to compare it. `ID`, ` id ` and
 * `Id` are the same. So are `Größe` and `grosse`, as in a search. Soft hyphens and zero-width
 * spaces are invisible, so they are removed.
 */
export function foldLabel(name: string): string {
  // In a wide sheet, most names are empty.
  if (name === '') return ''
  const visibleName = name.replace(/[\u00ad\u200b]/g, '')
  return foldString(visibleName.trim().replace(/\s+/g, ' '))
}

/** Lists the first names in quotes, without empty ones: `"Nr", "Kind" and 3 more`. */
export function listNames(names: readonly string[]): string {
  const filledNames = names.filter(Boolean)
  const quotedNames = filledNames.slice(0, 8).map((name) => JSON.stringify(shorten(name)))
  const moreCount = filledNames.length - quotedNames.length
  return quotedNames.join(', ') + (moreCount > 0 ? ` and ${moreCount} more` : '')
}
