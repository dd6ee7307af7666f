import { expect, test } from 'vitest'
import { foreignWords } from '../../../src/cli/usage-errors.js'
import { program } from '../../helpers/documents.js'
import { refusal, World } from '../../helpers/world.js'

test('a switch may be given twice, and a value in one place', async () => {
  const user = new World()
  expect((await user.run('--verbose list --verbose')).code).toBe(0)
  const twice = refusal('--timeout was given twice', 'Leave out one of them')
  expect(await user.run('stores --timeout 5s list --timeout=5s')).toEqual(twice)
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

test.each([
  ['udpate 1', 'Did you mean update?'],
  ['delte 1', 'Did you mean delete?'],
  ['List', 'Did you mean list?'],
  ['tokens revoek 1', 'Did you mean revoke?'],
  ['list --limt 1', 'Did you mean --limit?'],
  ['list --verbse', 'Did you mean --verbose?'],
  // Short words are near to too many, and a suggestion is a name, not another one
  ['lst', 'See: plants --help'],
  ['remote 1', 'See: plants --help'],
  // Words of other programs
  ['search fern', 'To search: plants list --search TEXT'],
  ['list -n 2', 'The number of plants is --limit NUMBER'],
  ['import a.csv --upsert', 'For plants that exist: plants import --if-exists update'],
  // Dashes of word processors and chats
  ['create –-id 5', 'Options begin with hyphens, as in --id: type them anew'],
  ['—help', 'Options begin with hyphens, as in --id: type them anew'],
  ['get 1 –o json', 'Options begin with hyphens, as in --id: type them anew'],
  ['delete 1 --force', 'To go on without a question: --yes'],
  ['config search', 'See: plants config --help'],
])('plants %s: %s', async (line, hint) => {
  const { code, err } = await new World().run(line)
  expect([code, err.split('\n')[1]]).toEqual([2, `  ${hint}`])
})

test('the words of other programs are twenty at most, and none of them is ours', () => {
  const words = [...foreignWords.keys()]
  expect(words.length).toBeLessThanOrEqual(20)
  const names = program.commands.flatMap((command) => [command.name(), ...command.aliases()])
  expect(words.filter((word) => names.includes(word))).toEqual([])
})

test.each([
  ['create -xSECRET', 'Unknown option -x', 'See: plants create --help'],
  ["create --n'ame=SECRET", 'Unknown option', 'Did you mean --name?'],
  ['get -1 -qzSECRET', 'Unknown option -z', 'See: plants get --help'],
  ['--bad=SECRET list', 'Unknown option --bad', 'See: plants --help'],
  ['list --quiet=SECRET', '--quiet takes no value', 'Leave it out'],
  ['list --help=SECRET', '--help takes no value', 'Leave it out'],
  ['list --quit', 'Unknown option --quit', 'Did you mean --quiet?'],
  ['list --SECRET_123', 'Unknown option', 'See: plants list --help'],
  ['plants_SECRET', 'Unknown command', 'See: plants --help'],
  [`${'x'.repeat(15)}SECRET`, 'Unknown command', 'See: plants --help'], // 21 letters
  ['auth https://me:SECRET@x', 'Unknown command', 'See: plants auth --help'],
  ['auth login SECRET', 'auth login got an argument that it does not take', undefined],
  ['help plants_SECRET', 'Unknown command', 'See: plants --help'],
])('nothing typed is repeated but a word: plants %s', async (line, what, hint) => {
  const { out, err } = await new World().run(line)
  const [message, advice] = err.split('\n')
  expect([out, message]).toEqual(['', `plants: ${what}`])
  if (hint !== undefined) expect(advice).toBe(`  ${hint}`)
  expect(err).not.toContain('SECRET')
})

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

test('a store that cannot be reached is reported once', async () => {
  const ids = Array.from({ length: 200 }, (_, index) => String(index))
  const line = ['get', ...ids, '--store', 'http://127.0.0.1:9', '--timeout', '1ms']
  const { code, err } = await new World().run(line, { env: { PLANTS_TOKEN: 's3cret-token' } })
  expect([code, err.match(/^plants: Could not reach/gm)?.length]).toEqual([4, 1])
})
