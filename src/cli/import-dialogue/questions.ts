/* The questions of the import dialogue, in words and choices that fit in a terminal. */

import { PlantsError } from '../../errors.js'
import { foldName } from '../../formats/columns.js'
import { describeEncoding, listLanguages } from '../../formats/common-encodings.js'
import { toPrintable, truncate } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { askToChoose, askToSearch, type Choice } from '../prompts.js'
import type { SampleColumn } from './guess-columns.js'

/** The index of a column, or an answer that names none. */
export type ColumnAnswer = number | 'none' | 'byName' | 'byRow' | 'firstRow'

interface ColumnQuestion {
  message: string
  columns: readonly SampleColumn[]
  /** The answers that name no column, which are listed below the columns. */
  otherAnswers: readonly Choice<ColumnAnswer>[]
  /** The answer that Enter gives. */
  guess: ColumnAnswer | undefined
}

export function askForColumn(question: ColumnQuestion, io: Io): Promise<ColumnAnswer> {
  const { message, columns, otherAnswers, guess } = question
  const columnChoices = columns.map((column) => ({
    value: column.index,
    name: truncate(describeColumn(column), io.stderr.columns - 4),
    short: getColumnLabel(column),
  }))
  return ask(message, [...columnChoices, ...otherAnswers], guess, io)
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

function getColumnLabel({ name, index }: SampleColumn): string {
  return name === '' ? `Column ${index + 1}` : name
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
  const answer = await ask(
    'Is that right?',
    [
      { value: 'yes', name: 'Yes' },
      { value: 'other', name: 'No, another encoding…' },
      { value: 'stop', name: 'Stop' },
    ],
    'yes',
    io,
  )
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
  const answer = await ask(
    message,
    [
      { value: 'yes', name: 'Yes' },
      // A person who types "no" selects this. Otherwise Enter would take the answer above, yes.
      { value: 'no', name: 'No' },
    ],
    'yes',
    io,
  )
  if (answer === 'no') throw createStoppedError()
}

/**
 * Writes lines that belong to a question, and so are not hidden by `--quiet`. If the terminal has
 * closed, the question notices that.
 */
export async function showLines(lines: readonly string[], io: Io): Promise<void> {
  await io.stderr.log(lines.map((line) => `${toPrintable(line, io)}\n`).join(''))
}

function createStoppedError(): PlantsError {
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
  const otherChoices = choices.filter(({ value }) => value !== initial)
  const sortedChoices = [...initialChoice, ...otherChoices]
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
