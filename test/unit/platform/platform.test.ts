import { expect, test } from 'vitest'
import { delayOf, maxTimer, wait } from '../../../src/platform/clock.js'
import { posixWord, windowsWord } from '../../../src/platform/errors.js'
import { escapeControlChars, escapeControlCharsInLines } from '../../../src/platform/escape.js'
import { connect } from '../../../src/platform/sqlite.js'

test('a timeout that is over or too long for a timer brings no warning of Node', async () => {
  const warnings: Error[] = []
  const note = (warning: Error) => warnings.push(warning)
  process.on('warning', note)
  await wait(-5, [])
  await new Promise(setImmediate) // warnings come later
  process.off('warning', note)
  expect({ warnings, delays: [-5, 7, Infinity].map(delayOf) }).toEqual({ warnings: [], delays: [0, 7, maxTimer] })
})

test('the driver of SQLite is loaded once, because what it loads is never freed', () => {
  const [first, second] = [':memory:', ':memory:'].map((uri) => connect(uri, { readOnly: false }))
  expect(first?.constructor).toBe(second?.constructor)
  first?.close()
  second?.close()
})

test('a connection cannot change the schema of a file past the checks of SQLite', () => {
  const db = connect(':memory:', { readOnly: false })
  db.exec('CREATE TABLE plants (id INTEGER PRIMARY KEY)')
  const change = "PRAGMA writable_schema=1; UPDATE sqlite_schema SET sql = 'CREATE TABLE plants (id)'"
  expect(() => db.exec(change)).toThrow('table sqlite_master may not be modified')
  db.close()
})

test('every character that drives a terminal, or has no width, is escaped, and no other', () => {
  const points = Array.from({ length: 0x110000 }, (_, point) => point)
  const wrong = points.filter((point) => {
    const text = String.fromCodePoint(point)
    const escaped = `\\u{${point.toString(16)}}`
    return (
      escapeControlChars(text) !==
      (/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u200b-\u200d\u2060-\u2064\ufeff]/u.test(text) ? escaped : text)
    )
  })
  expect(wrong).toEqual([])
})

test('a text of several lines keeps its line breaks and tabs', () => {
  expect(escapeControlCharsInLines('a\u001b\n\tb\r\u2028')).toBe('a\\u{1b}\n\tb\\u{d}\\u{2028}')
})

test.each([
  ['C:\\Users\\ann\\plants.db', "'C:\\Users\\ann\\plants.db'", 'C:\\Users\\ann\\plants.db'],
  ['C:\\My plants\\', "'C:\\My plants\\'", '"C:\\My plants\\\\"'], // a program takes \\" for a quote
  ['5 $ "a"', '\'5 $ "a"\'', '\'5 $ "a"\''],
  ["$Ann's", "'$Ann'\\''s'", "'$Ann''s'"],
  ['id,name', 'id,name', '"id,name"'], // PowerShell would make a list of it
  ['@plants', '@plants', '"@plants"'],
  ['', "''", '""'],
])('%j is %s for a POSIX shell, and %s on Windows', (text, posix, windows) => {
  expect([posixWord(text), windowsWord(text)]).toEqual([posix, windows])
})
