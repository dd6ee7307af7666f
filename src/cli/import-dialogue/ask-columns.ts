import { assertDefined, type PlantsError } from '../../errors.js'
import type { Cells, Chunk } from '../../formats/chunk.js'
import { foldName, isRejectsName, readNames } from '../../formats/columns.js'
import {
  countFilledCells,
  findHeader,
  findLikeliestHeader,
  type TableHead,
} from '../../formats/header.js'
import type { ImportPlan } from '../../import/inputs.js'
import type { ImportAnswers } from '../../import/parse-checkpoint.js'
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
 * @throws {PlantsError} the failure, if an answer about columns would not prevent it
 */
export async function askForColumns(
  sample: Sample,
  plan: ImportPlan,
  failure: PlantsError,
  io: Io,
): Promise<ColumnAnswers> {
  const { sheet, rows } = await selectHead(sample, plan, io)
  const { records } = rows
  const headerIndex = findHeader(rows, plan)?.row ?? findLikeliestRow(records, plan)
  const missing = findFieldsToAsk(listColumns(records, headerIndex), plan)
  if (records.length === 0 || plan.columns || missing === undefined) throw failure
  const table = { rows: records, headerIndex, missing, type: sample.type }
  const ofColumns = await new ColumnDialogue(table, plan, io).ask()
  const answers = sheet === undefined ? ofColumns : { sheet, ...ofColumns }
  return { answers, headerLine: answers.columns ? undefined : rows.lines[headerIndex] }
}

interface ColumnAnswers {
  answers: ImportAnswers
  /** The line of the header that the person has seen; undefined if there is none. */
  headerLine: number | undefined
}

/** @returns the sheet only if it was asked for */
async function selectHead(
  { type, heads }: Sample,
  plan: ImportPlan,
  io: Io,
): Promise<{ sheet?: string; rows: Chunk<Cells> }> {
  const complete = heads.find(({ rows }) => findHeader(rows, plan) !== undefined)
  const likeliest = complete ?? findLikeliestHead(heads)
  if (type !== 'workbook' || complete || heads.length === 1) return { rows: likeliest.rows }
  const shown = heads.map(({ sheet = '', rows: { records } }) => {
    const header = records[findLikeliestRow(records, plan)] ?? []
    return { name: sheet, texts: readNames(header).filter(Boolean) }
  })
  const sheet = await askForSheet(shown, likeliest.sheet, io)
  return { sheet, rows: assertDefined(heads.find((head) => head.sheet === sheet)).rows }
}

/** Finds the table with the row that has the most cells. */
function findLikeliestHead(heads: readonly TableHead[]): TableHead {
  const widths = heads.map(({ rows }) => Math.max(0, ...rows.records.map(countFilledCells)))
  return assertDefined(heads[widths.indexOf(Math.max(...widths))])
}

/** The first row with all the columns that were typed, or else the one that looks like a header. */
function findLikeliestRow(records: readonly Cells[], { map }: ImportPlan): number {
  const typed = Object.values(map).filter(Boolean).map(foldName)
  const withTyped = records.findIndex((row) => {
    const names = readNames(row).map(foldName)
    return typed.length > 0 && typed.every((name) => names.includes(name))
  })
  return withTyped === -1 ? findLikeliestHeader(records) : withTyped
}

/** The fields to ask for; undefined if that is of no use. */
function findFieldsToAsk(
  columns: readonly SampleColumn[],
  plan: ImportPlan,
): FieldName[] | undefined {
  const count = (field: FieldName) => {
    const wanted = foldName(plan.map[field] ?? field)
    return columns.filter(({ name }) => foldName(name) === wanted).length
  }
  const missing = fieldNames.filter((field) => plan.map[field] !== '' && count(field) !== 1)
  // The name of a column that was typed is wrong, and no answer changes it.
  if (missing.some((field) => plan.map[field] !== undefined)) return undefined
  const hasIds = (plan.idFrom ?? plan.match) !== undefined && count('id') === 0
  const asked = missing.filter((field) => field !== 'id' || !hasIds)
  // A plant needs no tag, so the want of a column for it alone asks nothing.
  const isOnlyTagMissing = asked.join() === 'tag' && count('tag') === 0
  return asked.length === 0 || isOnlyTagMissing ? undefined : asked
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
  /** -1 if the first row is a plant. */
  headerIndex: number
  missing: readonly FieldName[]
  type: Sample['type']
}

const noIdChoices: Choice<ColumnAnswer>[] = [
  { value: 'generate', name: 'No id: generate ids' },
  { value: 'match', name: 'No id: find plants by name, or generate ids' },
]
const noTagChoice: Choice<ColumnAnswer> = { value: 'none', name: 'No tag' }

/** Asks for one field after the other, each among the columns that are left. */
class ColumnDialogue {
  readonly #table: Table
  readonly #plan: ImportPlan
  readonly #io: Io
  #columns: readonly SampleColumn[]
  #isHeaderless = false
  #chosen = new Map<FieldName, ColumnAnswer>()

