/*
 * Asks which column of a table, or key of JSON objects, is the name, the id and the tag. Each
 * question has the answer that is most likely right. The dialogue of an import asks a person, and
 * the hint of an error takes the likely answers, so both propose the same.
 *
 * The answers become options, such as `--map` and `--columns`, so an option must be able to express
 * each answer. An option names a column by its name, or by its number if the name is not unique.
 *
 * Only a person can tell that a table has no header. The person then answers that the first row is
 * a plant already, and chooses the name among columns without names.
 */
import { assertDefined } from '../errors.js'
import { foldLabel } from '../formats/names.js'
import type { Cells } from '../formats/reader.js'
import { type FieldName, fieldNames } from '../plant/fields.js'
import { type ColumnAnswers, nameColumns } from './column-answers.js'
import {
  guessIdColumn,
  guessIsHeaderless,
  guessNameColumn,
  guessRestOfName,
  guessTagColumn,
  isGenusColumn,
  mayBeIds,
} from './guess-columns.js'
import { type FieldMap, type FieldOptions, needsOwnIds } from './options.js'
import { type Column, describeColumns } from './sample.js'

/** An answer that names no column. */
export type OtherAnswer = 'noTag' | 'noRest' | 'byName' | 'firstRow'

export interface ColumnQuestion {
  message: string
  choices: readonly (Column | OtherAnswer)[]
  /** The answer that is most likely right. */
  guess: Column | OtherAnswer
}

type Questions<Result> = Generator<ColumnQuestion, Result, Column | OtherAnswer>

/** The first rows of a table, or of objects below a row of their keys. */
interface ColumnHead {
  noun: 'column' | 'key'
  rows: readonly Cells[]
  /** The index of the row that is most likely the header. */
  headerRow: number
}

/**
 * Asks for the columns that the options do not name.
 *
 * @returns undefined if no answer about columns would help
 */
export function* askForColumns(
  head: ColumnHead,
  options: FieldOptions,
): Questions<ColumnAnswers | undefined> {
  if (options.columns) return undefined
  const columns = describeColumns(head.rows, head.headerRow)
  const fieldsToAsk = findFieldsToAsk(columns, options)
  if (fieldsToAsk.length === 0) return undefined
  return yield* new ColumnDialogue({ ...head, columns, fieldsToAsk }, options).ask()
}

/** Returns the likely answers. */
export function proposeColumns(head: ColumnHead, options: FieldOptions): ColumnAnswers | undefined {
  const questions = askForColumns(head, options)
  let step = questions.next()
  while (!step.done) step = questions.next(step.value.guess)
  return step.value
}

/** @returns the fields to ask for; none if no answer would help */
function findFieldsToAsk(columns: readonly Column[], options: FieldOptions): FieldName[] {
  const isClear = (name: string) => findByName(columns, name).length === 1
  const hasIds = !needsOwnIds(options) || findByName(columns, 'id').some(mayBeIds)
  // A field is unclear if no column has its name, and also if several columns have its name. The
  // id is unclear, too, if the column has only texts, which no id can be.
  const unclearFields = fieldNames.filter(
    (field) => !(options.map[field] ?? [field]).every(isClear) || (field === 'id' && !hasIds),
  )
  // If an option names a column that is not there, the option is wrong, and no answer changes it.
  if (unclearFields.some((field) => options.map[field] !== undefined)) return []
  if (
    unclearFields.includes('name') &&
    findOtherColumns(columns, unclearFields, options).length === 0
  )
    return []
  const needsNoIds = options.byName === true && findByName(columns, 'id').length === 0
  const fieldsToAsk = unclearFields.filter((field) => field !== 'id' || !needsNoIds)
  // A plant needs no tag, so a file that only lacks tags can be imported without a question.
  const isOnlyTagMissing = fieldsToAsk.join() === 'tag' && findByName(columns, 'tag').length === 0
  return isOnlyTagMissing ? [] : fieldsToAsk
}

function findByName(columns: readonly Column[], wantedName: string): Column[] {
  return columns.filter(({ name }) => foldLabel(name) === foldLabel(wantedName))
}

/** Finds the columns that do not have the name of a field whose column is known. */
function findOtherColumns(
  columns: readonly Column[],
  unclearFields: readonly FieldName[],
  { map }: FieldOptions,
): Column[] {
  const knownFields = fieldNames.filter((field) => !unclearFields.includes(field))
  const knownNames = knownFields.flatMap((field) => map[field] ?? [field]).map(foldLabel)
  return columns.filter(({ name }) => !knownNames.includes(foldLabel(name)))
}

interface Table extends ColumnHead {
  columns: readonly Column[]
  fieldsToAsk: readonly FieldName[]
}

/** Asks for one field after the other. A column that was chosen is not offered again. */
class ColumnDialogue {
  #columns: readonly Column[]
  #isHeaderless = false
  readonly #chosenColumns = new Map<FieldName, readonly Column[]>()

