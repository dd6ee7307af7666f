/*
 * Finds the likely encodings of bytes that are not UTF-8. An import never decodes by a guess: it
 * shows the guess to a person, who then adds `--encoding`.
 *
 * jschardet ranks encodings by how frequent the letters are that they give in the languages of the
 * world. It is loaded only here, because it takes 0.1 s and more memory than an import. Each
 * encoding that it proposes is tried: one that cannot decode all bytes is left out. jschardet was
 * made for web pages, so its order is corrected for what plant lists have and web pages have not:
 * few words, and names in Latin between them (`rankReading`, `findSample`).
 */
import { isAscii } from 'node:buffer'
import { decodeBytes, findEncoding, splitLines, UndecodableError } from './encoding.js'

/**
 * @param bytes a text in lines
 * @returns names for `--encoding`, the most likely one first. Each of them decodes all bytes, and
 * to another text than the names before it. The array is empty if no encoding does.
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

/** Whether most syllables are among the 2,350 of EUC-KR. Those of a Korean text are. */
function hasCommonSyllables(letters: string): boolean {
  const syllables = Array.from(letters)
  const commonSyllables = listCommonSyllables()
  const knownSyllables = syllables.filter((syllable) => commonSyllables.has(syllable))
  return knownSyllables.length >= 0.8 * syllables.length
}

/** EUC-KR has its syllables in the rows 0xB0 to 0xC8, of 94 characters each. */
function listCommonSyllables(): Set<string> {
  const bytes = Array.from({ length: 25 * 94 }, (_, index) => [
    0xb0 + Math.floor(index / 94),
    0xa1 + (index % 94),
  ])
  return new Set(new TextDecoder('euc-kr').decode(Uint8Array.from(bytes.flat())))
}

/**
 * Matches text whose letters are all Hangul. In a Korean encoding, few Chinese texts read like
 * this, and all Korean ones do.
 */
const koreanText = /^\p{sc=Hangul}{12,}$/u

/** Programs for Windows write these characters into texts of every language. */
const typographicCharacters = /[\xa0“”‘’„–—…•€×°™]/g

/**
 * Matches a capital that is not one of ASCII. In x-mac-ce, `Königskerze` in Windows-1252 reads as
 * `KŲnigskerze`. Irish has such a capital after a single small letter, as in `hÉireann`.
 */
const accentedCapital = '(?![A-Z])(?=\\p{sc=Latin})\\p{Lu}'

/**
 * Matches what no list of plants has: a word with letters of two alphabets, a symbol or an accented
 * capital within a word, a control character, a box drawing or a ligature. The text was read in a
 * wrong encoding.
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
 * Ranks encodings that give the same text by how many programs write them. It matters which one a
 * person gets to know: for another file, or with another line, they may differ.
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
  // A text in these has only ASCII bytes, so it is valid UTF-8 and does not get here.
  'utf-7',
  'hz-gb-2312',
  'iso-2022-kr',
]

const sampleBytes = 65_536

/**
 * Takes only the lines with bytes beyond ASCII. Most lists have botanical names in Latin, which say
 * nothing about the encoding, but outweigh the few words that do. With those lines, only half as
 * many lists would be detected correctly.
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
    return await findEncoding(name.replace(/^(shift_jis|euc-jis)[_-]2004$/i, findJapanese))
  } catch {
    return undefined
  }
}

/** The Japanese standards of 2004 add rare characters to older ones, which have decoders here. */
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