  constructor(table: Table, plan: ImportPlan, io: Io) {
    this.#table = table
    this.#plan = plan
    this.#io = io
    this.#columns = listColumns(table.rows, table.headerIndex)
  }

  async ask(): Promise<ImportAnswers> {
    for (const field of this.#table.missing) {
      const columns = this.#findRemainingColumns()
      if (columns.length === 0 && field === 'tag') continue
      const answer = await this.#askForField(field, columns)
      if (answer === 'firstRow') return this.#askHeaderless()
      this.#chosen.set(field, answer)
    }
    return this.#buildAnswers()
  }

  /** Asks again from the first question on. */
  #askHeaderless(): Promise<ImportAnswers> {
    this.#isHeaderless = true
    this.#columns = listColumns(this.#table.rows, -1)
    this.#chosen.clear()
    return this.ask()
  }

  #findRemainingColumns(): readonly SampleColumn[] {
    const taken = [...this.#chosen.values(), ...this.#findGivenColumns()]
    return this.#columns.filter(({ index }) => !taken.includes(index))
  }

  #askForField(field: FieldName, columns: readonly SampleColumn[]): Promise<ColumnAnswer> {
    const noun = this.#table.type === 'objects' ? 'key' : 'column'
    return askForColumn(
      {
        message: `Which ${noun} is the ${field}?`,
        columns,
        others: this.#listOtherAnswers(field),
        guess: this.#guess(field, columns),
      },
      this.#io,
    )
  }

  /** Columns that have the name of their field, or that were typed. */
  #findGivenColumns(): number[] {
    const { map } = this.#plan
    const given = fieldNames.filter((field) => !this.#table.missing.includes(field))
    const names = given.map((field) => foldName(map[field] ?? field))
    return this.#columns
      .filter(({ name }) => names.includes(foldName(name)))
      .map(({ index }) => index)
  }

  #listOtherAnswers(field: FieldName): Choice<ColumnAnswer>[] {
    const others: Choice<ColumnAnswer>[] = []
    if (field === 'id') others.push(...noIdChoices)
    if (field === 'tag') others.push(noTagChoice)
    if (this.#chosen.size === 0 && this.#mayBeHeaderless)
      others.push({ value: 'firstRow', name: 'The first row is a plant already' })
    return others
  }

  get #mayBeHeaderless(): boolean {
    const { headerIndex, type, missing } = this.#table
    const hasNoName = missing.length === fieldNames.length || missing.includes('name')
    const isTyped = Object.keys(this.#plan.map).length > 0
    return headerIndex === 0 && type !== 'objects' && hasNoName && !isTyped && !this.#isHeaderless
  }

  #guess(field: FieldName, columns: readonly SampleColumn[]): ColumnAnswer | undefined {
    const isFirst = this.#chosen.size === 0 && this.#mayBeHeaderless
    if (isFirst && guessIsHeaderless(this.#table.rows[0] ?? [], this.#columns)) return 'firstRow'
    if (field === 'id') return guessIdColumn(columns) ?? 'generate'
    return field === 'name' ? guessNameColumn(columns) : (guessTagColumn(columns) ?? 'none')
  }

  #buildAnswers(): ImportAnswers {
    const id = this.#chosen.get('id')
    const answers: ImportAnswers = this.#isHeaderless
      ? { columns: this.#nameColumns() }
      : { map: this.#mapFields() }
    if (id === 'match') answers.match = 'name'
    if (id === 'match' || id === 'generate') answers.idFrom = 'next'
    return answers
  }

  /** The names of the columns of a table without a header: empty for those that are not read. */
  #nameColumns(): string[] {
    const fields = [...this.#chosen]
    return this.#columns.map(
      ({ index }) => fields.find(([, answer]) => answer === index)?.[0] ?? '',
    )
  }

  #mapFields(): ImportPlan['map'] {
    const map: ImportPlan['map'] = {}
    for (const [field, answer] of this.#chosen) {
      const column = this.#columns.find(({ index }) => index === answer)
      if (column) map[field] = this.#nameColumn(column)
      // A column that has the name of the field is not read.
      else if (this.#columns.some(({ name }) => foldName(name) === field)) map[field] = ''
    }
    return map
  }

  /** Names a column by its number if its name is not unique, or cannot be typed. */
  #nameColumn({ name, index }: SampleColumn): string {
    const isUnique =
      this.#columns.filter((column) => foldName(column.name) === foldName(name)).length === 1
    const isTypable = escapeControlChars(name) === name && !/,\s*(?:id|name|tag)\s*=/.test(name)
    if (name !== '' && isUnique && isTypable) return name
    const before = this.#columns.filter((column) => column.index < index)
    return String(before.filter((column) => !isRejectsName(column.name)).length + 1)
  }
}
