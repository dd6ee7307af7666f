/*
 * Guesses which column has which field. A guess is the answer that Enter gives in the dialogue of an
 * import, and what the hint of an error proposes. An import never reads a column by a guess alone.
 */
import { foldLabel } from '../formats/names.js'
import { type Column, isInteger } from './sample.js'

/**
 * The words by which a field is found in the names of columns, in the languages in which plant
 * lists are written. Chinese and Japanese have no spaces between words, so a word that is not in
 * Latin letters may be anywhere in the name of a column.
 */
export const columnWords = {
  id: [
    ...'id objectid nr no n number code numer cislo № номер 番号 编号 編號 번호'.split(' '),
    ...'lp num stt szam αριθμόσ מספר رقم क्रमांक ลำดับ'.split(' '),
  ],
  name: [
    ...'name plant nom nombre nome naam nazwa nazev pflanze'.split(' '),
    ...'название назва 名称 名稱 名前 和名 이름 ad nev ten'.split(' '),
  ],
  flower: ['花'],
  species: 'species espec common latin scientific botani'.split(' '),
  genus: 'genus gattung genre genero genere'.split(' '),
  epithet: 'spec art'.split(' '),
  tag: [
    ...'tag family familie standort famille lieu familia ubicacion famiglia'.split(' '),
    ...'bed beet location place'.split(' '),
    ...'rodzina miejsce hely место семейство місце родина'.split(' '),
    ...'celed θέση المكان מקום 科 場所 位置 위치 과'.split(' '),
  ],
}

const nameWords = [...columnWords.name, ...columnWords.species]

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
  const candidates = columns.filter((column) => column.hasUniqueIntegers)
  if (isHeaderless) return candidates.find(({ number }) => number === 1)
  return findByWords(candidates, columnWords.id)
}

/**
 * Finds a column that is called a name, or else the column with the most different strings. What is
 * called an id, a family or a place is the name only if there is no other column, and a column whose
 * values repeat, such as "Plant type", only if no other is called a name. Next to a plant, such as
 * "Donated plant", the name is that of a person or a company. Next to a genus, the species is only
 * an epithet.
 */
export function guessNameColumn(columns: readonly Column[]): Column | undefined {
  const genus = columns.find((column) => isGenusColumn(column, columns))
  if (genus && guessRestOfName(columns)) return genus
  const otherColumns = columns.filter((column) => !isCalledOtherwise(column))
  const candidates = otherColumns.length > 0 ? otherColumns : columns
  const textColumns = candidates.filter((column) => countDistinctTexts(column) > 0)
  // In a register of trees, a species repeats, and the names of streets differ.
  const likelyColumns = textColumns.filter(
    (column) =>
      countDistinctTexts(column) * 2 > column.values.length ||
      rateName(column.name, columnWords.species) > 0,
  )
  const nameCounts = candidates.map(countDistinctNames)
  return (
    likelyColumns.find(({ name }) => splitWords(name).at(-1) === 'plant') ??
    findByWords(likelyColumns, nameWords) ??
    findByWords(textColumns, nameWords) ??
    textColumns.find(({ name }) => hasWord(name, columnWords.flower)) ??
    genus ??
    candidates[nameCounts.indexOf(Math.max(...nameCounts))]
  )
}

/** Whether the name of a column says that it has ids, genera or tags. */
function isCalledOtherwise({ name }: Column): boolean {
  const { id, genus, tag } = columnWords
  return hasWord(name, [...id, ...genus]) || rateName(name, tag) > 0
}

/** Whether the name of a column, or of a key, says that it has names. */
export function isCalledName(name: string): boolean {
  return rateName(name, [...nameWords, ...columnWords.genus]) > 0
}

/**
 * Whether a column has genera, which are only the first part of a name. Without a header, that is a
 * column of single words in front of one of Latin epithets.
 */
export function isGenusColumn(
  { name, number, values }: Column,
  columns: readonly Column[],
): boolean {
  if (name !== '') return columnWords.genus.includes(foldLabel(name))
  const areWords = values.length > 0 && values.every((value) => /^\p{Lu}\S+$/u.test(value))
  return areWords && guessRestOfName(columns)?.number === number + 1
}

/**
 * Finds the column of the epithets: one that is called a species, of whose values at least half begin
 * with a small letter, or else one whose values look like Latin epithets.
 */
export function guessRestOfName(columns: readonly Column[]): Column | undefined {
  return (
    columns.find(
      ({ name, values }) =>
        rateName(name, columnWords.epithet) > 0 && hasShare(values, 0.5, smallLetter),
    ) ?? columns.find(looksLikeEpithets)
  )
}

/**
 * Types and paths begin with a small letter, too, so half of the values must have a Latin ending.
 * Without a header, these must be different, because tags may be Latin.
 */
