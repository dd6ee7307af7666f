import { escapeLiteral as literal } from 'pg'
import { describe, expect, test } from 'vitest'
import { foldString } from '../../../src/plant/folding.js'
import { buildFoldedColumn } from '../../../src/stores/postgres/read.js'
import { shareDatabase } from '../../helpers/postgres/database.js'
import { installations } from '../../helpers/postgres/server.js'

/** Letters of Unicode 16 and 17, which not every database knows. */
const newest = /[\u1c89\u1c8a\ua7cb-\ua7d5\ua7da-\ua7dc\u{10d50}-\u{10d8f}\u{16ea0}-\u{16ed3}]/u

/** Every letter that has another case, alone, after others, and with marks in another order than the normal one. */
const texts = Array.from({ length: 0x2_0000 }, (_, code) => String.fromCodePoint(code))
  .filter((letter) => /\p{Changes_When_Casemapped}/u.test(letter))
  .flatMap((letter) => [letter, `xΣ${letter}`, `${letter}Σ`, `${letter}\u0301\u0316\u{20dd}`])
  .concat(['й', 'и\u0306', 'ро\u0308', 'ǻ', 'a\u030a\u0301', '가', '\u1100\u1161', '蕨', '🌿'])
  .concat(['\u0301\u0316', '\u05b9\u05b0', '\u0f73'].map((marks) => `É${marks.repeat(31)}É`))
  .concat(['\u0301\u0316', '\u05b9\u05b0'].map((marks) => `É${marks.repeat(15)}É`))
  .concat(['\uffff', '\u{2ffff}', '\u{e0100}'].map((other) => `É${other.repeat(31)}É`))
  .concat(Array.from({ length: 0x2fff }, (_, index) => String.fromCodePoint(index + 1)))
  .filter((text) => !newest.test(text))

describe.each(installations)('$name', (installation) => {
  const getDatabase = shareDatabase(installation)

  async function folded(given: string[], locale: string): Promise<unknown[]> {
    const { query } = await getDatabase()
    const newer = await query(`SELECT FROM pg_collation WHERE collname = 'pg_unicode_fast'`)
    const fold = buildFoldedColumn('text', newer.length > 0 ? 'pg_unicode_fast' : 'und-x-icu')
    const rows = given.map((text, id) => `(${id}, ${literal(text)} COLLATE "${locale}")`)
    const values = `(VALUES ${rows.join()}) AS texts (id, text)`
    const found = await query(`SELECT ${fold} AS folded FROM ${values} ORDER BY id`)
    return found.map((row) => row['folded'])
  }

  test.each(['tr-x-icu', 'C'])(
    'PostgreSQL folds strings of the locale %s as JavaScript does',
    async (locale) => {
      const found = await folded(texts, locale)
      expect(texts.filter((text, index) => found[index] !== foldString(text))).toEqual([])
    },
  )

  // It would take minutes, and no timeout of the server would end it.
  test('the time to fold many accents in a row does not grow with the square of their number', async () => {
    const pairs = ['\u0301\u0316', '\u05bc\u05b0', '\u{1d16d}\u{1d165}']
    const runs = pairs.map((pair) => Array.from(pair, (mark) => mark.repeat(100_000)).join(''))
    expect(await folded(runs, 'C')).toEqual(runs)
  })
})
