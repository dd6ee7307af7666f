/* The questions of the import dialogue, in words and choices that fit in a terminal. */

import { PlantsError } from '../../errors.js'
import type { ColumnQuestion, OtherAnswer } from '../../fields/column-questions.js'
import { readNames } from '../../fields/columns.js'
import { findLikeliestHeader, rateTable } from '../../fields/header.js'
import type { Column } from '../../fields/sample.js'
import { describeEncoding } from '../../formats/common-encodings.js'
import type { TableHead } from '../../formats/reader.js'
import { groupDigits } from '../../plant/plant.js'
import { toPrintable, truncate } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { askToChoose, type Choice } from '../prompts.js'
import type { ImportAnswers } from './answers.js'

const otherAnswers: Readonly<Record<OtherAnswer, string>> = {
  noTag: 'No tag',
  noRest: 'No other column',
  byName: 'My list has no ids',
  firstRow: 'The first row is already a plant',
}

export function askForColumn(
  { message, choices: answers, guess }: ColumnQuestion,
  io: Io,
): Promise<Column | OtherAnswer> {
  const choices = answers.map((answer) =>
    typeof answer === 'string'
      ? { value: answer, name: otherAnswers[answer] }
      : {
          value: answer,
          name: truncate(describeColumn(answer), io.stderr.columns - 4),
          short: getColumnLabel(answer),
        },
  )
  return askToChoose<Column | OtherAnswer>({ message, choices, initial: guess }, io)
}

/** Describes a column by its name and its first values, such as `Nr. (31, 32, 33…)`. */
function describeColumn(column: Column): string {
  const values = [...new Set(column.values)]
  const firstValues = values.slice(0, maxValues).map((value) => truncate(value, maxValueLength))
  const ellipsis = values.length > maxValues ? '…' : ''
  const list = firstValues.length > 0 ? firstValues.join(', ') + ellipsis : 'empty'
  return `${getColumnLabel(column)} (${list})`
}

const maxValues = 3
const maxValueLength = 20

function getColumnLabel({ name, number }: Column): string {
  return name === '' ? `Column ${number}` : name
}

/** Asks for the sheet of a workbook in which none has the columns. */
export function askForSheet(heads: readonly TableHead[], io: Io): Promise<string> {
  const ratings = heads.map(({ rows }) => rateTable(rows))
  const choices = heads.map(({ sheet = '', rows }) => {
    const names = readNames(rows[findLikeliestHeader(rows)]).filter(Boolean)
    const name = truncate(`${sheet} (${names.join(', ')})`, io.stderr.columns - 4)
    return { value: sheet, name, short: sheet }
  })
  const initial = choices[ratings.indexOf(Math.max(...ratings))]?.value
  return askToChoose({ message: 'Which sheet has the plants?', choices, initial }, io)
}

/** Resolves to true if the text is right, and to false to choose another encoding. */
export async function askIfTextIsRight(io: Io): Promise<boolean> {
  const yes = { value: 'yes', name: 'Yes' }
  const other = { value: 'other', name: 'No, another encoding…' }
  return (await askToChoose({ message: 'Is that right?', choices: [yes, other] }, io)) === 'yes'
}

/** An encoding, and a line of the file as this encoding decodes the line. */
export interface EncodingReading {
  encoding: string
  text: string
}

export function askForEncoding(readings: readonly EncodingReading[], io: Io): Promise<string> {
  const choices = readings.map(({ encoding, text }) => {
    const description = describeEncoding(encoding)
    const label = description === undefined ? encoding : `${encoding} (${description})`
    return {
      value: encoding,
      name: truncate(`${label}: ${text}`, io.stderr.columns - 4),
      short: encoding,
    }
  })
  return askToChoose({ message: 'Which encoding?', choices }, io)
}

/**
 * @param initial the answer that Enter gives
 * @throws {PlantsError} `interrupted` if the answer is no
 */
export async function askToImport(message: string, initial: 'yes' | 'no', io: Io): Promise<void> {
  const yes = { value: 'yes', name: 'Yes' }
  // A person who types "no" selects this. Otherwise Enter would take the answer above, yes.
  const no = { value: 'no', name: 'No' }
  const answer = await askToChoose({ message, choices: [yes, no], initial }, io)
  if (answer === 'no') throw new PlantsError('interrupted', 'Stopped, nothing was imported')
}

/**
 * Writes lines that belong to a question, and so are not hidden by `--quiet`. If the terminal has
 * closed, the question notices that.
 */
export async function showLines(lines: readonly string[], io: Io): Promise<void> {
  await io.stderr.log(lines.map((line) => `${toPrintable(line, io)}\n`).join(''))
}

/** How a list and the plants of a store differ. */
export interface Comparison {
  /** How many records have a plant that equals them. */
  equal: number
  /** How many records have a plant that differs from them. */
  differing: number
  /**
   * How many plants of the store the list lacks; undefined unless it seems to be the list of the
   * whole store: it has at least half of its plants, and none of its records is rejected.
   */
  missing: number | undefined
}

/**
 * Asks what to do with the plants that the store has already. Enter changes them only if most of
 * them equal their records: another list, whose numbers are the same by chance, changes nothing.
 */
export function askForPolicy(
  { equal, differing, missing }: Comparison,
  io: Io,
): Promise<ImportAnswers> {
  const [changes, deletions] = [groupDigits(differing), groupDigits(missing ?? 0)]
  const change: Choice<ImportAnswers> = {
    value: { ifExists: 'update' },
    name: `Change those that differ (${changes})`,
  }
  const sync: Choice<ImportAnswers> = {
    value: { ifExists: 'update', sync: true },
    name: `Make the store equal to the list (change ${changes}, delete ${deletions})`,
  }
  const leave: Choice<ImportAnswers> = {
    value: { ifExists: 'skip' },
    name: 'Leave them as they are',
  }
  const choices = [
    ...(differing > 0 ? [change] : []),
    ...(missing === undefined ? [] : [sync]),
    leave,
  ]
  const isSameList = differing > 0 && equal >= differing
  const initial = (isSameList ? change : leave).value
  const lackClause = missing === undefined ? '' : ` Plants that the list lacks: ${deletions}.`
  const message = `Plants that differ from the list: ${changes}.${lackClause} What should be done?`
  return askToChoose({ message, choices, initial }, io)
}
