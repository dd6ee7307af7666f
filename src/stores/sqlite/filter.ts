/*
 * The SQL by which a list or a count selects plants, and sorts them: see docs/design/search.md.
 */
import { foldText, listNormalForms, toFoldedCase } from '../../plant/folding.js'
import type { StoredPlant } from '../../plant/plant.js'
import type { CountQuery } from '../query.js'
import { foldFunction } from './connection.js'

/**
 * @returns the SQL `where` with its values, and `matches`. A plant is selected if both are true.
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
  const folded = foldText(search ?? '')
  if (search !== undefined) {
    const characters = listAsciiCharacters(folded)
    conditions.push(
      `(${buildMayContain('name', characters)} OR ${buildMayContain('tag', characters)})`,
    )
    const parameters = [folded, ...characters.flatMap(({ forms }) => forms)]
    values.push(...parameters, ...parameters)
  }
  const matches = ({ name, tag = '' }: StoredPlant) =>
    search === undefined || [name, tag].some((text) => foldText(text).includes(folded))
  return { where: conditions.join(' AND ') || everything, values, matches }
}

/** The SQL of no condition. */
export const everything = 'true'

/** Builds SQL that folds a text as `foldText` does, and calls that only for what is not ASCII. */
export function buildSortText(column: string): string {
  const folded = `${foldFunction}(${column})`
  return `CASE WHEN ${buildNotAscii(column)} THEN ${folded} ELSE lower(${column}) END`
}

/** An ASCII character of what is sought. */
interface SoughtCharacter {
  /** Itself, and in upper case. */
  forms: readonly [string, string]
  /** How other characters begin that fold to it: see `listFoldingStarts`. */
  starts: readonly string[]
}

/** The letters that most texts have, the most frequent one last. */
const frequentLetters = 'cdultornsiae'

/** Lists the two that the fewest texts have: further ones take more time than they save. */
function listAsciiCharacters(folded: string): SoughtCharacter[] {
  const characters = [...new Set(folded.match(/[!-~]/g))]
  characters.sort((a, b) => frequentLetters.indexOf(a) - frequentLetters.indexOf(b))
  return characters.slice(0, 2).map((character) => ({
    forms: [character, character.toUpperCase()],
    starts: listFoldingStarts(character),
  }))
}

/** The blocks that have all characters beyond ASCII of whose folding ASCII may be a part. */
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
 * Lists how characters beyond ASCII begin in UTF-8 that fold to an ASCII character or to more: all
 * but their last bytes, in hexadecimal, such as `c3` for `á`. Other characters may begin as well.
 */
export function listFoldingStarts(character: string): string[] {
  const starts = new Set<string>()
  for (const [first, last] of blocksWithAscii)
    for (let code = first; code <= last; code += 1) {
      const text = String.fromCharCode(code)
      // Whatever is beside it, its folding has no other ASCII characters.
      if (toFoldedCase(text).normalize('NFD').includes(character))
        starts.add(Buffer.from(text).subarray(0, -1).toString('hex'))
    }
  return [...starts]
}

/**
 * Builds SQL that is true for each text which contains the folded text, and for few others. Its
 * parameters are the folded text, and then the forms of the characters.
 *
 * An ASCII text is decided. Any other must have each of the characters, or bytes with which another
 * begins that folds to it. Most texts in another script have not even the first one, and need not
 * be read and folded, which takes six times as long. SQLite skips the other conditions then, as it
 * would not in a value such as `a AND b`.
 */
function buildMayContain(column: string, characters: readonly SoughtCharacter[]): string {
  const lacks = characters.map(({ starts }) => {
    const bytes = starts.map((start) => `instr(CAST(${column} AS BLOB), x'${start}')`)
    const has = [`instr(${column}, ?)`, `instr(${column}, ?)`, ...bytes].join(' OR ')
    return `WHEN (${has}) IS NOT TRUE THEN false`
  })
  const contains = `WHEN ${buildNotAscii(column)} IS NOT TRUE THEN instr(lower(${column}), ?)`
  return `CASE ${contains} ${lacks.join(' ')} ELSE true END`
}

/**
 * Builds SQL that is true for a text with a character beyond ASCII, and not true for NULL. To count
 * bytes and characters takes less time than to look at each character.
 */
function buildNotAscii(column: string): string {
  return `(octet_length(${column}) <> length(${column}))`
}
