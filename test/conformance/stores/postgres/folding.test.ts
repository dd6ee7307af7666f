import { describe, expect, test } from 'vitest'
import { foldText } from '../../../../src/stores/common/search.js'
import { containsSql, foldedSql, type LowerCase } from '../../../../src/stores/postgres/folding.js'
import { contains, soughtText } from '../../../../src/stores/postgres/search-patterns.js'
import { literal } from '../../../../src/stores/postgres/sql.js'
import { installations } from '../../../helpers/postgres/installation.js'
import { reusedDatabase } from '../../../helpers/postgres.js'

/** Every letter that has another case, alone and after others; and normalized texts. */
const texts = Array.from({ length: 0x2_0000 }, (_, code) => String.fromCodePoint(code))
  .filter((character) => /\p{Changes_When_Casemapped}/u.test(character))
  .flatMap((letter) => [letter, `xΣ${letter}`, `${letter}\u0301\u0316\u{20dd}`])

describe.each(installations)('$name', (installation) => {
  const database = reusedDatabase(installation)

  test.each(['und-x-icu', 'tr-x-icu', 'C'])(
    'folds and finds texts of the locale %s as JavaScript does',
    async (locale) => {
      const { sql } = await database()
      const found = await sql(
        `SELECT collname FROM pg_collation WHERE collname IN ('pg_c_utf8', 'und-x-icu')`,
      )
      const lowerCases = [undefined, ...found.map(({ collname }) => collname as LowerCase)]
      expect(lowerCases.length).toBeGreaterThan(1)
      const values = `(VALUES ${texts.map((text, index) => `(${index}, ${literal(text)} COLLATE "${locale}")`).join()})`
      for (const lowerCase of lowerCases) {
        const select = `SELECT ${foldedSql('text', lowerCase)} AS folded FROM ${values} AS texts (id, text) ORDER BY id`
        const folded = (await sql(select)).map((row) => row['folded'])
        const wrong = texts.filter((text, index) => folded[index] !== foldText(text))
        expect({ lowerCase, wrong }).toEqual({ lowerCase, wrong: [] })
      }
      for (const search of ['ß', 's', 'ς', 'İ', 'ſt', 'ά', 'й', 'ꭰ', '𐐀']) {
        const sought = soughtText(search)
        const select = `SELECT text FROM ${values} AS texts (id, text) WHERE ${containsSql('text', sought)} ORDER BY id`
        const matching = (await sql(select)).map(({ text }) => text)
        expect({ search, matching }).toEqual({
          search,
          matching: texts.filter((text) => contains(text, sought)),
        })
      }
    },
  )
})
