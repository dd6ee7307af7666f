/*
 * Asks which sheet of a workbook has the plants, and which column of a table, or key of JSON
 * objects, is the id, the name and the tag.
 *
 * The answers become options, such as `--map` and `--columns`, so an option must be able to express
 * each answer. An option names a column by its name, or by its number if the name is not unique.
 *
 * Only a person can tell that a table has no header. The person then answers that the first row is
 * a plant already, and the questions start again.
 */
import { assertDefined, type PlantsError } from '../../errors.js'
import type { Cells, RawChunk } from '../../formats/chunk.js'
import { assignsIds, foldName, isRejectsName, readNames } from '../../formats/columns.js'
import { findHeader, findLikeliestHeader, rateTable, type TableHead } from '../../formats/header.js'
import type { ImportAnswers } from '../../import/answers.js'
import type { ImportPlan } from '../../import/inputs.js'
import type { Sample } from '../../import/sample-input.js'
import { type FieldName, fieldNames } from '../../plant/fields.js'
import { escapeControlChars } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import type { Choice } from '../prompts.js'
import {
  guessIdColumn,
  guessIsHeaderless,
  guessNameColumn,
  guessTagColumn,
  type SampleColumn,
} from './guess-columns.js'
import { askForColumn, askForSheet, type ColumnAnswer } from './questions.js'

/**
 * Asks for the sheet and the columns that the options do not name.
 *
 * @param failure why the import would end without the dialogue
 * @param findNextId returns an id above all ids of the store
 * @throws {PlantsError} the failure, if an answer about columns would not prevent it
 */
export async function askForColumns(
  sample: Sample,
  plan: ImportPlan,
  failure: PlantsError,
  { io, findNextId }: { io: Io; findNextId: () => Promise<bigint> },
): Promise<ColumnAnswers> {
  const { sheet, rows } = await selectHead(sample, plan, io)
  const { records } = rows
  const headerIndex = findHeader(rows, plan)?.row ?? findLikeliestRow(records, plan)
  const fieldsToAsk = findFieldsToAsk(listColumns(records, headerIndex), plan)
  if (sheet !== undefined && fieldsToAsk === undefined && findHeader(rows, plan))
    return { answers: { sheet }, headerLine: rows.lines[headerIndex] }
  if (records.length === 0 || plan.columns || fieldsToAsk === undefined) throw failure
  const table = { rows: records, headerIndex, fieldsToAsk, type: sample.type }
  const { idAnswer, ...columnAnswers } = await new ColumnDialogue(table, plan, io).ask()
  if (idAnswer === 'byName') columnAnswers.byName = true
  if (idAnswer === 'byRow') columnAnswers.idFrom = await findNextId()
  const answers = sheet === undefined ? columnAnswers : { sheet, ...columnAnswers }
  return { answers, headerLine: answers.columns ? undefined : rows.lines[headerIndex] }
}

interface ColumnAnswers {
  answers: ImportAnswers
  /** The line of the header that the person has seen; undefined if there is none. */
  headerLine: number | undefined
}

/**
 * Selects the table to ask about. If several sheets have rows, a person is asked for the sheet.
 *
 * @returns the name of the sheet only if a person was asked for it
 */
async function selectHead(
  { type, heads }: Sample,
  plan: ImportPlan,
  io: Io,
): Promise<{ sheet?: string; rows: RawChunk<Cells> }> {
  const completeHead = heads.find(({ rows }) => findHeader(rows, plan) !== undefined)
  const likeliestHead = completeHead ?? findLikeliestHead(heads)
  const filledHeads = heads.filter(({ rows }) => rows.length > 0)
  const mayAsk = type === 'workbook' && !plan.columns && filledHeads.length > 1
  if (!mayAsk) return { rows: likeliestHead.rows }
  const sheets = filledHeads.map(({ sheet = '', rows: { records } }) => {
    const header = records[findLikeliestRow(records, plan)] ?? []
    return { name: sheet, headerTexts: readNames(header).filter(Boolean) }
  })
  const sheet = await askForSheet(sheets, likeliestHead.sheet, io)
  return { sheet, rows: assertDefined(heads.find((head) => head.sheet === sheet)).rows }
}

