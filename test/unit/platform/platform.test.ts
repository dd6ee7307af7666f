import { expect, test } from 'vitest'
import { escapeControlChars, escapeControlCharsInLines } from '../../../src/platform/escape.js'
import { environmentOf } from '../../../src/platform/io.js'
import { wait } from '../../../src/platform/runtime.js'
import { shellWord } from '../../../src/platform/shell.js'
import { connect } from '../../../src/platform/sqlite.js'

test('a timeout that is over brings no warning of Node', async () => {
  const warnings: Error[] = []
  const note = (warning: Error) => warnings.push(warning)
  process.on('warning', note)
  await wait(-5, [])
  await new Promise(setImmediate) // warnings come later
  process.off('warning', note)
  expect(warnings).toEqual([])
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
  const change =
    "PRAGMA writable_schema=1; UPDATE sqlite_schema SET sql = 'CREATE TABLE plants (id)'"
  expect(() => db.exec(change)).toThrow('table sqlite_master may not be modified')
  db.close()
})

const isUnsafe =
  /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u00ad\u115f\u1160\u180e\u200b\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{1d173}-\u{1d17a}\u{e0000}-\u{e007f}]|\u034f/u

test('every character that drives a terminal, or is not seen, is escaped, and no other', () => {
  const points = Array.from({ length: 0x110000 }, (_, point) => point)
  const wrong = points.filter((point) => {
    const text = String.fromCodePoint(point)
    const escaped = `\\u{${point.toString(16)}}`
    return escapeControlChars(text) !== (isUnsafe.test(text) ? escaped : text)
  })
  expect(wrong).toEqual([])
})

test('a text of several lines keeps its line breaks and tabs', () => {
  expect(escapeControlCharsInLines('a\u001b\n\tb\r\u2028')).toBe('a\\u{1b}\n\tb\\u{d}\\u{2028}')
})

test.each([
  ['C:\\Users\\ann\\plants.db', "'C:\\Users\\ann\\plants.db'", 'C:\\Users\\ann\\plants.db'],
  ['C:\\My plants', "'C:\\My plants'", '"C:\\My plants"'],
  ["$Ann's", "'$Ann'\\''s'", '"$Ann\'s"'],
  ['id,name', 'id,name', '"id,name"'], // PowerShell would make a list of it
  ['@plants', '@plants', '"@plants"'],
  ['', "''", '""'],
])('%j is %s for a POSIX shell, and %s on Windows', (text, posix, windows) => {
  expect([shellWord(text, { isWindows: false }), shellWord(text, { isWindows: true })]).toEqual([
    posix,
    windows,
  ])
})

const [posix, windows] = [{ isWindows: false }, { isWindows: true }]

test('a variable has any case on Windows alone', () => {
  const env = { plants_Store: 'a.db', Path: 'C:\\' }
  expect(environmentOf(env, windows)).toEqual({ PLANTS_STORE: 'a.db', PATH: 'C:\\' })
  expect(environmentOf(env, posix)).toEqual(env)
})
