/*
 * Builds the SQL by which a list or a count selects and sorts plants. docs/design/search.md says
 * why a search first asks SQL which names and tags it must read.
 */
import { foldCase, foldString, listNormalForms } from '../../plant/folding.js'
import type { StoredPlant } from '../../plant/plant.js'
import type { CountQuery } from '../query.js'
import { foldFunction } from './connection.js'

/**
 * Builds the two conditions under which a plant is selected.
 *
 * @returns the SQL `where` with its `values`, which may select too many plants, and `matches`,
 *   which must then be true for each selected plant
 */
export function buildFilter({ tag, search }: CountQuery) {
  const conditions: string[] = []
  const values: string[] = []
  if (tag === false) conditions.push('tag IS NULL')
  else if (tag !== undefined) {
    const forms = listNormalForms(tag)
    conditions.push(`tag IN (${forms.map(() => '?')})`)
    values.push(...forms)
  }
  const foldedSearch = foldString(search ?? '')
  if (search !== undefined) {
    const characters = listAsciiCharacters(foldedSearch)
    conditions.push(
      `(${buildMayContain('name', characters)} OR ${buildMayContain('tag', characters)})`,
    )
    const parameters = [foldedSearch, ...characters.flatMap(({ forms }) => forms)]
    values.push(...parameters, ...parameters)
  }
  const matches = ({ name, tag = '' }: StoredPlant) =>
    search === undefined || [name, tag].some((text) => foldString(text).includes(foldedSearch))
  return { where: conditions.join(' AND ') || everyPlantCondition, values, matches }
}

/** The SQL of a condition that every plant meets. */
export const everyPlantCondition = 'true'

/**
 * Builds SQL that folds a field as `foldString` does. It calls `foldString` only for a field with
 * characters beyond ASCII.
 */
export function buildFoldedSortKey(column: string): string {
  const folding = `${foldFunction}(${column})`
  return `CASE WHEN ${buildNotAscii(column)} THEN ${folding} ELSE lower(${column}) END`
}

/** An ASCII character of the folded search. */
interface SearchedCharacter {
  /** The character in lower and in upper case. */
  forms: readonly [string, string]
  /**
   * The bytes that begin other characters whose folding contains the character: see
   * `listFoldingStarts`.
   */
  starts: readonly string[]
}

/** These letters occur in most names. The most frequent letter is the last one. */
const frequentLetters = 'cdultornsiae'

/**
 * Lists the two ASCII characters of the folded search that occur in the fewest names. To look for a
 * third character takes more time than it saves.
 */
function listAsciiCharacters(foldedSearch: string): SearchedCharacter[] {
  const characters = [...new Set(foldedSearch.match(/[!-~]/g))]
  characters.sort((a, b) => frequentLetters.indexOf(a) - frequentLetters.indexOf(b))
  return characters.slice(0, 2).map((character) => ({
    forms: [character, character.toUpperCase()],
    starts: listFoldingStarts(character),
  }))
}

/** All characters beyond ASCII whose folding contains ASCII are in these ranges. */
const blocksWithAscii: readonly [first: number, last: number][] = [
  [0xc0, 0x24f],
  [0x37e, 0x37e],
  [0x1e00, 0x1eff],
  [0x1fef, 0x1fef],
  [0x212a, 0x212b],
  [0x2260, 0x226f],
  [0xfb00, 0xfb06],
]

/**
 * Lists the bytes in UTF-8, in hexadecimal and without the last one, of the characters beyond ASCII
 * whose folding contains an ASCII character. For `a`, they include `c3`, which begins `á`. The same
 * bytes may begin other characters, too.
 */
export function listFoldingStarts(character: string): string[] {
  const starts = new Set<string>()
  for (const [first, last] of blocksWithAscii)
    for (let code = first; code <= last; code += 1) {
      const candidate = String.fromCharCode(code)
      // Its neighbors cannot add ASCII characters to its folding.
      if (foldCase(candidate).normalize('NFD').includes(character))
        starts.add(Buffer.from(candidate).subarray(0, -1).toString('hex'))
    }
  return [...starts]
}

/**
 * Builds SQL that is true for each field whose folding contains the folded search, and for few
 * other fields. Its parameters are the folded search, and then the forms of each character.
 *
 * For a field in ASCII, the SQL decides. Any other field must have each of the characters, or the
 * bytes that begin a character whose folding contains it. Most names in another script lack even
 * the first character, so they need not be read and folded, which takes six times as long. A `CASE`
 * skips the remaining conditions after the first one that is true. For a value such as `a AND b`,
 * SQLite would compute both conditions.
 */
function buildMayContain(column: string, characters: readonly SearchedCharacter[]): string {
  const asciiCase = `WHEN ${buildNotAscii(column)} IS NOT TRUE THEN instr(lower(${column}), ?)`
  const exclusionCases = characters.map(({ starts }) => {
    const hasForm = `instr(${column}, ?) OR instr(${column}, ?)`
    const haveStarts = starts.map((start) => `instr(CAST(${column} AS BLOB), x'${start}')`)
    return `WHEN (${[hasForm, ...haveStarts].join(' OR ')}) IS NOT TRUE THEN false`
  })
  return `CASE ${asciiCase} ${exclusionCases.join(' ')} ELSE true END`
}

/**
 * Builds SQL that is true for a field with a character beyond ASCII, and NULL for a missing field.
 * To compare the numbers of bytes and characters takes less time than to examine each character.
 */
function buildNotAscii(column: string): string {
  return `(octet_length(${column}) <> length(${column}))`
}
