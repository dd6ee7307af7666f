/*
 * Asks in which encoding the files of an import are.
 *
 * Few people know the name of an encoding, but everybody sees whether a text is right. So the
 * dialogue shows the beginning of the file in the likeliest encoding. If it is wrong, the dialogue
 * shows a list of encodings, each with one line of the file as the encoding decodes the line.
 */
import { assertDefined, createInputError, type PlantsError } from '../../errors.js'
import { readNames } from '../../formats/columns.js'
import { commonEncodings } from '../../formats/common-encodings.js'
import { assertEncoding, hasWorkbookStart } from '../../formats/detect.js'
import { decodeBytes } from '../../formats/encoding.js'
import { EncodingError } from '../../formats/encoding-error.js'
import { countFilledCells } from '../../formats/header.js'
import type { ImportInput } from '../../import/input-file.js'
import { type ImportPlan, isInputError, openContent } from '../../import/inputs.js'
import { findForeignLine, type SampleLine, sampleInput } from '../../import/sample-input.js'
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
  const { encodings: detectedEncodings, disputedLine } =
    failure instanceof EncodingError ? failure : noDetection
  // If the file is UTF-8 except for a damaged line, no encoding is right, and none is detected.
  let [encoding] = detectedEncodings
  if (encoding === undefined) return undefined
  const encodings = [...new Set([...detectedEncodings, ...commonEncodings.map(({ name }) => name)])]
  for (;;) {
    await showLines([`${input.name} is not UTF-8. Read as ${encoding}, it begins:`], io)
    await showLines(await describeBeginning(input, { ...plan, encoding }, io), io)
    await showLines(await readDisputedLine(disputedLine, encoding), io)
    if (await askIfTextIsRight(io)) break
    encoding = await askForReadableEncoding(encodings, input, plan, io)
  }
  await assertNoneIsUtf8(plan, io)
  return encoding
}

const noDetection: Pick<EncodingError, 'encodings' | 'disputedLine'> = {
  encodings: [],
  disputedLine: undefined,
}

/** Decodes the line on which the likely encodings differ, unless it is among the first rows. */
async function readDisputedLine(
  disputedLine: EncodingError['disputedLine'],
  encoding: string,
): Promise<string[]> {
  if (!disputedLine || disputedLine.line <= maxRows) return []
  const text = await decodeBytes(disputedLine.bytes, encoding)
  return [`${indent}line ${disputedLine.line}: ${truncate(text.trim(), maxCellLength)}`]
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
async function describeBeginning(input: ImportInput, plan: ImportPlan, io: Io): Promise<string[]> {
  const { heads } = await sampleInput(input, plan, io)
  const rows = heads[0]?.rows.records ?? []
  const lines = layOutRows(rows.slice(0, maxRows).map(readNames), io)
  if (lines.some((line) => /[^\0-\x7f]/.test(line))) return lines
  const foreignLine = await readForeignLine(input, plan, io)
  return foreignLine ? [...lines, `  line ${foreignLine.line}: ${foreignLine.text}`] : lines
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

async function readForeignLine(
  input: ImportInput,
  { encoding = 'utf-8' }: ImportPlan,
  io: Io,
): Promise<SampleLine | undefined> {
  const content = await openContent(input, io)
  try {
    return await findForeignLine(content, encoding)
  } finally {
    content.close()
  }
}

async function askForReadableEncoding(
  encodings: readonly string[],
  input: ImportInput,
  plan: ImportPlan,
  io: Io,
): Promise<string> {
  const readings = await readLineInEachEncoding(encodings, input, plan, io)
  for (;;) {
    const encoding = await askForEncoding(readings, io)
    if (await isReadable(input, { ...plan, encoding }, io)) return encoding
    await showLines(
      [`${input.name} is not ${encoding}: another line does not fit that encoding`],
      io,
    )
  }
}

/** Decodes the first line beyond ASCII in each encoding. An encoding that cannot is left out. */
async function readLineInEachEncoding(
  encodings: readonly string[],
  input: ImportInput,
  plan: ImportPlan,
  io: Io,
): Promise<EncodingReading[]> {
  const readings: EncodingReading[] = []
  for (const encoding of encodings) {
    const text = await tryForeignLine(input, { ...plan, encoding }, io)
    if (text === undefined) continue
    readings.push({ encoding, text })
  }
  return readings
}

async function tryForeignLine(
  input: ImportInput,
  plan: ImportPlan,
  io: Io,
): Promise<string | undefined> {
  try {
    return (await readForeignLine(input, plan, io))?.text
  } catch (error) {
    if (isInputError(error)) return undefined
    throw error
  }
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
    if (!isUtf8 || !(await readForeignLine(input, { inputs, ...plan }, io))) continue
    throw createInputError(
      `${input.name} is UTF-8, and ${assertDefined(firstInput).name} is not`,
      'Import each file with its own command',
    )
  }
}
