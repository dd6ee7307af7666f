/*
 * Finds the lines by which a person sees whether the likely encoding of a text is right.
 *
 * The first line with letters beyond ASCII is often not enough: Windows-1252 and Windows-1250 both
 * decode it to `Rosé`, but a later one to `Crème` and to `Crčme`. So the next likely encoding that
 * decodes the first line to the same text decides which line is shown, too.
 */
import { isAscii } from 'node:buffer'
import { truncate } from '../platform/escape.js'
import { decodeBytes, splitLines, UndecodableError } from './encoding.js'

/**
 * Describes how the lines read in the likely encoding, as the end of a sentence.
 *
 * @param bytes whole lines, of which the first has letters beyond ASCII
 * @param line the number of the first line
 * @param encodings the likely encoding, and the next likely ones
 */
export async function describeTellingLines(
  bytes: Buffer,
  line: number,
  encodings: readonly [string, ...string[]],
): Promise<string> {
  const [likelyEncoding, ...furtherEncodings] = encodings
  const lines = [...splitLines(bytes)].slice(0, maxComparedLines)
  const [firstLine = bytes, ...laterLines] = lines
  const firstText = await decodeLine(firstLine, likelyEncoding)
  const description = `line ${line} reads: ${cutExcerpt(firstText ?? '')}`
  for (const encoding of furtherEncodings.slice(0, maxComparedEncodings)) {
    if ((await decodeLine(firstLine, encoding)) !== firstText) continue
    const difference = await findDifference(laterLines, likelyEncoding, encoding)
    if (!difference) continue
    const { index, text, otherText } = difference
    const start = findDifferentCharacter(text, otherText)
    return (
      `${description}. Line ${line + 1 + index} reads: ${cutExcerpt(text, start)} ` +
      `(in ${encoding}: ${cutExcerpt(otherText, start)})`
    )
  }
  return description
}

/**
 * Cuts a line to the characters around an index, which by default is its first letter beyond ASCII.
 * By this letter, a person sees whether the encoding is right.
 */
export function cutExcerpt(lineText: string, index = lineText.search(/[^\0-\x7f]/)): string {
  const start = Math.max(0, index - excerptLength / 2)
  const excerpt = lineText.slice(start).trim().replaceAll('\t', '  ')
  return `${start === 0 ? '' : '…'}${truncate(excerpt, excerptLength)}`
}

const excerptLength = 60

/** Finds the first line that two encodings decode to different texts. */
async function findDifference(lines: readonly Buffer[], encoding: string, otherEncoding: string) {
  for (const [index, lineBytes] of lines.entries()) {
    if (isAscii(lineBytes)) continue
    const text = await decodeLine(lineBytes, encoding)
    const otherText = await decodeLine(lineBytes, otherEncoding)
    const areBothReadable = text !== undefined && otherText !== undefined
    if (areBothReadable && text !== otherText) return { index, text, otherText }
  }
  return undefined
}

const maxComparedEncodings = 3
const maxComparedLines = 5000

/** Returns undefined for a line that cannot be decoded without the lines before it. */
async function decodeLine(lineBytes: Buffer, encoding: string): Promise<string | undefined> {
  try {
    return await decodeBytes(lineBytes, encoding)
  } catch (error) {
    if (error instanceof UndecodableError) return undefined
    throw error
  }
}

function findDifferentCharacter(text: string, otherText: string): number {
  let index = 0
  while (index < text.length && text[index] === otherText[index]) index += 1
  return index
}
