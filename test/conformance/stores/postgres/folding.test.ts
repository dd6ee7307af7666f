import { escapeLiteral as literal } from 'pg'
import { describe, expect, test } from 'vitest'
import { foldText } from '../../../../src/stores/common/search.js'
import { containsSql, foldedSql } from '../../../../src/stores/postgres/read.js'
import { installations } from '../../../helpers/postgres/installation.js'
import { reusedDatabase } from '../../../helpers/postgres.js'

/** Letters of Unicode 16 and 17, which not every database knows. */
const newest = /[\u1c89\u1c8a\ua7cb-\ua7d5\ua7da-\ua7dc\u{10d50}-\u{10d8f}\u{16ea0}-\u{16ed3}]/u

/** Every letter that has another case, alone, after others, and with marks in another order than the normal one. */
const texts = Array.from({ length: 0x2_0000 }, (_, code) => String.fromCodePoint(code))
  .filter((letter) => /\p{Changes_When_Casemapped}/u.test(letter))
  .flatMap((letter) => [letter, `xΣ${letter}`, `${letter}Σ`, `${letter}\u0301\u0316\u{20dd}`])
  .concat([
    'й',
    'и\u0306',
    'ро\u0308',
    'ǻ',
    'a\u030a\u0301',
    '가',
    '\u1100\u1161',
    '蕨',
    '🌿',
    'x\uffff',
  ])
  .concat(['\u0301\u0316', '\u05b9\u05b0', '\u0f73'].map((marks) => `É${marks.repeat(31)}É`))
  .concat(['\u0301\u0316', '\u05b9\u05b0'].map((marks) => `É${marks.repeat(15)}É`))
  .concat(['\uffff', '\u{2ffff}', '\u{e0100}'].map((other) => `É${other.repeat(31)}É`))
  .concat(Array.from({ length: 0x2fff }, (_, index) => String.fromCodePoint(index + 1)))
  .filter((text) => !newest.test(text))

const soughtTexts = Array.from('aeinsmkåéßæÖσςάийж銀ʼˣﬁ가1[.\\').concat(
  'ss',
  'as',
  'é1',
  '('.repeat(200),
)

describe.each(installations)('$name', (installation) => {
  const database = reusedDatabase(installation)
  const collation = async () => {
    const newer = await (await database()).sql(
      `SELECT FROM pg_collation WHERE collname = 'pg_unicode_fast'`,
    )
    return newer.length > 0 ? 'pg_unicode_fast' : 'und-x-icu'
  }

  test.each(['und-x-icu', 'tr-x-icu', 'C'])(
    'folds texts of the locale %s as JavaScript does',
    async (locale) => {
      const { sql } = await database()
      const folded = foldedSql('text', await collation())
      const rows = texts.map((text, id) => `(${id}, ${literal(text)} COLLATE "${locale}")`)
      const found = await sql(
        `SELECT ${folded} AS folded FROM (VALUES ${rows.join()}) AS texts (id, text) ORDER BY id`,
      )
      expect(texts.filter((text, index) => found[index]?.['folded'] !== foldText(text))).toEqual([])
    },
  )

  test('finds texts as JavaScript does', async () => {
    const { sql } = await database()
    const rows = texts.map((text, id) => `(${id}, ${literal(text)})`)
    const sought = soughtTexts.map(foldText)
    const using = await collation()
    const columns = sought.map((folded) => containsSql('text', folded, using)).join()
    const found = await sql(
      `SELECT ARRAY[${columns}] AS found FROM (VALUES ${rows.join()}) AS texts (id, text) ORDER BY id`,
    )
    const expected = texts.map((text) => sought.map((folded) => foldText(text).includes(folded)))
    const isWrong = (_: string, index: number) =>
      `${found[index]?.['found']}` !== `${expected[index]}`
    expect(texts.filter(isWrong)).toEqual([])
  })

  test.each([
    ['accents', '\u0301', '\u0316'],
    ['Hebrew points', '\u05bc', '\u05b0'],
    ['stems and dots of notes', '\u{1d16d}', '\u{1d165}'],
  ])(
    'folds a long run of %s in a time that does not grow with its square',
    async (_, one, other) => {
      const { sql } = await database()
      const folded = foldedSql('text', await collation())
      const half = 100_000
      const text = `a${one.repeat(half)}${other.repeat(half)}`
      // It would take minutes, and no timeout of the server would end it.
      const found = await sql(
        `SELECT char_length(${folded}) AS length FROM (VALUES (${literal(text)})) AS texts (text)`,
      )
      expect(found).toEqual([{ length: 2 * half + 1 }])
    },
  )
})
