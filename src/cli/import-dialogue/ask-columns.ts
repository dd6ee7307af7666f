/*
 * Asks which sheet of a workbook has the plants, and which column of a table, or key of JSON
 * objects, is the name, the id and the tag.
 *
 * The answers become options, such as `--map` and `--columns`, so an option must be able to express
 * each answer. An option names a column by its name, or by its number if the name is not unique.
 *
 * Only a person can tell that a table has no header. The person then answers that the first row is
 * a plant already, and chooses the name among columns without names.
 */
import { findHeader, findLikeliestHeader } from '../../fields/header.js'
import type { Sample } from '../../fields/missing-fields.js'
import { needsOwnIds } from '../../fields/options.js'
import { type Column, describeColumns } from '../../fields/sample.js'
import { foldLabel } from '../../formats/names.js'
import type { Cells } from '../../formats/reader.js'
import type { ImportPlan } from '../../import/inputs.js'
import { type FieldName, fieldNames } from '../../plant/fields.js'
import type { CommandContext } from '../context.js'
import { applyAnswers, type ImportAnswers } from './answers.js'
import {
  guessIdColumn,
  guessIsHeaderless,
  guessNameColumn,
  guessRestOfName,
  guessTagColumn,
  hasIntegers,
  isGenusColumn,
} from './guess-columns.js'
import { askForColumn, askForSheet, otherChoices } from './questions.js'

/**
 * Asks for the sheet and the columns that the options do not name.
 *
 * @returns undefined if no answer about columns would help
 */
export async function askForColumns(
  { noun, heads }: Sample,
  plan: ImportPlan,
  context: CommandContext,
): Promise<ImportAnswers | undefined> {
  if (plan.columns) return undefined
  const filledHeads = heads.filter(({ rows }) => rows.length > 0)
  const sheet = filledHeads.length > 1 ? await askForSheet(filledHeads, context.io) : undefined
  const head = filledHeads.find((filledHead) => filledHead.sheet === sheet) ?? filledHeads[0]
  if (!head) return undefined
  const { rows } = head
  const headerRow = findHeader(rows, plan)?.row ?? findLikeliestHeader(rows)
  const columns = describeColumns(rows, headerRow)
  const fieldsToAsk = findFieldsToAsk(columns, plan)
  if (fieldsToAsk.length === 0) return undefined
  const answers: ImportAnswers = sheet === undefined ? {} : { sheet }
  const table = { rows, headerRow, fieldsToAsk, noun, columns }
  const dialogue = new ColumnDialogue(table, applyAnswers(plan, answers), context)
  return { ...answers, ...(await dialogue.ask()) }
}

/** @returns the fields to ask for; none if no answer would help */
function findFieldsToAsk(columns: readonly Column[], plan: ImportPlan): FieldName[] {
  const isClear = (name: string) => countColumns(columns, name) === 1
  const hasIds = !needsOwnIds(plan) || columns.filter(isIdColumn).some(hasIntegers)
  // A field is unclear if no column has its name, and also if several columns have its name. The
  // id is unclear, too, if the column has only texts, which no id can be.
  const unclearFields = fieldNames.filter(
    (field) => !(plan.map[field] ?? [field]).every(isClear) || (field === 'id' && !hasIds),
  )
  // If an option names a column that is not there, the option is wrong, and no answer changes it.
  if (unclearFields.some((field) => plan.map[field] !== undefined)) return []
  if (unclearFields.includes('name') && findOtherColumns(columns, unclearFields, plan).length === 0)
    return []
  const needsNoIds = plan.byName === true && countColumns(columns, 'id') === 0
  const fieldsToAsk = unclearFields.filter((field) => field !== 'id' || !needsNoIds)
  // A plant needs no tag, so a file that only lacks tags can be imported without a question.
  const isOnlyTagMissing = fieldsToAsk.join() === 'tag' && countColumns(columns, 'tag') === 0
  return isOnlyTagMissing ? [] : fieldsToAsk
}

function isIdColumn({ name }: Column): boolean {
  return foldLabel(name) === 'id'
}

function countColumns(columns: readonly Column[], wantedName: string): number {
  return columns.filter(({ name }) => foldLabel(name) === foldLabel(wantedName)).length
}

/** Finds the columns that do not have the name of a field whose column is known. */
function findOtherColumns(
  columns: readonly Column[],
  unclearFields: readonly FieldName[],
  { map }: ImportPlan,
): Column[] {
  const knownFields = fieldNames.filter((field) => !unclearFields.includes(field))
  const knownNames = knownFields.flatMap((field) => map[field] ?? [field]).map(foldLabel)
  return columns.filter(({ name }) => !knownNames.includes(foldLabel(name)))
}

interface Table {
  rows: readonly Cells[]
  headerRow: number
  columns: readonly Column[]
  fieldsToAsk: readonly FieldName[]
  noun: Sample['noun']
}

/** Asks for one field after the other. A column that was chosen is not offered again. */
class ColumnDialogue {
  readonly #table: Table
  readonly #plan: ImportPlan
  readonly #context: CommandContext
  #columns: readonly Column[]
  #isHeaderless = false
  readonly #chosenColumns = new Map<FieldName, readonly Column[]>()