function findLikeliestHead(heads: readonly TableHead[]): TableHead {
  const ratings = heads.map(({ rows }) => rateTable(rows))
  return assertDefined(heads[ratings.indexOf(Math.max(...ratings))])
}

/** Finds the row with all names of `--map`, or else the one that looks most like a header. */
function findLikeliestRow(records: readonly Cells[], { map }: ImportPlan): number {
  const typedNames = Object.values(map).flat().map(foldName)
  const rowWithNames = records.findIndex((row) => {
    const names = readNames(row).map(foldName)
    return typedNames.length > 0 && typedNames.every((name) => names.includes(name))
  })
  return rowWithNames === -1 ? findLikeliestHeader(records) : rowWithNames
}

/** @returns the fields to ask for; undefined if no answer would help */
function findFieldsToAsk(
  columns: readonly SampleColumn[],
  plan: ImportPlan,
): FieldName[] | undefined {
  const countColumns = (wantedName: string) =>
    columns.filter(({ name }) => foldName(name) === foldName(wantedName)).length
  // A field is unclear if no column has its name, and also if several columns have its name.
  const unclearFields = fieldNames.filter((field) =>
    (plan.map[field] ?? [field]).some((name) => countColumns(name) !== 1),
  )
  // If an option names a column that is not there, the option is wrong, and no answer changes it.
  if (unclearFields.some((field) => plan.map[field] !== undefined)) return undefined
  const needsNoIds = assignsIds(plan) && countColumns('id') === 0
  const fieldsToAsk = unclearFields.filter((field) => field !== 'id' || !needsNoIds)
  // A plant needs no tag, so a file that only lacks tags can be imported without a question.
  const isOnlyTagMissing = fieldsToAsk.join() === 'tag' && countColumns('tag') === 0
  return fieldsToAsk.length === 0 || isOnlyTagMissing ? undefined : fieldsToAsk
}

function listColumns(rows: readonly Cells[], headerIndex: number): SampleColumn[] {
  const header = readNames(rows[headerIndex] ?? [])
  const records = rows.slice(headerIndex + 1).map(readNames)
  const width = Math.max(0, ...rows.map((row) => row.length))
  return Array.from({ length: width }, (_, index) => {
    const cells = records.map((row) => row[index] ?? '')
    const values = cells.filter((text) => text !== '')
    const isFilled = values.length > 0 && values.length === cells.length
    return { index, name: normalizeName(header[index] ?? ''), values, isFilled }
  })
}

function normalizeName(name: string): string {
  return name.trim().replace(/\s+/g, ' ')
}

interface Table {
  rows: readonly Cells[]
  /** The row of the header; -1 if the table has none. */
  headerIndex: number
  /** The fields to ask for. */
  fieldsToAsk: readonly FieldName[]
  type: Sample['type']
}

const noIdChoices: Choice<ColumnAnswer>[] = [
  { value: 'byName', name: 'No id: one plant for each name' },
  { value: 'byRow', name: 'No id: one plant for each row' },
]
const noTagChoice: Choice<ColumnAnswer> = { value: 'none', name: 'No tag' }

/** Asks for one field after the other. A column that was chosen is not offered again. */
class ColumnDialogue {
  readonly #table: Table
  readonly #plan: ImportPlan
  readonly #io: Io
  #columns: readonly SampleColumn[]
  #isHeaderless = false
  #answersByField = new Map<FieldName, ColumnAnswer>()

  constructor(table: Table, plan: ImportPlan, io: Io) {
    this.#table = table
    this.#plan = plan
    this.#io = io
    this.#columns = listColumns(table.rows, table.headerIndex)
  }

  async ask(): Promise<ImportAnswers & { idAnswer?: ColumnAnswer | undefined }> {
    for (const field of this.#table.fieldsToAsk) {
      const columns = this.#findRemainingColumns()
      if (columns.length === 0 && field === 'tag') continue
      const answer = await this.#askForField(field, columns)
      if (answer === 'firstRow') return this.#askHeaderless()
      this.#answersByField.set(field, answer)
    }
    return { ...this.#buildAnswers(), idAnswer: this.#answersByField.get('id') }
  }

  /** Asks again from the first question on. */
  #askHeaderless(): ReturnType<ColumnDialogue['ask']> {
    this.#isHeaderless = true
    this.#columns = listColumns(this.#table.rows, -1)
    this.#answersByField.clear()
    return this.ask()
  }

