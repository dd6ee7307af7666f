import { expect, test } from 'vitest'
import { refusal, World } from '../../helpers/world.js'

test('a switch may be given twice, and a value in one place', async () => {
  const user = new World()
  expect((await user.run('--verbose list --verbose')).code).toBe(0)
  const twice = refusal('--timeout was given twice', 'Leave out one of them')
  expect(await user.run('stores --timeout 5s list --timeout=5s')).toEqual(twice)
  for (const line of ['--color=always list --color=never', 'list --color=never --color'])
    expect((await user.run(line)).err, line).toContain('--color was given twice')
  expect((await user.run('stores list --color --color')).code).toBe(0)
})

test.each([
  ['import --columns', '--dry-run'],
  ['tokens create --note', '--allow=read'],
  ['update 1 --name', '--no-tag'],
])('an option is no value of what was left empty: plants %s %s', async (line, next) => {
  const user = new World()
  const flag = line.split(' ').at(-1)
  const what = `${flag} needs a value, but ${next.replace(/=.*/, '')} follows`
  expect(await user.run(`${line} ${next}`)).toEqual(
    refusal(what, `For such a value: ${flag}=VALUE`),
  )
  expect(user.has('data')).toBe(false)
})

test.each(['list --no-tag --tag a', 'stores set team --timeout 1s --no-timeout'])(
  'an option and its opposite exclude each other: plants %s',
  async (line) => {
    const flag = line.includes('tag') ? 'tag' : 'timeout'
    expect(await new World().run(line)).toEqual(
      refusal(`--${flag} cannot be used with --no-${flag}`, 'Leave out one of them'),
    )
  },
)

test.each([
  ['udpate 1', 'Did you mean update?'],
  ['list --limt 1', 'Did you mean --limit?'],
  // What removes something is for who mistyped its own letters
  ['dele 1', 'Did you mean delete?'],
  ['delte 1', 'Did you mean delete?'],
  ['remvoe 1', 'Did you mean remove?'],
  ['tokens revoek 1', 'Did you mean revoke?'],
  ['remote 1', 'See: plants --help'],
  ['config reset timeout', 'See: plants config --help'],
])('plants %s: %s', async (line, hint) => {
  const { code, err } = await new World().run(line)
  expect([code, err.split('\n')[1]]).toEqual([2, `  ${hint}`])
})

test.each([
  ['create -xSECRET', 'Unknown option -x', 'See: plants create --help'],
  ["create --n'ame=SECRET", "Unknown option --n'ame", 'Did you mean --name?'],
  ['get -1 -qzSECRET', 'Unknown option -z', 'See: plants get --help'],
  ['--bad=SECRET list', 'Unknown option --bad', 'See: plants --help'],
  ['list --quit=SECRET', 'Unknown option --quit', 'Did you mean --quiet?'],
  ['list --quit', 'Unknown option --quit', 'Did you mean --quiet?'],
])('an unknown option is named without its value: plants %s', async (line, what, hint) => {
  expect(await new World().run(line)).toEqual(refusal(what, hint))
})

test.each(['create --help=1', 'create --name Fern --help=yes'])(
  'the help ignores a value: plants %s',
  async (line) => {
    expect((await new World().run(line)).out).toMatch(/^Usage: plants create/)
  },
)

test('options of a store may stand before the command that saves them', async () => {
  const user = new World()
  expect(
    (await user.run('--timeout 5s --allow-http stores add team https://plants.example.com')).code,
  ).toBe(0)
  const team = { address: 'https://plants.example.com', timeout: '5s', 'allow-http': true }
  expect(user.saved).toMatchObject({ stores: { team } })
})

test.each([
  ['tokens create --expires 90d', 0],
  ['tokens create --expires 90', 2], // a unit is needed: people mean days
  ['list --timeout 1w', 2],
])('a duration has a unit: plants %s', async (line, code) => {
  expect((await new World().run(line)).code).toBe(code)
})

test('a store that cannot be reached is tried for as many plants as are read at once, and no more', async () => {
  const ids = Array.from({ length: 200 }, (_, index) => String(index))
  const line = ['get', ...ids, '--store', 'http://127.0.0.1:9', '--timeout', '1ms']
  const { code, err } = await new World().run(line, { env: { PLANTS_TOKEN: 's3cret-token' } })
  expect([code, err.match(/^plants: Could not reach/gm)?.length]).toEqual([4, 64])
})
