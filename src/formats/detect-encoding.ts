/*
 * Finds the likely encodings of bytes that are not UTF-8. An import never decodes by a guess: the
 * error shows the guess to a person, who then adds `--encoding`.
 *
 * jschardet decodes the bytes in many encodings, and ranks the encodings by how frequent the
 * decoded letters are in the languages of the world. It is loaded only here, because that takes
 * 0.1 s and more memory than an import. An encoding that cannot decode all bytes is left out.
 *
 * jschardet was made for web pages. Lists of plants have fewer words, and botanical names in Latin
 * between them, so `findSample` leaves out lines in ASCII, and `rankReading` corrects the order.
 */
import { isAscii } from 'node:buffer'
import { decodeBytes, findEncoding, splitLines, UndecodableError } from './encoding.js'

/**
 * @param bytes a text in lines
 * @returns the names for `--encoding`, the most likely one first. Each encoding decodes all bytes,
 * and no two of them decode the bytes to the same text. The array may be empty.
 */
export async function detectEncodings(bytes: Buffer): Promise<readonly string[]> {
  const { detectAll } = await import('jschardet')
  const candidates = detectAll(findSample(bytes), {
    minimumThreshold: 0,
    excludeEncodings: [...impossibleEncodings],
  })
  const namesByText = new Map<string, string>()
  const detectedNames = candidates.map(({ encoding }) => encoding)
  // jschardet does not propose CP949 if a syllable is not one of EUC-KR, although it should: CP949
  // was made for these.
  for (const detectedName of [...detectedNames, 'cp949']) {
    const name = await findDetectedEncoding(detectedName)
    const text = name && (await decodeStrictly(bytes, name))
    if (name === undefined || text === undefined) continue
    const knownName = namesByText.get(text)
    const isMoreUsual = knownName === undefined || rankByUse(name) < rankByUse(knownName)
    if (isMoreUsual) namesByText.set(text, name)
  }
  const readings = [...namesByText].map(([text, name]) => ({ name, rank: rankReading(text, name) }))
  return readings.toSorted((a, b) => a.rank - b.rank).map(({ name }) => name)
}

/**
 * Corrects the order for short lists, whose few letters say little by their frequency. For example,
 * `Südbeet` in Windows-1252 reads as `Sьdbeet` in a Cyrillic encoding: all its letters are frequent
 * in Russian, but no word has letters of two alphabets.
 */
function rankReading(text: string, encoding: string): number {
  if (unlikelyText.test(text)) return ranks.unlikely
  const letters = text.replace(typographicCharacters, '').replace(/[\0-\x7f]/g, '')
  const isWindowsText = letters === '' && encoding.startsWith('windows-')
  const isKorean = koreanText.test(letters) && hasCommonSyllables(letters)
  return isWindowsText || isKorean ? ranks.likely : ranks.possible
}

const ranks = { likely: 0, possible: 1, unlikely: 2 }

/** Whether most syllables are among the 2,350 syllables of EUC-KR, as in any Korean text. */
function hasCommonSyllables(letters: string): boolean {
  const syllables = Array.from(letters)
  const commonSyllables = listCommonSyllables()
  const knownSyllables = syllables.filter((syllable) => commonSyllables.has(syllable))
  return knownSyllables.length >= 0.8 * syllables.length
}

/** Lists the syllables of EUC-KR. They are in its rows 0xB0 to 0xC8, of 94 characters each. */
function listCommonSyllables(): Set<string> {
  const bytes = Array.from({ length: 25 * 94 }, (_, index) => [
    0xb0 + Math.floor(index / 94),
    0xa1 + (index % 94),
  ])
  return new Set(new TextDecoder('euc-kr').decode(Uint8Array.from(bytes.flat())))
}

/**
 * Matches a string that has only letters of Hangul. If a Korean encoding decodes a text to such a
 * string, the text is most likely Korean: a Chinese text rarely gives one.
 */
const koreanText = /^\p{sc=Hangul}{12,}$/u

/** Programs for Windows write these characters into texts of every language. */
const typographicCharacters = /[\xa0“”‘’„–—…•€×°™]/g

/**
 * Matches a Latin capital beyond ASCII. Within a word, it is a sign of a wrong encoding:
 * `Königskerze` in Windows-1252 reads as `KŲnigskerze` in x-mac-ce. But an Irish word may have such
 * a capital after one small letter, as in `hÉireann`.
 */
const accentedCapital = '(?![A-Z])(?=\\p{sc=Latin})\\p{Lu}'

/**
 * Matches a text that was decoded in a wrong encoding. No list of plants has a word with letters of
 * two alphabets, a symbol or an accented capital within a word, a control character, a box drawing
 * or a ligature.
 */
const unlikelyText = RegExp(
  [
    '[A-Za-z][\\p{sc=Cyrillic}\\p{sc=Greek}\\p{sc=Hebrew}\\p{sc=Arabic}\\p{sc=Thai}]',
    '[\\p{sc=Cyrillic}\\p{sc=Greek}\\p{sc=Hebrew}\\p{sc=Arabic}\\p{sc=Thai}][A-Za-z]',
    '\\p{L}[“”„…•\\p{Sk}\\p{Sm}\\p{Sc}\\p{So}]\\p{L}',
    `(?:\\p{L}\\p{Ll}${accentedCapital}|\\p{Lu}${accentedCapital}\\p{Ll})`,
    '[\\x80-\\x9f\\u2500-\\u25ff\\ufb00-\\ufb06]',
  ].join('|'),
  'u',
)

/**
 * Ranks encodings that decode the bytes to the same text. The encoding that most programs write is
 * first, because another file of the same program may need just this encoding.
 */
function rankByUse(encoding: string): number {
  if (encoding === 'windows-1252') return 0
  return encoding.startsWith('windows-') ? 1 : 2
}

const impossibleEncodings = [
  // Only mainframes use these.
  'cp037',
  'cp273',
  'cp424',
  'cp500',
  'cp875',
  'cp1026',
  'cp1140',
  // Only terminals of HP-UX used this.
  'hp-roman8',
  // A text in one of these has only bytes of ASCII, so it is valid UTF-8, and is not examined.
  'utf-7',
  'hz-gb-2312',
  'iso-2022-kr',
]

const sampleBytes = 65_536

/**
 * Returns only the lines with bytes beyond ASCII. Most lists have botanical names in Latin. Such
 * names say nothing about the encoding, but outnumber the words with other letters. With lines in
 * ASCII, the encoding of only half as many lists would be detected.
 */
function findSample(bytes: Buffer): Buffer {
  const lines: Buffer[] = []
  let remainingBytes = sampleBytes
  for (const line of splitLines(bytes)) {
    if (isAscii(line)) continue
    lines.push(line.subarray(0, remainingBytes))
    remainingBytes -= line.length
    if (remainingBytes <= 0) break
  }
  return Buffer.concat(lines)
}

/** @returns undefined for a name of jschardet for which there is no decoder here */
async function findDetectedEncoding(name: string | null): Promise<string | undefined> {
  if (name === null) return undefined
  try {
    return await findEncoding(name.replace(/^(shift_jis|euc-jis)[_-]2004$/i, findOlderJapaneseName))
  } catch {
    return undefined
  }
}

/** The Japanese standards of 2004 add rare characters to older ones, which have decoders here. */
function findOlderJapaneseName(_: string, name: string): string {
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
