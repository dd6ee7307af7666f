/*
 * Finds the lines by which a person sees whether the likely encoding of a text is right.
 *
 * The first line with letters beyond ASCII is often not enough: Windows-1252 and Windows-1250 both
 * decode it to `Rosé`, but a later one to `Crème` and to `Crčme`. So the next likely encoding that
 * decodes the first line to the same text decides which line is shown, too.
 */
import { isAscii } from 'node:buffer'
import { truncate } from '../platform/escape.js'
import { splitLines, tryDecodeBytes } from './encoding.js'

/** A line that the likely encoding and another one decode to different texts. */
export interface DisputedLine {
  /** The number of the line in the input. */
  line: number
  bytes: Buffer
  text: string
  otherEncoding: string
  otherText: string
}

/**
 * Finds a line on which the likely encoding differs from the next likely one that decodes the first
 * line to the same text.
 *
 * @param bytes whole lines, of which the first has letters beyond ASCII
 * @param line the number of the first line
 * @param encodings the likely encoding, and the next likely ones
 * @returns undefined if the first line is enough
 */
export async function findDisputedLine(
  bytes: Buffer,
  line: number,
  [likelyEncoding, ...furtherEncodings]: readonly [string, ...string[]],
): Promise<DisputedLine | undefined> {
  const [firstLine = bytes, ...laterLines] = [...splitLines(bytes)].slice(0, maxComparedLines)
  const firstText = await tryDecodeBytes(firstLine, likelyEncoding)
  for (const otherEncoding of furtherEncodings.slice(0, maxComparedEncodings)) {
    if ((await tryDecodeBytes(firstLine, otherEncoding)) !== firstText) continue
    const difference = await findDifference(laterLines, likelyEncoding, otherEncoding)
    if (!difference) continue
    const { index, ...readings } = difference
    return { line: line + 1 + index, otherEncoding, ...readings }
  }
  return undefined
}

/** Describes how a line reads in both encodings, as a sentence. */
export function describeDisputedLine(disputedLine: DisputedLine): string {
  const { line, text, otherEncoding, otherText } = disputedLine
  const start = findDifferentCharacter(text, otherText)
  const excerpt = cutExcerpt(text, start)
  return `Line ${line} reads: ${excerpt} (in ${otherEncoding}: ${cutExcerpt(otherText, start)})`
}

/**
 * Cuts a line to the characters around an index, which by default is its first letter beyond ASCII.
 * A person sees by this letter whether the encoding is right.
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
    const text = await tryDecodeBytes(lineBytes, encoding)
    const otherText = await tryDecodeBytes(lineBytes, otherEncoding)
    const areBothReadable = text !== undefined && otherText !== undefined
    if (areBothReadable && text !== otherText) return { index, bytes: lineBytes, text, otherText }
  }
  return undefined
}

const maxComparedEncodings = 3
const maxComparedLines = 5000

function findDifferentCharacter(text: string, otherText: string): number {
  let index = 0
  while (index < text.length && text[index] === otherText[index]) index += 1
  return index
}
