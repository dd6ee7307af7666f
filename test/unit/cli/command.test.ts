import { expect, test } from 'vitest'
import { create } from '../../../src/cli/commands/create.js'
import { list } from '../../../src/cli/commands/list.js'
import { ioOf } from '../../helpers/run.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

test('a command runs with its options and streams in memory', async () => {
  const user = new World()
  const written: string[] = []
  const stdout = { ...ioOf({}).stdout, write: async (text: string) => void written.push(text) }
  const io = ioOf({ env: user.env, cwd: user.home }, stdout)
  await create({ id: '1', name: 'Fern', store: './x.db' }, io)
  await list({ sort: 'id', store: './x.db' }, io)
  expect(written).toEqual(['{"name":"Fern"}\n', '{"id":1,"name":"Fern"}\n'])
})

test.each([
  ['--store', './a.db'],
  ['--output', 'json'],
  ['--timeout', '5s'],
  ['--ca-cert', 'ca.pem'],
])('%s before and after the name of a command is given twice', async (flag, value) => {
  const user = new World()
  const twice = refusal(`${flag} was given twice`, 'Leave out one of them')
  for (const line of [`${flag} ${value} list ${flag} ${value}`, `stores ${flag} ${value} list ${flag}=${value}`]) {
    const { err } = await user.run(line)
    expect({
      ...twice,
      err: err.replace(/^\{.*"message":"(.*?)".*\n$/s, 'plants: $1\n  Leave out one of them\n'),
    }).toEqual(twice)
  }
  expect((await user.run(`--verbose list --verbose`)).code).toBe(0)
})

test.each([
  ['create --id 1 --name', '--dry-run'],
  ['import --columns', '--dry-run'],
  ['import --map', '--atomic'],
  ['tokens create --note', '--allow=read'],
  ['export --out', '--tag=nothing'],
  ['update 1 --name', '--no-tag'],
  ['list --store', '--verbose'],
])('an option is no value of what was left empty: plants %s %s', async (line, next) => {
  const user = new World()
  const flag = line.split(' ').at(-1)
  const what = `${flag} needs a value, but ${next.replace(/=.*/, '')} follows`
  expect(await user.run(`${line} ${next}`)).toEqual(refusal(what, `For such a value: ${flag}=VALUE`))
  expect(user.has('data')).toBe(false)
})

test('--dry-run behind an equals sign is a value', async () => {
  expect(await new World().run('create --id 1 --name=--dry-run')).toEqual({
    ...answer({ name: '--dry-run' }),
    err: expect.stringContaining(''),
  })
})

test.each(['list --tag a --no-tag', 'list --no-tag --tag a', 'stores set team --timeout 1s --no-timeout'])(
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
  ['help creat', 'Did you mean create?'],
  ['help stores ad', 'Did you mean add?'],
  ['list --limt 1', 'Did you mean --limit?'],
  ['list --outptu json', 'Did you mean --output?'],
  // What removes something is not for who mistyped another word
  ['dele 1', 'See: plants --help'],
  ['stores remote team', 'See: plants stores --help'],
  ['auth layout', 'See: plants auth --help'],
])('plants %s: %s', async (line, hint) => {
  const { code, err } = await new World().run(line)
  expect([code, err.split('\n')[1]]).toEqual([2, `  ${hint}`])
})

test('the help of a command runs none', async () => {
  const user = new World()
  user.write('plants.csv', 'id,name\n1,Fern\n')
  expect((await user.run('help import plants.csv')).code).toBe(2)
  expect(user.has('data')).toBe(false)
})

test.each(['--help=foo', 'create --help=foo'])('plants %s is help', async (line) => {
  expect(await new World().run(line)).toEqual(printed(expect.stringMatching(/^Usage: plants /)))
})

test('options of a store may stand before the command that saves them', async () => {
  const user = new World()
  expect((await user.run('--timeout 5s --allow-http stores add team https://plants.example.com')).code).toBe(0)
  const team = { address: 'https://plants.example.com', timeout: '5s', 'allow-http': true }
  expect(user.saved).toMatchObject({ stores: { team } })
})

test.each([
  ['list --timeout 2', 0],
  ['list --timeout 500ms', 0],
  ['list --timeout 1h', 0],
  ['tokens create --expires 90d', 0],
  ['tokens create --expires 90', 2], // a unit is needed: people mean days
  ['list --timeout 1w', 2],
])('a duration has a unit, which for a wait is seconds: plants %s', async (line, code) => {
  expect((await new World().run(line)).code).toBe(code)
})

test('a store that cannot be reached is tried for as many plants as are read at once, and no more', async () => {
  const ids = Array.from({ length: 200 }, (_, index) => String(index))
  const line = ['get', ...ids, '--store', 'http://127.0.0.1:9', '--timeout', '1ms']
  const { code, err } = await new World().run(line, { env: { PLANTS_TOKEN: 's3cret-token' } })
  expect([code, err.match(/^plants: Could not reach/gm)?.length]).toEqual([4, 64])
})
