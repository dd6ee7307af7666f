/*
 * Finds the likely encodings of bytes that are not UTF-8. An import never decodes by a guess: the
 * error shows the guess to a person, who then adds `--encoding`.
 *
 * jschardet decodes the bytes in many encodings, and ranks the encodings by how frequent the
 * decoded letters are in the languages of the world. It is loaded only here, because that takes
 * 0.1 s and more memory than an import. An encoding that cannot decode all bytes is left out.
 *
 * jschardet was made for web pages. Lists of plants have fewer words, and botanical names in Latin
 * between them, so `findSample` leaves out lines in ASCII, and `rank-readings.ts` corrects the
 * order.
 */
import { isAscii } from 'node:buffer'
import { commonEncodings } from './common-encodings.js'
import { findEncoding, isUnicode, splitLines, tryDecodeBytes } from './encoding.js'
import { type Reading, rankByUse, sortReadings } from './rank-readings.js'

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
  // jschardet leaves out usual encodings if they have rare letters, such as 薔薇 in Shift_JIS.
  const confidences = new Map<string, number>()
  for (const { name } of commonEncodings)
    if (!isUnicode(name)) confidences.set(await findEncoding(name), 0)
  for (const { encoding: detectedName, confidence } of candidates) {
    const encoding = await findDetectedEncoding(detectedName)
    if (encoding === undefined) continue
    confidences.set(encoding, Math.max(confidence, confidences.get(encoding) ?? 0))
  }
  const readings = new Map<string, Reading>()
  for (const [encoding, confidence] of confidences) {
    const text = await tryDecodeBytes(bytes, encoding)
    if (text === undefined) continue
    readings.set(text, chooseReading({ encoding, text, confidence }, readings.get(text)))
  }
  return sortReadings([...readings.values()]).map(({ encoding }) => encoding)
}

/**
 * Chooses one of two encodings that decode the bytes to the same text. It is the one that more
 * programs write, because another file of the same program may need just this encoding.
 */
function chooseReading(reading: Reading, sameReading: Reading | undefined): Reading {
  if (sameReading === undefined) return reading
  const isMoreUsual = rankByUse(reading.encoding) < rankByUse(sameReading.encoding)
  return isMoreUsual ? reading : sameReading
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
