import { expect, test } from 'vitest'
import { foldText } from '../../../../src/stores/common/search.js'
import { addFoldFunction } from '../../../../src/stores/sqlite/connection.js'
import { foldedSql } from '../../../../src/stores/sqlite/read.js'
import { DatabaseSync } from '../../../helpers/sqlite-file.js'

test('SQLite folds texts as JavaScript does, whether it calls it or not', () => {
  const db = new DatabaseSync(':memory:')
  addFoldFunction(db)
  const characters = Array.from({ length: 0x1_0000 }, (_, code) => String.fromCodePoint(code))
  const texts = characters
    .filter((character) => character !== '\0' && character.isWellFormed())
    .concat('🌿', '👩‍🌾', '𐐀', '\u{1d15e}')
    .flatMap((one) => (one < '\u0250' ? [one, `가${one}が`] : [one]))
  const select = `SELECT value AS text, ${foldedSql('value')} AS folded FROM json_each(?)`
  const rows = db.prepare(select).all(JSON.stringify(texts))
  expect(rows).toHaveLength(texts.length)
  expect(rows.filter(({ text, folded }) => folded !== foldText(String(text)))).toEqual([])
  expect(db.prepare(`SELECT ${foldedSql('NULL')} AS folded`).get()).toEqual({ folded: null })
  db.close()
})