function looksLikeEpithets({ name, values }: Column): boolean {
  const words = name === '' ? [...new Set(values)] : values
  const endings = words.filter((word) => /(?:[ai]|us|um|is|ae|ns|se)$/.test(word))
  return hasShare(values, 1, smallLetter) && endings.length * 2 >= values.length
}

const smallLetter = /^[\p{Ll}×]/u

function hasShare(values: readonly string[], share: number, pattern: RegExp): boolean {
  const matchingValues = values.filter((value) => pattern.test(value))
  return values.length > 0 && matchingValues.length >= share * values.length
}

/**
 * Finds a column that is called a tag, a family or a place, or else one of short strings which
 * repeat, as those of groups do. If only one column remains, and it is not called an id, its strings
 * may differ: a list of three columns most likely has the id, the name and the tag. Without a
 * header, columns of numbers do not count.
 */
export function guessTagColumn(columns: readonly Column[]): Column | undefined {
  const candidates = columns.filter(
    (column) => column.name !== '' || countDistinctTexts(column) > 0,
  )
  const isOnlyColumn =
    candidates.length === 1 && findByWords(candidates, columnWords.id) === undefined
  const shortTexts = candidates.filter(hasShortTexts)
  const groups = shortTexts.filter((column) => isOnlyColumn || hasGroups(column))
  // The first rows of a sorted list may all have the same group.
  return (
    findByWords(columns, columnWords.tag) ??
    groups.find(({ values }) => new Set(values).size > 1) ??
    groups[0]
  )
}

/** Numbers are quantities or prices, and long texts are notes. */
function hasShortTexts(column: Column): boolean {
  const { values } = column
  const isShort = values.every((value) => value.length <= maxTagLength)
  return isShort && countDistinctTexts(column) === new Set(values).size && values.length > 0
}

const maxTagLength = 45

function hasGroups({ values }: Column): boolean {
  return new Set(values).size * 2 <= values.length
}

/**
 * Whether the first row is most likely a plant, and not a header: if it looks like a plant, or if
 * the only column with cells is not called a name.
 */
export function guessIsHeaderless(columns: readonly Column[]): boolean {
  const filledColumns = columns.filter(({ name, values }) => name !== '' || values.length > 0)
  const isListOfNames = filledColumns.length === 1 && !findByWords(filledColumns, nameWords)
  return isListOfNames || looksLikePlant(columns.map(({ name }) => name))
}

/**
 * Whether a row has numbers beside texts, which are no names of columns. Different years are: each
 * may have a column of quantities.
 */
export function looksLikePlant(cells: readonly string[]): boolean {
  const numbers = cells.filter((cell) => /^[-+]?\d+(?:[.,]\d+)*$/.test(cell))
  const areYears =
    numbers.every((number) => /^(?:19|20)\d\d$/.test(number)) &&
    new Set(numbers).size === numbers.length
  return numbers.length > 0 && !areYears && cells.some((cell) => /\p{L}/u.test(cell))
}

/** Whether a column may be chosen as the id: at least half of its values can be ids. */
export function mayBeIds({ values }: Column): boolean {
  return values.length > 0 && values.filter(isInteger).length * 2 >= values.length
}

function countDistinctTexts({ values }: Pick<Column, 'values'>): number {
  return new Set(values.filter((value) => /\p{L}/u.test(value))).size
}

/**
 * Counts the strings that may be names. A single word with digits is a code, a pot or a date, and a
 * long text is a description.
 */
function countDistinctNames({ values }: Column): number {
  const isCode = (value: string) => /\d/.test(value) && !/\s/.test(value)
  const isName = (value: string) => !isCode(value) && value.length <= maxNameLength
  return countDistinctTexts({ values: values.filter(isName) })
}

const maxNameLength = 100

function findByWords(columns: readonly Column[], words: readonly string[]): Column | undefined {
  const scores = columns.map(({ name }) => rateName(name, words))
  const bestScore = Math.max(0, ...scores)
  return bestScore === 0 ? undefined : columns[scores.indexOf(bestScore)]
}

/**
 * Rates how well the name of a column fits words: 2 if one of them is in the name, 1 if one is a
 * part of a longer word, as "name" is in "Pflanzenname", and 0 otherwise.
 */
function rateName(name: string, words: readonly string[]): number {
  if (hasWord(name, words)) return 2
  const parts = words.filter((word) => word.length > 3 || !/^\p{sc=Latin}+$/u.test(word))
  return parts.some((word) => foldLabel(name).includes(word)) ? 1 : 0
}

function hasWord(name: string, words: readonly string[]): boolean {
  const nameWords = splitWords(name)
  return words.some((word) => nameWords.includes(word))
}

/** Splits `plantId`, too, which is usual in JSON. */
function splitWords(name: string): string[] {
  return foldLabel(name.replace(/(?<=\p{Ll})(?=\p{Lu})/gu, ' ')).split(/[^\p{L}\p{N}№]+/u)
}
