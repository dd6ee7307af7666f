/*
 * Builds the SQL by which a list or a count selects and sorts plants. docs/design/search.md says
 * why a search first asks SQL which texts it must read.
 */
import { foldCase, foldString, listNormalForms } from '../../plant/folding.js'
import type { StoredPlant } from '../../plant/plant.js'
import type { CountQuery } from '../query.js'
import { foldFunction } from './connection.js'

/**
 * Builds the two conditions under which a plant is selected.
 *
 * @returns the SQL `where` with its `values`, which may be true for too many plants, and `matches`,
 * which decides for each of those
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
  const folded = foldString(search ?? '')
  if (search !== undefined) {
    const characters = listAsciiCharacters(folded)
    conditions.push(
      `(${buildMayContain('name', characters)} OR ${buildMayContain('tag', characters)})`,
    )
    const parameters = [folded, ...characters.flatMap(({ forms }) => forms)]
    values.push(...parameters, ...parameters)
  }
  const matches = ({ name, tag = '' }: StoredPlant) =>
    search === undefined || [name, tag].some((text) => foldString(text).includes(folded))
  return { where: conditions.join(' AND ') || everything, values, matches }
}

/** The SQL of a condition that every plant meets. */
export const everything = 'true'

/**
 * Builds SQL that folds a field as `foldString` does. It calls `foldString` only for a field with
 * characters beyond ASCII.
 */
export function buildSortText(column: string): string {
  const folded = `${foldFunction}(${column})`
  return `CASE WHEN ${buildNotAscii(column)} THEN ${folded} ELSE lower(${column}) END`
}

/** An ASCII character of the text that is searched for. */
interface SoughtCharacter {
  /** The character in lower and in upper case. */
  forms: readonly [string, string]
  /** The bytes that begin other characters which fold to it: see `listFoldingStarts`. */
  starts: readonly string[]
}

/** These letters occur in most texts. The most frequent one is the last. */
const frequentLetters = 'cdultornsiae'

/**
 * Lists the two ASCII characters of a folded text that the fewest texts have. To look for more of
 * them takes more time than it saves.
 */
function listAsciiCharacters(folded: string): SoughtCharacter[] {
  const characters = [...new Set(folded.match(/[!-~]/g))]
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
      const text = String.fromCharCode(code)
      // Its neighbors cannot add ASCII characters to its folding.
      if (foldCase(text).normalize('NFD').includes(character))
        starts.add(Buffer.from(text).subarray(0, -1).toString('hex'))
    }
  return [...starts]
}

/**
 * Builds SQL that is true for each text which contains the folded text, and for few others. Its
 * parameters are the folded text, and then the forms of each character.
 *
 * For an ASCII text, the SQL decides. Any other text must have each of the characters, or the bytes
 * that begin a character which folds to it. Most texts in another script lack even the first one,
 * so they need not be read and folded, which takes six times as long. `CASE` then skips the other
 * conditions. For a value such as `a AND b`, SQLite would compute both.
 */
function buildMayContain(column: string, characters: readonly SoughtCharacter[]): string {
  const lacks = characters.map(({ starts }) => {
    const bytes = starts.map((start) => `instr(CAST(${column} AS BLOB), x'${start}')`)
    const occurs = [`instr(${column}, ?)`, `instr(${column}, ?)`, ...bytes].join(' OR ')
    return `WHEN (${occurs}) IS NOT TRUE THEN false`
  })
  const contains = `WHEN ${buildNotAscii(column)} IS NOT TRUE THEN instr(lower(${column}), ?)`
  return `CASE ${contains} ${lacks.join(' ')} ELSE true END`
}

/**
 * Builds SQL that is true for a text with a character beyond ASCII, and NULL for NULL. To count
 * bytes and characters takes less time than to look at each character.
 */
function buildNotAscii(column: string): string {
  return `(octet_length(${column}) <> length(${column}))`
}
