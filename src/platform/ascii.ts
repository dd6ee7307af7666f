/*
 * The codes of ASCII characters, which are the same in UTF-8 and in UTF-16. Scanners compare these
 * codes, because comparing numbers is faster than comparing strings.
 */
export const tab = 0x09
export const lineFeed = 0x0a
export const carriageReturn = 0x0d
export const space = 0x20
export const quote = 0x22
export const hash = 0x23
export const comma = 0x2c
export const minus = 0x2d
export const zero = 0x30
export const nine = 0x39
export const letterN = 0x4e
export const backslash = 0x5c
export const closingBrace = 0x7d
