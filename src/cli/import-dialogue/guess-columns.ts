/*
 * Guesses which column has which field. The guess is the answer that Enter gives, so a wrong guess
 * costs a person only a few keys. An import without the dialogue uses none of these guesses.
 */
import { type Column, isInteger } from '../../fields/sample.js'
import { foldLabel } from '../../formats/names.js'

/**
 * The words by which a field is found in the names of columns, in the languages in which plant
 * lists are written. Chinese and Japanese have no spaces between words, so a word that is not in
 * Latin letters may be anywhere in the name of a column.
 */
export const columnWords = {
  id: [
    ...'id nr no n number code numero numer cislo № номер 番号 编号 編號 번호'.split(' '),
    ...'lp num stt szam αριθμόσ מספר رقم क्रमांक ลำดับ'.split(' '),
  ],
  name: [
    ...'name species plant nom espece nombre especie nome naam nazwa nazev'.split(' '),
    ...'название назва 名称 名稱 名前 和名 이름 ad nev ten'.split(' '),
  ],
  genus: 'genus gattung genre genero genere'.split(' '),
  tag: [
    ...'tag family familie standort famille lieu familia ubicacion famiglia'.split(' '),
    ...'rodzina miejsce hely место семейство місце родина'.split(' '),
    ...'celed θέση المكان מקום 科 場所 位置 위치 과'.split(' '),
  ],
}

/**
 * Finds a column that is called an id, and has a different integer in each row. Without a header,
 * only the first column may be one: the others may be sizes or prices.
 *
 * @param isHeaderless whether no column has a name that could say so
 */
export function guessIdColumn(
  columns: readonly Column[],
  isHeaderless = false,
): Column | undefined {
  if (isHeaderless) return columns.slice(0, 1).find((column) => column.hasUniqueIntegers)
  return findByWords(
    columns.filter((column) => column.hasUniqueIntegers),
    'id',
  )
}

/**
 * Finds a column that is called a name, or else the column with the most different strings. What is
 * called an id has codes, so it is the name only if there is no other column. Next to a plant, such
 * as "Donated plant", the name is that of a person or a company, and next to a genus, the species
 * is only an epithet.
 */
export function guessNameColumn(columns: readonly Column[]): Column | undefined {
  const otherColumns = columns.filter(({ name }) => !splitWords(name).includes('id'))
  const candidates = otherColumns.length > 0 ? otherColumns : columns
  const textColumns = candidates.filter((column) => countDistinctTexts(column) > 0)
  const mostTexts = Math.max(...candidates.map(countDistinctTexts))
  return (
    textColumns.find(isGenusColumn) ??
    textColumns.find(({ name }) => foldLabel(name) === 'name') ??
    textColumns.find(({ name }) => splitWords(name).at(-1) === 'plant') ??
    findByWords(textColumns, 'name') ??
    candidates.find((column) => countDistinctTexts(column) === mostTexts)
  )
}

/** Whether a column has genera, which are only the first part of a name. */
export function isGenusColumn({ name }: Column): boolean {
  return columnWords.genus.includes(foldLabel(name))
}

/** Finds the column of the epithets, which begin with a small letter. */
export function guessRestOfName(columns: readonly Column[]): Column | undefined {
  return columns.find(
    ({ values }) => values.length > 0 && values.every((value) => /^[\p{Ll}×]/u.test(value)),
  )
}

/**
 * Finds a column that is called a tag, a family or a place. If there is none, but only one column
 * remains, its strings are short, and it is not called an id, it is this column: a list of three
 * columns most likely has the id, the name and the tag.
 */
export function guessTagColumn(columns: readonly Column[]): Column | undefined {
  const isOnlyColumn = columns.length === 1 && findByWords(columns, 'id') === undefined
  return findByWords(columns, 'tag') ?? (isOnlyColumn ? columns.find(hasShortTexts) : undefined)
}

/** Numbers are quantities or prices, and long texts are notes. */
function hasShortTexts(column: Column): boolean {
  const { values } = column
  const isShort = values.every((value) => value.length <= maxTagLength)
  return isShort && countDistinctTexts(column) === new Set(values).size && values.length > 0
}

const maxTagLength = 40

/**
 * Whether the first row is most likely a plant, and not a header. That is so if a column has an
 * integer in all rows, because a header would have the name of the column in the first row, and if
 * the only column is not called a name.
 */
export function guessIsHeaderless(columns: readonly Column[]): boolean {
  const isListOfNames = columns.length === 1 && findByWords(columns, 'name') === undefined
  return (
    isListOfNames || columns.some((column) => isInteger(column.name) && column.hasUniqueIntegers)
  )
}

/** Whether a column may be chosen as the id, which needs integers. */
export function hasIntegers({ values }: Column): boolean {
  return values.some(isInteger)
}

function countDistinctTexts({ values }: Column): number {
  return new Set(values.filter((value) => /\p{L}/u.test(value))).size
}

function findByWords(columns: readonly Column[], field: 'id' | 'name' | 'tag'): Column | undefined {
  const words = columnWords[field]
  const scores = columns.map(({ name }) => Math.max(...words.map((word) => rateName(name, word))))
  const bestScore = Math.max(0, ...scores)
  return bestScore === 0 ? undefined : columns[scores.indexOf(bestScore)]
}

/**
 * Rates how well the name of a column fits a word: 2 if the word is in the name, 1 if it is a part
 * of a longer word, as "name" is in "Pflanzenname", and 0 otherwise.
 */
function rateName(name: string, word: string): number {
  if (splitWords(name).includes(word)) return 2
  const mayBePart = word.length > 3 || !/^\p{sc=Latin}+$/u.test(word)
  return mayBePart && foldLabel(name).includes(word) ? 1 : 0
}

function splitWords(name: string): string[] {
  return foldLabel(name).split(/[^\p{L}\p{N}№]+/u)
}
