/* The questions of the import dialogue, in words and choices that fit in a terminal. */

import { PlantsError } from '../../errors.js'
import { foldName } from '../../formats/columns.js'
import { describeEncoding, listLanguages } from '../../formats/common-encodings.js'
import { toPrintable, truncate } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { askToChoose, askToSearch, type Choice } from '../prompts.js'
import type { SampleColumn } from './guess-columns.js'

/** An answer that names no column. */
type OtherAnswer = 'none' | 'byName' | 'byRow' | 'firstRow' | 'stop'

/** The choices that name no column. */
export const otherChoices = {
  noTag: { value: 'none', name: 'No tag' },
  noRest: { value: 'none', name: 'No other column' },
  byName: { value: 'byName', name: 'No id: one plant for each name' },
  byRow: { value: 'byRow', name: 'No id: one plant for each row' },
  firstRow: { value: 'firstRow', name: 'The first row is a plant already' },
  stop: { value: 'stop', name: 'Stop' },
} satisfies Record<string, Choice<OtherAnswer>>

/** @param guess the answer that Enter gives */
export function askForColumn(
  message: string,
  answers: readonly (SampleColumn | Choice<OtherAnswer>)[],
  guess: SampleColumn | OtherAnswer | undefined,
  io: Io,
): Promise<SampleColumn | OtherAnswer> {
  const choices = answers.map((answer) =>
    'value' in answer
      ? answer
      : {
          value: answer,
          name: truncate(describeColumn(answer), io.stderr.columns - 4),
          short: getColumnLabel(answer),
        },
  )
  return ask<SampleColumn | OtherAnswer>(message, choices, guess, io)
}

/** Describes a column by its name and its first values, such as `Nr. (31, 32, 33…)`. */
function describeColumn(column: SampleColumn): string {
  const values = [...new Set(column.values)]
  const firstValues = values.slice(0, maxValues).map((value) => truncate(value, maxValueLength))
  const ellipsis = values.length > maxValues ? '…' : ''
  const list = firstValues.length > 0 ? firstValues.join(', ') + ellipsis : 'empty'
  return `${getColumnLabel(column)} (${list})`
}

const maxValues = 3
const maxValueLength = 20

function getColumnLabel({ name, number }: SampleColumn): string {
  return name === '' ? `Column ${number}` : name
}

/** @param sheets the names of the sheets, each with the columns of its likeliest header */
export function askForSheet(
  sheets: readonly { name: string; headerTexts: readonly string[] }[],
  guess: string | undefined,
  io: Io,
): Promise<string> {
  const choices = sheets.map(({ name, headerTexts }) => ({
    value: name,
    name: truncate(`${name} (${headerTexts.join(', ') || 'empty'})`, io.stderr.columns - 4),
    short: name,
  }))
  return ask('Which sheet has the plants?', choices, guess, io)
}

/** Resolves to true if the text is right, and to false to choose another encoding. */
export async function askIfTextIsRight(io: Io): Promise<boolean> {
  const yes = { value: 'yes', name: 'Yes' }
  const other = { value: 'other', name: 'No, another encoding…' }
  const answer = await ask('Is that right?', [yes, other, otherChoices.stop], 'yes', io)
  if (answer === 'stop') throw createStoppedError()
  return answer === 'yes'
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
      keywords: listLanguages(encoding),
    }
  })
  return askToSearch('Which encoding?', (typedText) => filterChoices(choices, typedText), io)
}

/** @throws {PlantsError} `interrupted` if the answer is no */
export async function askToImport(message: string, io: Io): Promise<void> {
  const yes = { value: 'yes', name: 'Yes' }
  // A person who types "no" selects this. Otherwise Enter would take the answer above, yes.
  const no = { value: 'no', name: 'No' }
  const answer = await ask(message, [yes, no], 'yes', io)
  if (answer === 'no') throw createStoppedError()
}

/**
 * Writes lines that belong to a question, and so are not hidden by `--quiet`. If the terminal has
 * closed, the question notices that.
 */
export async function showLines(lines: readonly string[], io: Io): Promise<void> {
  await io.stderr.log(lines.map((line) => `${toPrintable(line, io)}\n`).join(''))
}

export function createStoppedError(): PlantsError {
  return new PlantsError('interrupted', 'Stopped, nothing was imported')
}

/**
 * Asks to choose from a list. If the list is long, a person can type to filter it, and the choice
 * that Enter takes is first.
 */
function ask<T>(
  message: string,
  choices: readonly Choice<T>[],
  initial: T | undefined,
  io: Io,
): Promise<T> {
  if (choices.length <= maxListed) return askToChoose({ message, choices, initial }, io)
  const initialChoice = choices.filter(({ value }) => value === initial)
  const sortedChoices = [...initialChoice, ...choices.filter(({ value }) => value !== initial)]
  return askToSearch(message, (typedText) => filterChoices(sortedChoices, typedText), io)
}

const maxListed = 12

/** @param choices may have keywords, by which a choice is found, but which are not shown */
function filterChoices<T>(
  choices: readonly (Choice<T> & { keywords?: string })[],
  typedText: string | undefined,
): readonly Choice<T>[] {
  const foldedText = foldName(typedText ?? '')
  return choices.filter(({ name, keywords = '' }) =>
    foldName(`${name} ${keywords}`).includes(foldedText),
  )
}