  constructor(table: Table, plan: ImportPlan, context: CommandContext) {
    this.#table = table
    this.#plan = plan
    this.#context = context
    this.#columns = table.columns
  }

  /** The name comes first, because the names decide which way to an id is proposed. */
  async ask(): Promise<ImportAnswers> {
    const { fieldsToAsk } = this.#table
    if (fieldsToAsk.includes('name')) await this.#askForName()
    const idAnswers = fieldsToAsk.includes('id') ? await this.#askForId() : {}
    if (fieldsToAsk.includes('tag')) await this.#askForTag()
    return { ...this.#buildAnswers(), ...idAnswers }
  }

  async #askForName(): Promise<void> {
    const columns = this.#findRemainingColumns()
    const mayBeHeaderless = this.#mayBeHeaderless(columns)
    const guess =
      mayBeHeaderless && guessIsHeaderless(columns) ? 'firstRow' : guessNameColumn(columns)
    const otherAnswers = mayBeHeaderless ? [otherChoices.firstRow] : []
    const onlyColumn = this.#isHeaderless && columns.length === 1 ? columns[0] : undefined
    const answer =
      onlyColumn ?? (await this.#askForColumn('the name', [...columns, ...otherAnswers], guess))
    if (typeof answer !== 'object') return this.#askHeaderless()
    this.#chosenColumns.set('name', [answer])
    if (isGenusColumn(answer)) await this.#askForRestOfName(answer)
  }

  async #askHeaderless(): Promise<void> {
    this.#isHeaderless = true
    this.#columns = describeColumns(this.#table.rows, -1)
    await this.#askForName()
  }

  async #askForRestOfName(genus: Column): Promise<void> {
    const columns = this.#findRemainingColumns()
    const guess = guessRestOfName(columns) ?? 'none'
    const choices = [otherChoices.noRest, ...columns]
    const answer = await this.#askForColumn('the rest of the name', choices, guess)
    if (typeof answer === 'object') this.#chosenColumns.set('name', [genus, answer])
  }

  async #askForId(): Promise<ImportAnswers> {
    const columns = this.#findRemainingColumns().filter(hasIntegers)
    const column = guessIdColumn(columns, this.#isHeaderless)
    const choices = [...columns, otherChoices.byName]
    const answer = await this.#askForColumn('the id', choices, column ?? 'byName')
    if (typeof answer === 'object') this.#chosenColumns.set('id', [answer])
    return answer === 'byName' ? { byName: true } : {}
  }

  async #askForTag(): Promise<void> {
    const columns = this.#findRemainingColumns()
    if (columns.length === 0) return
    const guess = guessTagColumn(columns) ?? 'none'
    const answer = await this.#askForColumn('the tag', [otherChoices.noTag, ...columns], guess)
    if (typeof answer === 'object') this.#chosenColumns.set('tag', [answer])
  }

  #askForColumn(
    what: string,
    choices: Parameters<typeof askForColumn>[1],
    guess: Parameters<typeof askForColumn>[2],
  ): ReturnType<typeof askForColumn> {
    return askForColumn(`Which ${this.#table.noun} is ${what}?`, choices, guess, this.#context.io)
  }

  #findRemainingColumns(): Column[] {
    const chosenColumns = [...this.#chosenColumns.values()].flat()
    const columns = findOtherColumns(this.#columns, this.#table.fieldsToAsk, this.#plan)
    return columns.filter((column) => !chosenColumns.includes(column))
  }

  /** A header that names a column like a field, or like an option does, is no plant. */
  #mayBeHeaderless(columns: readonly Column[]): boolean {
    const { headerRow, noun } = this.#table
    const hasKnownColumn = columns.length < this.#columns.length
    const isTyped = Object.keys(this.#plan.map).length > 0
    return (
      headerRow === 0 && noun === 'column' && !hasKnownColumn && !isTyped && !this.#isHeaderless
    )
  }

  #buildAnswers(): ImportAnswers {
    return this.#isHeaderless ? { columns: this.#nameColumns() } : { map: this.#mapFields() }
  }

  /** Names the columns of a table without a header; a column that is not read has an empty name. */
  #nameColumns(): string[] {
    const fields = [...this.#chosenColumns]
    return this.#columns.map(
      (column) => fields.find(([, columns]) => columns.includes(column))?.[0] ?? '',
    )
  }

  #mapFields(): ImportPlan['map'] {
    const { fieldsToAsk } = this.#table
    const map: ImportPlan['map'] = {}
    for (const field of fieldNames) {
      const columns = this.#chosenColumns.get(field)
      if (columns) map[field] = columns.map((column) => this.#nameColumn(column))
      // A column has the name of the field, but was not chosen. So an empty list excludes it.
      else if (fieldsToAsk.includes(field) && countColumns(this.#columns, field) > 0)
        map[field] = []
    }
    return map
  }

  /**
   * Names a column by its number if its name is not unique. A key of JSON has no number, but its
   * exact name is preferred to others that fold to the same.
   */
  #nameColumn({ name, number }: Column): string {
    if (this.#table.noun === 'key') return name
    const namesakes = this.#columns.filter((column) => foldLabel(column.name) === foldLabel(name))
    return name !== '' && namesakes.length === 1 ? name : String(number)
  }
}
