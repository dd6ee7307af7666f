/*
 * Finds out which numbers of a workbook are dates.
 *
 * A cell does not say that it has a date: it has a number and the index of a format. The format is
 * either one that every spreadsheet knows by its id, or has a code such as `dd/mm/yyyy`.
 */
import type { Archive } from './archive.js'
import { type Attributes, type ElementHandler, parseWholePart } from './xml.js'

/** What a number with a format stands for; undefined for a number that is just a number. */
export type DateKind = 'date' | 'time' | 'duration' | undefined

/** Reads the formats of cells (`cellXfs`). A cell has the index of its format in this list. */
export async function readStyles(archive: Archive, path: string): Promise<DateKind[]> {
  return (await parseWholePart(archive, path, new StylesReader())).kinds
}

class StylesReader implements ElementHandler {
  readonly kinds: DateKind[] = []
  readonly #customKinds = new Map<string, DateKind>()

  openElement(name: string, attributes: Attributes, parents: readonly string[]): void {
    const { numFmtId = '0', formatCode = '' } = attributes
    if (name === 'numFmt') this.#customKinds.set(numFmtId, classifyFormat(formatCode))
    else if (name === 'xf' && parents.includes('cellXfs'))
      this.kinds.push(this.#customKinds.get(numFmtId) ?? classifyKnownFormat(Number(numFmtId)))
  }
}

/**
 * Classifies a format whose code is not in the file, but in the standard (ECMA-376 part 1,
 * 18.8.30). The ids 14 to 22 and 45 to 47 are dates and times everywhere, 27 to 36 and 50 to 58 in
 * Chinese, Japanese and Korean, and 71 to 81 in Thai.
 */
function classifyKnownFormat(id: number): DateKind {
  if (id === 46) return 'duration'
  if ((id >= 18 && id <= 21) || id === 45 || id === 47) return 'time'
  const isDate =
    (id >= 14 && id <= 22) ||
    (id >= 27 && id <= 36) ||
    (id >= 50 && id <= 58) ||
    (id >= 71 && id <= 81)
  return isDate ? 'date' : undefined
}

/**
 * Classifies a format by the letters of its code, without literal text: `"Day "d` is a date because
 * of its last letter. Only the first section counts, which is the one for positive numbers.
 */
function classifyFormat(code: string): DateKind {
  const [section = ''] = code.replace(/"[^"]*"|\\.|[_*]./g, '').split(';')
  if (/\[(?:h+|m+|s+)\]/i.test(section)) return 'duration'
  const letters = section.replace(/\[[^[\]]*\]|general|g\/[^\s;]*/gi, '')
  if (/[dy]/i.test(letters)) return 'date'
  if (/[hs]/i.test(letters)) return 'time'
  // These letters stand for eras, years of the Buddhist calendar and days of the week. A format of
  // a number has none of them, but has digits.
  const isEastAsianDate = /[gber]|aaa/i.test(letters) && !/[0#?]/.test(letters)
  return isEastAsianDate || /m/i.test(letters) ? 'date' : undefined
}
