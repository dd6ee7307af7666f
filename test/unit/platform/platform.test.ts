import { expect, test } from 'vitest'
import { escapeControlChars, escapeControlCharsInLines } from '../../../src/platform/escape.js'
import { deviceOf, environmentOf } from '../../../src/platform/io.js'
import { delayOf, maxTimer, wait } from '../../../src/platform/runtime.js'
import { shellWord } from '../../../src/platform/shell.js'
import { connect, uriOf } from '../../../src/platform/sqlite.js'
import { endingSignals, isPipe } from '../../../src/platform/streams.js'

test('a timeout that is over or too long for a timer brings no warning of Node', async () => {
  const warnings: Error[] = []
  const note = (warning: Error) => warnings.push(warning)
  process.on('warning', note)
  await wait(-5, [])
  const stop = new AbortController()
  const long = wait(Infinity, [stop.signal])
  await new Promise(setImmediate) // warnings come later
  stop.abort(new Error('Stopped'))
  await expect(long).rejects.toThrow('Stopped')
  process.off('warning', note)
  expect({ warnings, delays: [-5, 7, Infinity].map(delayOf) }).toEqual({
    warnings: [],
    delays: [0, 7, maxTimer],
  })
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

test('every character that drives a terminal, or has no width, is escaped, and no other', () => {
  const points = Array.from({ length: 0x110000 }, (_, point) => point)
  const wrong = points.filter((point) => {
    const text = String.fromCodePoint(point)
    const escaped = `\\u{${point.toString(16)}}`
    return (
      escapeControlChars(text) !==
      (/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\u200b-\u200d\u2060-\u2064\ufeff]/u.test(text)
        ? escaped
        : text)
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
  expect([shellWord(text, { isWindows: false }), shellWord(text, { isWindows: true })]).toEqual([
    posix,
    windows,
  ])
})

const [posix, windows] = [{ isWindows: false }, { isWindows: true }]

test.each([
  [windows, '\\\\server\\share\\50% #1?.db', 'file:////server/share/50%25 %231%3F.db?mode=ro'],
  [windows, 'C:\\März\\plants.db', 'file:///C:/März/plants.db?mode=ro'],
  [windows, 'c:/plants.db', 'file:///c:/plants.db?mode=ro'],
  [posix, '/srv/a\\b?.db', 'file:///srv/a\\b%3F.db?mode=ro'],
])('with %j, SQLite opens %s by a URI without a host', (system, path, uri) => {
  expect(uriOf(path, 'mode=ro', system)).toBe(uri)
})

test('a variable has any case on Windows alone', () => {
  const env = { plants_Store: 'a.db', Path: 'C:\\' }
  expect(environmentOf(env, windows)).toEqual({ PLANTS_STORE: 'a.db', PATH: 'C:\\' })
  expect(environmentOf(env, posix)).toEqual(env)
})

test.each([
  ['NUL', '\\\\.\\NUL'],
  ['nul:', '\\\\.\\nul'],
  ['\\\\.\\NUL', '\\\\.\\NUL'],
  ['nul.csv', undefined],
  ['annul', undefined],
])('on Windows alone, %s names the device %s', (path, device) => {
  expect([deviceOf(path, windows), deviceOf(path, posix)]).toEqual([device, undefined])
})

test('a pipe is known by its mode, because isFIFO is false on Windows', () => {
  expect([0o010600, 0o100600, 0o020600].map((mode) => isPipe({ mode }))).toEqual([
    true,
    false,
    false,
  ])
})

test('a closed console and Ctrl-Break drain on Windows alone', () => {
  expect(endingSignals(windows)).toEqual([...endingSignals(posix), 'SIGBREAK', 'SIGHUP'])
})
