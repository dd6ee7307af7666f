/** Where in a text a scan is; the last two are no place for anything. */
export const Place = { value: 0, firstItem: 1, firstKey: 2, key: 3, colon: 4, memberEnd: 5, itemEnd: 6, done: 7, broken: 8 } as const

export const Kind = {
  other: 0,
  space: 1,
  brace: 2,
  braceEnd: 3,
  bracket: 4,
  bracketEnd: 5,
  comma: 6,
  colon: 7,
  quote: 8,
  scalar: 9,
} as const

/** The kind of each byte. */
export const kinds = Uint8Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte)
  if (/[\w.+-]/.test(character)) return Kind.scalar
  return Math.max(0, ['', ' ', '{', '}', '[', ']', ',', ':', '"'].indexOf(/[\t\n\r]/.test(character) ? ' ' : character))
})

const anyValue = { [Kind.brace]: Place.firstKey, [Kind.bracket]: Place.firstItem, [Kind.quote]: Place.done, [Kind.scalar]: Place.done }

/** For each place, what may come there, and which place comes behind it; `done` is the place behind a value. */
export const grammar: readonly Uint8Array[] = [
  anyValue,
  { ...anyValue, [Kind.bracketEnd]: Place.done },
  { [Kind.quote]: Place.colon, [Kind.braceEnd]: Place.done },
  { [Kind.quote]: Place.colon },
  { [Kind.colon]: Place.value },
  { [Kind.comma]: Place.key, [Kind.braceEnd]: Place.done },
  { [Kind.comma]: Place.value, [Kind.bracketEnd]: Place.done },
].map((row: Readonly<Record<number, number>>) => Uint8Array.from({ length: 10 }, (_, kind) => row[kind] ?? Place.broken))
