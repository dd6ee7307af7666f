import { assertDefined, inputError, type PlantsError } from '../../errors.js'
import { readNames } from '../../formats/columns.js'
import { EncodingError } from '../../formats/decode-text.js'
import { assertEncoding, hasWorkbookStart } from '../../formats/detect.js'
import { countFilledCells } from '../../formats/header.js'
import {
  type ImportInput,
  type ImportPlan,
  isInputError,
  openContent,
} from '../../import/inputs.js'
import { findForeignLine, type SampleLine, sampleInput } from '../../import/sample-input.js'
import { formatTable } from '../../output/text-table.js'
import { truncate } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { commonEncodings } from './common-encodings.js'
import { askForEncoding, askWhetherRight, type EncodingReading, tell } from './questions.js'

/**
 * Asks in which encoding the first file is, if it is not UTF-8. Only what decodes the whole file is
 * proposed.
 *
 * @returns undefined if there is nothing to ask
 */
export async function askForFileEncoding(plan: ImportPlan, io: Io): Promise<string | undefined> {
  const input = assertDefined(plan.inputs[0])
  if (plan.encoding !== undefined) return undefined
  const failure = await findReadError(input, plan, io)
  const detected = failure instanceof EncodingError ? failure.encodings : []
  // A text that is mostly UTF-8 has a damaged line: no other encoding reads it right.
  let [encoding] = detected
  if (encoding === undefined) return undefined
  const encodings = [...new Set([...detected, ...commonEncodings.map(({ name }) => name)])]
  for (;;) {
    await tell([`${input.name} is not UTF-8. Read as ${encoding}, it begins:`], io)
    await tell(await describeBeginning(input, { ...plan, encoding }, io), io)
    if (await askWhetherRight(io)) break
    encoding = await askForReadable(encodings, input, plan, io)
  }
  await assertNoneIsUtf8(plan, io)
  return encoding
}

/** Whether the bytes of the whole file are of the encoding of the plan. */
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

/** The first rows, and the first line with another letter than those of ASCII. */
async function describeBeginning(input: ImportInput, plan: ImportPlan, io: Io): Promise<string[]> {
  const { heads } = await sampleInput(input, plan, io)
  const rows = heads[0]?.rows.records ?? []
  const lines = layOutRows(rows.slice(0, maxRows).map(readNames), io)
  if (lines.some((line) => /[^\0-\x7f]/.test(line))) return lines
  const foreign = await readForeignLine(input, plan, io)
  return foreign ? [...lines, `  line ${foreign.line}: ${foreign.text}`] : lines
}

const maxRows = 4

function layOutRows(rows: readonly string[][], io: Io): string[] {
  const width = Math.max(0, ...rows.map(countFilledCells))
  const count = Math.min(width, Math.max(2, Math.floor(io.stderr.columns / minColumnWidth)))
  const [titles = [], ...others] = rows.map((row) =>
    Array.from({ length: count }, (_, column) => truncate(row[column] ?? '', maxCellLength)),
  )
  const terminal = { isTerminal: true, columns: io.stderr.columns - indent.length }
  const lay = formatTable<string[]>(titles, (row) => row, { faint: (text) => text }, terminal)
  return lay(others)
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

async function askForReadable(
  encodings: readonly string[],
  input: ImportInput,
  plan: ImportPlan,
  io: Io,
): Promise<string> {
  const readings = await readInEach(encodings, input, plan, io)
  for (;;) {
    const encoding = await askForEncoding(readings, io)
    if (await isReadable(input, { ...plan, encoding }, io)) return encoding
    await tell([`${input.name} is not ${encoding}: a line below has other bytes`], io)
  }
}

/** Reads the same line in each encoding that has its bytes. */
async function readInEach(
  encodings: readonly string[],
  input: ImportInput,
  plan: ImportPlan,
  io: Io,
): Promise<EncodingReading[]> {
  const readings: EncodingReading[] = []
  for (const encoding of encodings) {
    const text = await tryForeignLine(input, { ...plan, encoding }, io)
    if (text === undefined) continue
    const { languages = '' } = commonEncodings.find(({ name }) => name === encoding) ?? {}
    readings.push({ encoding, languages, text })
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

/** Another encoding would read UTF-8 without an error, but as wrong letters. */
async function assertNoneIsUtf8({ inputs, ...plan }: ImportPlan, io: Io): Promise<void> {
  const [first, ...others] = inputs
  for (const input of others) {
    const isUtf8 = await isReadable(input, { inputs, ...plan }, io)
    if (!isUtf8 || !(await readForeignLine(input, { inputs, ...plan }, io))) continue
    throw inputError(
      `${input.name} is UTF-8, and ${assertDefined(first).name} is not`,
      'Import each file with its own command',
    )
  }
}
