/*
 * Asks in which encoding the files of an import are.
 *
 * Few people know the name of an encoding, but everybody sees whether a text is right. So the
 * dialogue shows the beginning of the file in the likeliest encoding. If it is wrong, the dialogue
 * shows a list of encodings, each with one line of the file as the encoding decodes the line.
 */
import { isAscii } from 'node:buffer'
import { assertDefined, createInputError, type PlantsError } from '../../errors.js'
import { readNames } from '../../formats/columns.js'
import { commonEncodings } from '../../formats/common-encodings.js'
import { assertEncoding, hasWorkbookStart } from '../../formats/detect.js'
import { tryDecodeBytes } from '../../formats/encoding.js'
import { EncodingError, type ForeignLine } from '../../formats/encoding-error.js'
import { countFilledCells } from '../../formats/header.js'
import type { ImportInput } from '../../import/input-file.js'
import { type ImportPlan, isInputError, openContent } from '../../import/inputs.js'
import { sampleInput } from '../../import/sample-input.js'
import { formatTable } from '../../output/text-table.js'
import { truncate } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { askForEncoding, askIfTextIsRight, type EncodingReading, showLines } from './questions.js'

/**
 * Asks in which encoding the first file is, if it is not UTF-8. An encoding is accepted only if it
 * decodes the whole file.
 *
 * @returns undefined if there is nothing to ask
 */
export async function askForFileEncoding(plan: ImportPlan, io: Io): Promise<string | undefined> {
  const input = assertDefined(plan.inputs[0])
  if (plan.encoding !== undefined) return undefined
  const failure = await findReadError(input, plan, io)
  if (!(failure instanceof EncodingError) || !failure.foreignLine) return undefined
  const { encodings: likelyEncodings, foreignLine } = failure
  const commonNames = commonEncodings.map(({ name }) => name)
  const readings = await readInEachEncoding(foreignLine, [
    ...new Set([...likelyEncodings, ...commonNames]),
  ])
  let encoding = likelyEncodings[0] ?? (await askForReadableEncoding(readings, input, plan, io))
  for (;;) {
    await showLines([`${input.name} is not UTF-8. Read as ${encoding}, it begins:`], io)
    const beginning = await describeBeginning(input, { ...plan, encoding }, foreignLine, io)
    await showLines(beginning, io)
    if (await askIfTextIsRight(io)) break
    encoding = await askForReadableEncoding(readings, input, plan, io)
  }
  await assertNoneIsUtf8(plan, io)
  return encoding
}

/** Whether the encoding of the plan decodes the whole file. */
async function isReadable(input: ImportInput, plan: ImportPlan, io: Io): Promise<boolean> {
  return (await findReadError(input, plan, io)) === undefined
}

async function findReadError(
  input: ImportInput,
  plan: ImportPlan,
  io: Io,
): Promise<PlantsError | undefined> {
  const content = await openContent(input, io)
  try {
    if (!hasWorkbookStart(content)) await assertEncoding(content, plan)
    return undefined
  } catch (error) {
    if (isInputError(error)) return error
    throw error
  } finally {
    content.close()
  }
}

/**
 * Describes the first rows. Most encodings decode letters of ASCII alike, so if the rows have only
 * such letters, the first line with another letter is added.
 */
async function describeBeginning(
  input: ImportInput,
  plan: ImportPlan & { encoding: string },
  foreignLine: ForeignLine,
  io: Io,
): Promise<string[]> {
  const { heads } = await sampleInput(input, plan, io)
  const rows = heads[0]?.rows.records ?? []
  const lines = layOutRows(rows.slice(0, maxRows).map(readNames), io)
  if (lines.some((line) => /[^\0-\x7f]/.test(line))) return lines
  const text = await tryDecodeBytes(foreignLine.bytes, plan.encoding)
  return text === undefined ? lines : [...lines, `  line ${foreignLine.line}: ${text.trim()}`]
}

const maxRows = 4

function layOutRows(rows: readonly string[][], io: Io): string[] {
  const width = Math.max(0, ...rows.map(countFilledCells))
  const count = Math.min(width, Math.max(2, Math.floor(io.stderr.columns / minColumnWidth)))
  const [titles = [], ...tableRows] = rows.map((row) =>
    Array.from({ length: count }, (_, column) => truncate(row[column] ?? '', maxCellLength)),
  )
  const terminal = { isTerminal: true, columns: io.stderr.columns - indent.length }
  const formatRows = formatTable<string[]>(
    titles,
    (row) => row,
    { faint: (text) => text },
    terminal,
  )
  return formatRows(tableRows)
    .split('\n')
    .filter(Boolean)
    .map((line) => indent + line)
}

const indent = '  '
const minColumnWidth = 12
const maxCellLength = 60

async function askForReadableEncoding(
  readings: readonly EncodingReading[],
  input: ImportInput,
  plan: ImportPlan,
  io: Io,
): Promise<string> {
  for (;;) {
    const encoding = await askForEncoding(readings, io)
    if (await isReadable(input, { ...plan, encoding }, io)) return encoding
    await showLines(
      [`${input.name} is not ${encoding}: another line does not fit that encoding`],
      io,
    )
  }
}

/** Decodes a line in each encoding. An encoding that cannot decode it is left out. */
async function readInEachEncoding(
  { bytes }: ForeignLine,
  encodings: readonly string[],
): Promise<EncodingReading[]> {
  const readings: EncodingReading[] = []
  for (const encoding of encodings) {
    const text = await tryDecodeBytes(bytes, encoding)
    if (text !== undefined) readings.push({ encoding, text: text.trim() })
  }
  return readings
}

/**
 * Checks that no further file is UTF-8. All files are read in the same encoding, and most encodings
 * decode UTF-8 without an error, but to wrong letters.
 *
 * @throws {PlantsError} `input` if a further file is UTF-8, and not only ASCII
 */
async function assertNoneIsUtf8({ inputs, ...plan }: ImportPlan, io: Io): Promise<void> {
  const [firstInput, ...furtherInputs] = inputs
  for (const input of furtherInputs) {
    const isUtf8 = await isReadable(input, { inputs, ...plan }, io)
    if (!isUtf8 || (await isAsciiFile(input, io))) continue
    throw createInputError(
      `${input.name} is UTF-8, and ${assertDefined(firstInput).name} is not`,
      'Import each file with its own command',
    )
  }
}

async function isAsciiFile(input: ImportInput, io: Io): Promise<boolean> {
  const { blocks, close } = await openContent(input, io)
  try {
    for await (const block of blocks) if (!isAscii(block)) return false
    return true
  } finally {
    close()
  }
}