  #findRemainingColumns(): readonly SampleColumn[] {
    const takenColumns = [...this.#answersByField.values(), ...this.#findKnownColumns()]
    return this.#columns.filter(({ index }) => !takenColumns.includes(index))
  }

  #askForField(field: FieldName, columns: readonly SampleColumn[]): Promise<ColumnAnswer> {
    const noun = this.#table.type === 'objects' ? 'key' : 'column'
    return askForColumn(
      {
        message: `Which ${noun} is the ${field}?`,
        columns,
        otherAnswers: this.#listOtherAnswers(field),
        guess: this.#guess(field, columns),
      },
      this.#io,
    )
  }

  /** Finds the columns that need no question: they have the name of their field, or of `--map`. */
  #findKnownColumns(): number[] {
    const { map } = this.#plan
    const knownFields = fieldNames.filter((field) => !this.#table.fieldsToAsk.includes(field))
    const names = knownFields.flatMap((field) => map[field] ?? [field]).map(foldName)
    return this.#columns
      .filter(({ name }) => names.includes(foldName(name)))
      .map(({ index }) => index)
  }

  #listOtherAnswers(field: FieldName): Choice<ColumnAnswer>[] {
    const choices: Choice<ColumnAnswer>[] = []
    if (field === 'id') choices.push(...noIdChoices)
    if (field === 'tag') choices.push(noTagChoice)
    if (this.#answersByField.size === 0 && this.#mayBeHeaderless)
      choices.push({ value: 'firstRow', name: 'The first row is a plant already' })
    return choices
  }

  /** Whether it makes sense to answer that the table has no header. */
  get #mayBeHeaderless(): boolean {
    const { headerIndex, type, fieldsToAsk } = this.#table
    const hasNoName = fieldsToAsk.length === fieldNames.length || fieldsToAsk.includes('name')
    const isTyped = Object.keys(this.#plan.map).length > 0
    return headerIndex === 0 && type !== 'objects' && hasNoName && !isTyped && !this.#isHeaderless
  }

  #guess(field: FieldName, columns: readonly SampleColumn[]): ColumnAnswer | undefined {
    const isFirst = this.#answersByField.size === 0 && this.#mayBeHeaderless
    if (isFirst && guessIsHeaderless(this.#table.rows[0] ?? [], this.#columns)) return 'firstRow'
    if (field === 'id') return guessIdColumn(columns) ?? 'byName'
    return field === 'name' ? guessNameColumn(columns) : (guessTagColumn(columns) ?? 'none')
  }

  #buildAnswers(): ImportAnswers {
    return this.#isHeaderless ? { columns: this.#nameColumns() } : { map: this.#mapFields() }
  }

  /** Names the columns of a table without a header; a column that is not read has an empty name. */
  #nameColumns(): string[] {
    const fields = [...this.#answersByField]
    return this.#columns.map(
      ({ index }) => fields.find(([, answer]) => answer === index)?.[0] ?? '',
    )
  }

  #mapFields(): ImportPlan['map'] {
    const map: ImportPlan['map'] = {}
    for (const [field, answer] of this.#answersByField) {
      const column = this.#columns.find(({ index }) => index === answer)
      if (column) map[field] = [this.#nameColumn(column)]
      // A column has the name of the field, but was not chosen. So an empty name excludes it.
      else if (this.#columns.some(({ name }) => foldName(name) === field)) map[field] = []
    }
    return map
  }

  /**
   * Names a column as `--map` can: by its number if the name is not unique, or cannot be typed. A
   * key of JSON has no number, but its exact name is preferred to others that fold to the same.
   */
  #nameColumn({ name, index }: SampleColumn): string {
    if (this.#table.type === 'objects') return name
    const isUnique =
      this.#columns.filter((column) => foldName(column.name) === foldName(name)).length === 1
    const isTypable = escapeControlChars(name) === name && !/,\s*(?:id|name|tag)\s*=/.test(name)
    if (name !== '' && isUnique && isTypable) return name
    const columnsBefore = this.#columns.filter((column) => column.index < index)
    return String(columnsBefore.filter((column) => !isRejectsName(column.name)).length + 1)
  }
}
