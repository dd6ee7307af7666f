/*
 * Guesses which column has which field. The guess is the answer that Enter gives, so a wrong guess
 * costs a person only a few keys. An import without the dialogue uses none of these guesses.
 */
import type { Cells } from '../../formats/chunk.js'
import { foldName } from '../../formats/columns.js'
import type { FieldName } from '../../plant/fields.js'

/** A column, or a key of JSON, as a person chooses it. */
export interface SampleColumn {
  /** The number of the column, from 0 on. */
  index: number
  /** The name in the header; empty if it has none. */
  name: string
  /** The cells below the header that are not empty. */
  values: readonly string[]
  /** Whether each row has a value. */
  isFilled: boolean
}

/**
 * The words by which a field is found in the names of columns, in the languages in which plant
 * lists are written. Chinese and Japanese have no spaces between words, so a word that is not in
 * Latin letters may be anywhere in the name of a column.
 */
export const columnWords: Record<FieldName, readonly string[]> = {
  id: [
    ...'id nr no n number code numero numer cislo № номер 番号 编号 編號 번호'.split(' '),
    ...'lp num stt szam αριθμόσ מספר رقم क्रमांक ลำดับ'.split(' '),
  ],
  name: [
    ...'name species plant nom espece nombre especie nome naam nazwa nazev'.split(' '),
    ...'название назва 名称 名稱 名前 和名 이름 ad nev ten'.split(' '),
  ],
  tag: [
    ...'tag family familie standort famille lieu familia ubicacion famiglia'.split(' '),
    ...'emplacement local rodzina miejsce misto hely yer место семейство місце родина'.split(' '),
    ...'celed θέση المكان מקום 科 場所 位置 위치 과'.split(' '),
  ],
}

/** Finds a column that is called an id, or has no name, and has a different integer in each row. */
export function guessIdColumn(columns: readonly SampleColumn[]): number | undefined {
  const integerColumns = columns.filter(hasUniqueIntegers)
  return findByWords(integerColumns, 'id') ?? integerColumns.find(({ name }) => name === '')?.index
}

/**
 * Finds a column that is called a name, or else the column with the most different strings. Beside
 * a plant, the name is that of a person or a company, and beside a genus, the species is only an
 * epithet.
 */
export function guessNameColumn(columns: readonly SampleColumn[]): number | undefined {
  const textColumns = columns.filter((column) => countDistinctTexts(column) > 0)
  for (const name of ['genus', 'name', 'plant']) {
    const isNamed = (column: SampleColumn) =>
      name === 'plant' ? rateName(column.name, name) > 1 : foldName(column.name) === name
    const column = textColumns.find(isNamed)
    if (column) return column.index
  }
  const columnWithName = findByWords(textColumns, 'name')
  if (columnWithName !== undefined) return columnWithName
  const counts = columns.map(countDistinctTexts)
  return columns[counts.indexOf(Math.max(...counts))]?.index
}

/**
 * Finds a column that is called a tag, a family or a place. If there is none, but only one column
 * remains, and its strings are short, it is this column: a list of three columns most likely has
 * the id, the name and the tag.
 */
export function guessTagColumn(columns: readonly SampleColumn[]): number | undefined {
  const columnWithName = findByWords(columns, 'tag')
  if (columnWithName !== undefined || columns.length !== 1) return columnWithName
  return columns.find(hasShortTexts)?.index
}

/** Numbers are quantities or prices, and long texts are notes. */
function hasShortTexts(column: SampleColumn): boolean {
  const { values } = column
  const isShort = values.every((value) => value.length <= maxTagLength)
  return isShort && countDistinctTexts(column) === new Set(values).size && values.length > 0
}

const maxTagLength = 40

/**
 * Whether the first row is most likely a plant, and not a header. That is so if a column has an
 * integer in all rows, because a header would have the name of the column in the first row.
 */
export function guessIsHeaderless(firstRow: Cells, columns: readonly SampleColumn[]): boolean {
  return columns.some((column) => {
    const cell = firstRow[column.index]
    return hasUniqueIntegers(column) && typeof cell === 'string' && isInteger(cell)
  })
}

function hasUniqueIntegers({ values, isFilled }: SampleColumn): boolean {
  return isFilled && values.every(isInteger) && new Set(values).size === values.length
}

function isInteger(text: string): boolean {
  return /^\s*-?\d{1,19}\s*$/.test(text)
}

function countDistinctTexts({ values }: SampleColumn): number {
  return new Set(values.filter((value) => /\p{L}/u.test(value))).size
}

function findByWords(columns: readonly SampleColumn[], field: FieldName): number | undefined {
  const words = columnWords[field]
  const scores = columns.map(({ name }) => Math.max(...words.map((word) => rateName(name, word))))
  const bestScore = Math.max(0, ...scores)
  return bestScore === 0 ? undefined : columns[scores.indexOf(bestScore)]?.index
}

/**
 * Rates how well the name of a column fits a word: 2 if the word is in the name, 1 if it is a part
 * of a longer word, as "name" is in "Pflanzenname", and 0 otherwise.
 */
function rateName(name: string, word: string): number {
  const foldedName = foldName(name)
  if (foldedName.split(/[^\p{L}\p{N}№]+/u).includes(word)) return 2
  const mayBePart = word.length > 3 || !/^\p{sc=Latin}+$/u.test(word)
  return mayBePart && foldedName.includes(word) ? 1 : 0
}
