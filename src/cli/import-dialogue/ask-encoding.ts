/*
 * Asks in which encoding the files of an import are.
 *
 * Few people know the name of an encoding, but everybody sees whether a text is right. So the
 * dialogue shows the beginning of the file in the likeliest encoding. If it is wrong, the dialogue
 * shows a list of encodings, each with one line of the file as the encoding decodes the line.
 */
import { assertDefined, type PlantsError } from '../../errors.js'
import { readNames } from '../../fields/columns.js'
import { createHeaderFinder } from '../../fields/header.js'
import { commonEncodings } from '../../formats/common-encodings.js'
import { assertEncoding, hasWorkbookStart } from '../../formats/detect.js'
import { tryDecodeBytes } from '../../formats/encoding.js'
import { EncodingError, type ForeignLine } from '../../formats/encoding-error.js'
import { type ImportPlan, isInputError, useContent } from '../../import/inputs.js'
import { truncate } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { sampleInput } from './answers.js'
import { askForEncoding, askIfTextIsRight, type EncodingReading, showLines } from './questions.js'

/**
 * Asks in which encoding the first file is, if it is not UTF-8.
 *
 * @returns undefined if there is nothing to ask
 */
export async function askForFileEncoding(plan: ImportPlan, io: Io): Promise<string | undefined> {
  if (plan.encoding !== undefined) return undefined
  const failure = await findReadError(plan, io)
  if (!(failure instanceof EncodingError) || !failure.foreignLine) return undefined
  const { encodings, foreignLine } = failure
  const { name } = assertDefined(plan.inputs[0])
  const readings = await readInEachEncoding(foreignLine, encodings)
  const [encoding] = encodings
  if (encoding !== undefined) {
    await showLines([`${name} is not UTF-8. Read as ${encoding}, it begins:`], io)
    await showLines(await describeBeginning({ ...plan, encoding }, foreignLine, io), io)
    if (await askIfTextIsRight(io)) return encoding
  }
  return askForEncoding(readings, io)
}

/** Reads the whole file, and returns why it cannot be read. */
async function findReadError(plan: ImportPlan, io: Io): Promise<PlantsError | undefined> {
  try {
    await useContent(assertDefined(plan.inputs[0]), io, async (content) => {
      if (!hasWorkbookStart(content)) await assertEncoding(content, plan, createHeaderFinder(plan))
    })
    return undefined
  } catch (error) {
    if (isInputError(error)) return error
    throw error
  }
}

/**
 * Describes the first rows. Most encodings decode letters of ASCII alike, so if the rows have only
 * such letters, the first line with another letter is added.
 */
async function describeBeginning(
  plan: ImportPlan & { encoding: string },
  foreignLine: ForeignLine,
  io: Io,
): Promise<string[]> {
  const { sample } = await sampleInput(plan, io)
  const rows = sample.heads[0]?.rows.slice(0, maxRows) ?? []
  const lines = rows.map((row) =>
    truncate(`  ${readNames(row).filter(Boolean).join('  ')}`, io.stderr.columns - 1),
  )
  if (lines.some((line) => /[^\0-\x7f…]/.test(line))) return lines
  const text = await tryDecodeBytes(foreignLine.bytes, plan.encoding)
  return text === undefined ? lines : [...lines, `  line ${foreignLine.line}: ${text.trim()}`]
}

const maxRows = 4

/** Decodes a line in each encoding. An encoding that cannot decode it is left out. */
async function readInEachEncoding(
  { bytes }: ForeignLine,
  likelyEncodings: readonly string[],
): Promise<EncodingReading[]> {
  const readings: EncodingReading[] = []
  const commonNames = commonEncodings.map(({ name }) => name)
  for (const encoding of new Set([...likelyEncodings, ...commonNames])) {
    const text = await tryDecodeBytes(bytes, encoding)
    if (text !== undefined) readings.push({ encoding, text: text.trim() })
  }
  return readings
}
