import { expect, test } from 'vitest'
import { escapeControlChars } from '../../../src/platform/escape.js'
import { World } from '../../helpers/world.js'

test.each([
  ['a\u200bb', 'a\\u{200b}b'],
  ['\u2060\ufeffx', '\\u{2060}\\u{feff}x'],
  ['a\u202eb\u2066', 'a\\u{202e}b\\u{2066}'],
  ['\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645', undefined], // Persian
  ['\u0915\u094d\u200d\u0937', undefined], // Devanagari, after a mark
  ['\u{1f469}\u{1f3fd}\u200d\u{1f33e}', undefined], // an emoji with a skin tone
  ['\u2764\ufe0f\u200d\u{1f525}', undefined],
  ['\u200dx', '\\u{200d}x'],
  ['x\u200d', 'x\\u{200d}'],
  ['1\u200d2', '1\\u{200d}2'],
])('what a terminal would not show, or would obey, is escaped: %j', (text, escaped = text) => {
  expect(escapeControlChars(text)).toBe(escaped)
})

test('an error wraps at spaces on a terminal, but not in a command or a path', async () => {
  const user = new World()
  const store = './a place with spaces/in many of its names/garden.db'
  const run = (options: object) => user.run(['get', '1', '--no-color', '--store', store], options)
  const whole = (await run({})).err
  const [message, hint] = whole.trimEnd().split('\n')
  const path = `${user.home}/a place with spaces/in many of its names/garden.db`
  expect([message, hint]).toEqual([`plants: There is no store at ${path}`, expect.stringMatching(/^ {2}Check /)])
  expect((await run({ terminals: ['stderr'], columns: 40 })).err).toBe(`\
plants: There is no store at
  ${path}
  Check the address. plants create
  creates a missing store
`)
})

test('a command in a hint stays in one line', async () => {
  const user = new World()
  const { err } = await user.run('auth status --store http://plants.example.com --no-color', {
    terminals: ['stderr'],
    columns: 40,
  })
  expect(err).toBe(`\
plants: There is no token for
  http://plants.example.com
  Set PLANTS_TOKEN, or save one with:
  plants auth login --store http://plants.example.com
`)
})