  constructor(
    private readonly table: Table,
    private readonly options: FieldOptions,
  ) {
    this.#columns = table.columns
  }

  /** The name comes first, because the names decide which way to an id is proposed. */
  *ask(): Questions<ColumnAnswers> {
    const { fieldsToAsk } = this.table
    if (fieldsToAsk.includes('name')) yield* this.#askForName()
    const idAnswers = fieldsToAsk.includes('id') ? yield* this.#askForId() : {}
    if (fieldsToAsk.includes('tag')) yield* this.#askForTag()
    return { ...this.#buildAnswers(), ...idAnswers }
  }

  *#askForName(): Questions<void> {
    const columns = this.#findRemainingColumns()
    const mayBeHeaderless = this.#mayBeHeaderless(columns)
    const guess =
      mayBeHeaderless && guessIsHeaderless(columns)
        ? 'firstRow'
        : assertDefined(guessNameColumn(columns))
    const otherAnswers: OtherAnswer[] = mayBeHeaderless ? ['firstRow'] : []
    const onlyColumn = this.#isHeaderless && columns.length === 1 ? columns[0] : undefined
    const answer =
      onlyColumn ?? (yield* this.#ask('the name', [...columns, ...otherAnswers], guess))
    if (typeof answer !== 'object') return yield* this.#askHeaderless()
    this.#chosenColumns.set('name', [answer])
    if (isGenusColumn(answer, columns)) yield* this.#askForRestOfName(answer)
  }

  *#askHeaderless(): Questions<void> {
    this.#isHeaderless = true
    this.#columns = describeColumns(this.table.rows, -1)
    yield* this.#askForName()
  }

  *#askForRestOfName(genus: Column): Questions<void> {
    const columns = this.#findRemainingColumns()
    const guess = guessRestOfName(columns) ?? 'noRest'
    const answer = yield* this.#ask('the rest of the name', ['noRest', ...columns], guess)
    if (typeof answer === 'object') this.#chosenColumns.set('name', [genus, answer])
  }

  *#askForId(): Questions<ColumnAnswers> {
    const columns = this.#findRemainingColumns().filter(mayBeIds)
    const guess = guessIdColumn(columns, this.#isHeaderless) ?? 'byName'
    const answer = yield* this.#ask('the id', [...columns, 'byName'], guess)
    if (typeof answer === 'object') this.#chosenColumns.set('id', [answer])
    return answer === 'byName' ? { byName: true } : {}
  }

  *#askForTag(): Questions<void> {
    const columns = this.#findRemainingColumns()
    if (columns.length === 0) return
    const guess = guessTagColumn(columns) ?? 'noTag'
    const answer = yield* this.#ask('the tag', ['noTag', ...columns], guess)
    if (typeof answer === 'object') this.#chosenColumns.set('tag', [answer])
  }

  *#ask(
    what: string,
    choices: ColumnQuestion['choices'],
    guess: ColumnQuestion['guess'],
  ): Questions<Column | OtherAnswer> {
    return yield { message: `Which ${this.table.noun} is ${what}?`, choices, guess }
  }

  #findRemainingColumns(): Column[] {
    const chosenColumns = [...this.#chosenColumns.values()].flat()
    const columns = findOtherColumns(this.#columns, this.table.fieldsToAsk, this.options)
    return columns.filter((column) => !chosenColumns.includes(column))
  }

  /** A header that names a column like a field, or like an option does, is no plant. */
  #mayBeHeaderless(columns: readonly Column[]): boolean {
    const { headerRow, noun } = this.table
    const hasKnownColumn = columns.length < this.#columns.length
    const isTyped = Object.keys(this.options.map).length > 0
    return (
      headerRow === 0 && noun === 'column' && !hasKnownColumn && !isTyped && !this.#isHeaderless
    )
  }

  #buildAnswers(): ColumnAnswers {
    if (!this.#isHeaderless) return { map: this.#mapFields() }
    const indexes = [...this.#chosenColumns].map(
      ([field, columns]) => [field, columns.map(({ number }) => number - 1)] as const,
    )
    return nameColumns(this.#columns.length, new Map(indexes))
  }

  #mapFields(): FieldMap {
    const { fieldsToAsk } = this.table
    const map: FieldMap = {}
    for (const field of fieldNames) {
      const columns = this.#chosenColumns.get(field)
      if (columns) map[field] = columns.map((column) => this.#nameColumn(column))
      // A column has the name of the field, but was not chosen. So an empty list excludes it.
      else if (fieldsToAsk.includes(field) && findByName(this.#columns, field).length > 0)
        map[field] = []
    }
    return map
  }

  /**
   * Names a column by its number if its name is not unique. A key of JSON has no number, but its
   * exact name is preferred to others that fold to the same.
   */
  #nameColumn({ name, number }: Column): string {
    if (this.table.noun === 'key') return name
    const isUnique = name !== '' && findByName(this.#columns, name).length === 1
    return isUnique ? name : String(number)
  }
}
