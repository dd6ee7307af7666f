/**
 * Whether a text belongs to a shared string or an inline string (ECMA-376 part 1, 18.4.8). A plain
 * string has one element `t`. A string whose parts are formatted differently has several elements
 * `r` (runs) with a `t` each. An element `rPh` has the pronunciation of a Japanese word, which is
 * not a part of the string.
 *
 * @param parents the names of the open elements around the text
 */
export function isStringText(parents: readonly string[]): boolean {
  return parents.at(-1) === 't' && !parents.includes('rPh')
}

/**
 * Decodes `_xHHHH_`, the escape of a UTF-16 unit that XML cannot contain (ECMA-376 part 1,
 * 22.4.2.4): `_x0007_` is a bell. With a capital X, spreadsheets do not take it for an escape.
 */
export function unescapeString(text: string): string {
  if (!text.includes('_x')) return text
  return text.replace(/_x([\da-fA-F]{4})_/g, (_, digits: string) =>
    String.fromCharCode(parseInt(digits, 16)),
  )
}
