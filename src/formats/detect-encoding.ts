/*
 * Finds the likely encodings of bytes that are not UTF-8. An import never decodes by a guess: it
 * shows the guess to a person.
 *
 * jschardet ranks encodings by how frequent their letters are in the languages of the world. It
 * is loaded only here, because it takes 0.1 s and more memory than an import. What it proposes is
 * decoded: a candidate that has no such byte, or no decoder here, is left out.
 */
import { isAscii } from 'node:buffer'
import { decodeBytes, findEncoding, splitLines, UndecodableError } from './encoding.js'

/**
 * @param bytes a text in lines, of which those with letters beyond ASCII are looked at
 * @returns names for `--encoding`, the most likely first. Each decodes all of the bytes, and to
 * another text than those before it. Empty if there is none.
 */
export async function detectEncodings(bytes: Buffer): Promise<readonly string[]> {
  const { detectAll } = await import('jschardet')
  const candidates = detectAll(findSample(bytes), {
    minimumThreshold: 0,
    excludeEncodings: [...impossibleEncodings],
  })
  const namesByText = new Map<string, string>()
  const detected = candidates.map(({ encoding }) => encoding)
  // jschardet leaves it out where a syllable is not one of EUC-KR.
  for (const encoding of [...detected, 'cp949']) {
    const name = await findDetectedEncoding(encoding)
    const text = name && (await decodeStrictly(bytes, name))
    if (name === undefined || text === undefined) continue
    const known = namesByText.get(text)
    if (known === undefined || rankByUse(name) < rankByUse(known)) namesByText.set(text, name)
  }
  const readings = [...namesByText].map(([text, name]) => ({ name, rank: rankReading(text, name) }))
  return readings.toSorted((one, other) => one.rank - other.rank).map(({ name }) => name)
}

/**
 * Corrects the order of short lists, of which the frequency of letters says little: `Rosa × alba`
 * is `Rosa в alba` in KOI8-U, and `Südbeet` is `Sьdbeet`.
 */
function rankReading(text: string, encoding: string): number {
  if (unlikelyText.test(text)) return ranks.unlikely
  const letters = text.replace(typographicCharacters, '').replace(/[\0-\x7f]/g, '')
  const isWindowsText = letters === '' && encoding.startsWith('windows-')
  const isKorean = koreanText.test(letters) && hasCommonSyllables(letters)
  return isWindowsText || isKorean ? ranks.likely : ranks.possible
}

const ranks = { likely: 0, possible: 1, unlikely: 2 }

/** Whether most syllables are of the 2,350 that EUC-KR has, as those of Korean texts are. */
function hasCommonSyllables(letters: string): boolean {
  const syllables = Array.from(letters)
  const commonSyllables = listCommonSyllables()
  const common = syllables.filter((syllable) => commonSyllables.has(syllable))
  return common.length >= 0.8 * syllables.length
}

/** The rows 0xB0 to 0xC8 of EUC-KR, of 94 syllables each. */
function listCommonSyllables(): Set<string> {
  const bytes = Array.from({ length: 25 * 94 }, (_, index) => [
    0xb0 + Math.floor(index / 94),
    0xa1 + (index % 94),
  ])
  return new Set(new TextDecoder('euc-kr').decode(Uint8Array.from(bytes.flat())))
}

/** Few words of Chinese, but all of Korean, read as syllables of Hangul alone. */
const koreanText = /^\p{sc=Hangul}{12,}$/u

/** Characters that programs for Windows write into texts of every language. */
const typographicCharacters = /[\xa0“”‘’„–—…•€×°™]/g

/** Finds a word of two alphabets, a symbol or a ligature in a word, a control, or a box drawing. */
const unlikelyText = RegExp(
  [
    '[A-Za-z][\\p{sc=Cyrillic}\\p{sc=Greek}\\p{sc=Hebrew}\\p{sc=Arabic}\\p{sc=Thai}]',
    '[\\p{sc=Cyrillic}\\p{sc=Greek}\\p{sc=Hebrew}\\p{sc=Arabic}\\p{sc=Thai}][A-Za-z]',
    '\\p{L}[“”„…•\\p{Sk}\\p{Sm}\\p{Sc}\\p{So}]\\p{L}',
    '[\\x80-\\x9f\\u2500-\\u25ff\\ufb00-\\ufb06]',
  ].join('|'),
  'u',
)

/**
 * Of encodings that read the same, the one that programs write most: a line that is added later
 * may tell them apart.
 */
function rankByUse(encoding: string): number {
  if (encoding === 'windows-1252') return 0
  return encoding.startsWith('windows-') ? 1 : 2
}

/** Mainframes use the first ones. Texts in the others are ASCII, and so pass for UTF-8. */
const impossibleEncodings = [
  ...['cp037', 'cp273', 'cp424', 'cp500', 'cp875', 'cp1026', 'cp1140'],
  ...['utf-7', 'hz-gb-2312', 'iso-2022-kr'],
]

const sampleBytes = 65_536

/**
 * Takes the lines that have bytes beyond ASCII. Names in Latin, which most lists have, say nothing
 * about the encoding, but hide the few words that do: with them, half as many lists are right.
 */
function findSample(bytes: Buffer): Buffer {
  const lines: Buffer[] = []
  let room = sampleBytes
  for (const line of splitLines(bytes)) {
    if (isAscii(line)) continue
    lines.push(line.subarray(0, room))
    room -= line.length
    if (room <= 0) break
  }
  return Buffer.concat(lines)
}

/** @returns undefined for what has no decoder here */
async function findDetectedEncoding(name: string | null): Promise<string | undefined> {
  if (name === null) return undefined
  try {
    return await findEncoding(name.replace(/^(shift_jis|euc-jis)[_-]2004$/i, findJapanese))
  } catch {
    return undefined
  }
}

/** The standards of 2004 add rare characters to those that have decoders. */
function findJapanese(_: string, name: string): string {
  return name.toLowerCase() === 'euc-jis' ? 'euc-jp' : 'shift_jis'
}

async function decodeStrictly(bytes: Buffer, encoding: string): Promise<string | undefined> {
  try {
    return await decodeBytes(bytes, encoding)
  } catch (error) {
    if (error instanceof UndecodableError) return undefined
    throw error
  }
}
