import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { garden, gardener, onTerminal, team } from '../../helpers/gardener.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

const savedAt = '2026-01-02T03:04:05.678Z'
const fern = 'create --id 1 --name Fern'

describe('stores list', () => {
  const local = (user: World, inUse: boolean) => ({ name: 'local', address: join(user.home, 'data/plants.db'), inUse })

  test('has local first, then the others by their names', async () => {
    const user = new World()
    expect(await user.run('stores list')).toEqual(answer(local(user, true)))
    expect(readdirSync(user.home)).toEqual([])
    for (const name of ['b', '10', 'a', '9', 'B']) await user.run(['stores', 'add', name, `/${name}.db`])
    const names = (await user.run('stores list')).out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).name)
    expect(names).toEqual(['local', '10', '9', 'B', 'a', 'b'])
  })

  test.each<[string, string[], Record<string, string>, string | undefined]>([
    ['a flag', ['--store', 'garden'], { PLANTS_STORE: 'team' }, 'garden'],
    ['PLANTS_STORE', [], { PLANTS_STORE: 'garden' }, 'garden'],
    ['what is saved', [], {}, 'team'],
    ['what is saved, as an empty PLANTS_STORE is none', [], { PLANTS_STORE: '' }, 'team'],
    ['PLANTS_STORE=local', [], { PLANTS_STORE: 'local' }, 'local'],
    ['a name that is not saved', [], { PLANTS_STORE: 'gone' }, undefined],
  ])('marks the one in use, by %s', async (_, flags, env, inUse) => {
    const user = gardener({ store: 'team' })
    expect(await user.run(['stores', 'list', ...flags], { env })).toEqual(
      answer(
        local(user, inUse === 'local'),
        { name: 'garden', address: garden, inUse: inUse === 'garden' },
        { name: 'team', address: team, timeout: '2m', inUse: inUse === 'team' },
      ),
    )
  })

  test('shows the address in use that has no name', async () => {
    const { out } = await gardener({ store: 'team' }).run(['stores', 'list'], { env: { PLANTS_STORE: '/other.db' } })
    expect(out.split('\n').at(-2)).toBe('{"address":"/other.db","inUse":true}')
  })

  test('is a table on a terminal', async () => {
    const user = gardener({ store: 'team' })
    await user.run(['stores', 'add', 'x', team, '--allow-http', '--token-command', 'pass \u001b[31m'])
    const { code, out, err } = await user.run('stores list', onTerminal)
    const place = `${user.home}/data/plants.db`
    const cell = (text: string) => text.padEnd(Math.max(place.length, team.length))
    expect({ code, out: stripVTControlCharacters(out), err }).toEqual({
      code: 0,
      out: [
        `   NAME    ${cell('ADDRESS')}  SETTINGS`,
        `   local   ${place}`,
        `   garden  ${garden}`,
        `*  team    ${cell(team)}  timeout=2m`,
        `   x       ${cell(team)}  allow-http=true, token-command=pass \\u{1b}[31m`,
        '',
      ].join('\n'),
      err: '',
    })
    expect((await user.run('stores list --no-color', onTerminal)).out).not.toContain('\u001b')
  })

  test('leaves out what others have written under a name that none can have; it can be removed', async () => {
    const user = new World()
    user.save({
      stores: {
        'my store': { address: garden },
        '\u001b[2J': { address: garden },
        team: { address: team, name: 'x', inUse: true },
      },
    })
    expect(await user.run('stores list')).toEqual(
      answer(local(user, true), { name: 'team', address: team, inUse: false }),
    )
    for (const command of ['stores list', 'config list'])
      expect((await user.run(command, onTerminal)).out).not.toContain('\u001b[2J')
    expect((await user.run(['stores', 'remove', '\u001b[2J'], onTerminal)).out).toMatch(
      /^Removed the store \\u\{1b\}\[2J\. /,
    )
    expect(user.saved).toMatchObject({ stores: { 'my store': { address: garden }, team: { address: team } } })
  })

  test('has one store that is called local, whatever the file says', async () => {
    const user = new World()
    user.save({ stores: { local: { address: garden } } })
    const { out } = await user.run('stores list')
    expect(out.match(/"inUse":true/g)).toEqual(['"inUse":true'])
  })
})

describe('stores remove', () => {
  const token = { token: 's3cret', savedAt }
  const forgotten = (fields: object = {}) =>
    answer({ name: 'team', address: team, removed: true, tokenRemoved: false, ...fields })

  test('forgets a store and its token, and no other', async () => {
    const other = 'https://plants.example.com'
    const user = gardener({ tokens: { [team]: token, [other]: token } })
    expect(await user.run('stores remove team')).toEqual(forgotten({ tokenRemoved: true }))
    expect(user.saved).toEqual({ version: 1, stores: { garden: { address: garden } }, tokens: { [other]: token } })
    expect(readFileSync(user.file, 'utf8')).not.toContain(team)
  })

  test.each([[team], ['HTTPS://Plants.Example.com:443/v1/']])(
    'keeps a token that another store has, at %s',
    async (address) => {
      const user = gardener({ stores: { team: { address: team }, twin: { address } }, tokens: { [team]: token } })
      expect(await user.run('stores remove team')).toEqual(forgotten())
      expect(user.saved).toEqual({ version: 1, stores: { twin: { address } }, tokens: { [team]: token } })
      expect(await user.run('stores remove twin')).toMatchObject({
        code: 0,
        out: expect.stringContaining('"tokenRemoved":true'),
      })
      expect(user.saved).toEqual({ version: 1, stores: {}, tokens: {} })
    },
  )

  test('removes the token of an address that was written in another way', async () => {
    const user = gardener({
      stores: { team: { address: 'HTTPS://Plants.Example.com:443/v1/' } },
      tokens: { [team]: token },
    })
    expect(await user.run('stores remove team')).toEqual(forgotten({ tokenRemoved: true }))
  })

  test('of the one in use goes back to local, and says so', async () => {
    const user = gardener({ store: 'team', tokens: { [team]: token } })
    expect(await user.run('stores remove team --output text')).toEqual(
      printed(
        `Removed the store team and its token. Its plants are still in ${team}. The default store is now local\n`,
      ),
    )
    expect(user.saved).toEqual({ version: 1, stores: { garden: { address: garden } }, tokens: {} })
    expect(await user.run('config get store')).toEqual(printed('local\n'))
  })

  test('of another leaves the one in use', async () => {
    const user = gardener({ store: 'garden' })
    expect(await user.run('stores remove team', onTerminal)).toEqual(
      printed(`Removed the store team. Its plants are still in ${team}\n`),
    )
    expect(user.saved).toEqual({ version: 1, store: 'garden', stores: { garden: { address: garden } } })
  })

  test('never removes plants', async () => {
    const user = new World()
    await user.run('stores add garden ./garden.db')
    await user.run(`${fern} --store garden`)
    expect(await user.run('stores remove garden')).toMatchObject({ code: 0 })
    expect(await user.run('list --store ./garden.db')).toEqual(answer({ id: 1, name: 'Fern' }))
  })

  test('of one whose address is broken works', async () => {
    const user = gardener({ stores: { team: { address: 'nowhere' }, other: { address: '' } } })
    expect(await user.run('stores remove team')).toEqual(forgotten({ address: 'nowhere' }))
    expect(await user.run('stores remove other')).toMatchObject({ code: 0 })
  })

  test.each([
    ['gardn', 'Did you mean garden?'],
    ['nothing', expect.stringMatching(/team, garden/)],
    ['__proto__', expect.stringMatching(/team, garden/)],
    ['constructor', expect.stringMatching(/team, garden/)],
    ['', expect.stringMatching(/team, garden/)],
    [team, expect.stringMatching(/team, garden/)],
    ['loca', expect.not.stringContaining('Did you mean local?')],
    ['nothing', expect.not.stringContaining('stores add')],
  ])('refuses %j, which is not there', async (name, hint) => {
    const user = gardener()
    const { code, out, err } = await user.run(['stores', 'remove', name, '--output', 'json'])
    const message = `There is no store named ${JSON.stringify(name)}`
    expect({ code, out, ...JSON.parse(err) }).toEqual({ code: 2, out: '', error: 400, message, hint })
    expect(user.saved).toEqual(gardener().saved)
  })
})

test('the store local is not removed', async () => {
  const { code, err } = await gardener().run('stores remove local')
  expect({ code, err }).toEqual({
    code: 2,
    err: expect.stringMatching(/^plants: The store local is built in, and cannot be removed\n/),
  })
})

describe('a command line that is wrong:', () => {
  test.each([
    [
      'stores add',
      'stores add needs a name',
      'Usage: plants stores add [options] <name> <address>. See: plants stores add --help',
    ],
    [
      'stores add team',
      'stores add needs an address',
      'Usage: plants stores add [options] <name> <address>. See: plants stores add --help',
    ],
    [
      'stores add a ./b.db c',
      'stores add takes 2 arguments, but got 3',
      'Usage: plants stores add [options] <name> <address>. See: plants stores add --help',
    ],
    ['stores use', 'stores use needs a store', 'Usage: plants stores use <store>. See: plants stores use --help'],
    [
      'stores remove',
      'stores remove needs a name',
      'Usage: plants stores remove <name>. See: plants stores remove --help',
    ],
    [
      'stores remove a b',
      'stores remove takes one name, but got 2',
      'Usage: plants stores remove <name>. See: plants stores remove --help',
    ],
    [
      'stores list x',
      'stores list takes no arguments, but got 1',
      'Usage: plants stores list. See: plants stores list --help',
    ],
    ['stores rm', 'stores remove needs a name', 'Usage: plants stores remove <name>. See: plants stores remove --help'],
    ['stores move team t2', 'Unknown command move', 'See: plants stores --help'],
    ['stores revoke team', 'Unknown command revoke', 'See: plants stores --help'],
    ['stores remov team', 'Unknown command remov', 'Did you mean remove?'],
    ['stores new', 'Unknown command new', 'Did you mean: plants stores add NAME ADDRESS'],
    ['stores create', 'Unknown command create', 'Did you mean: plants stores add NAME ADDRESS'],
    ['stores add team https://a --token-comand x', 'Unknown option --token-comand', 'Did you mean --token-command?'],
    [
      'stores add team https://a --token s3cret',
      'A token is not accepted on the command line, where other users can see it',
      'Set PLANTS_TOKEN. To save it, see: plants auth login --help',
    ],
    [
      'stores --token-command x add team https://a',
      'Unknown option --token-command before the command',
      'The options of a command follow it. See: plants stores add --help',
    ],
  ])('%s', async (command, message, hint) => {
    const user = gardener()
    expect(await user.run(command)).toEqual(refusal(message, hint))
    expect(user.saved).toEqual(gardener().saved)
  })
})

describe('stores rename', () => {
  test('keeps what belongs to the store, and the choice of it', async () => {
    const user = gardener({ store: 'team' })
    expect(await user.run('stores rename team crew --output text')).toEqual(printed('Renamed the store team to crew\n'))
    expect(user.saved).toMatchObject({
      store: 'crew',
      stores: { garden: { address: garden }, crew: { address: team, timeout: '2m' } },
    })
    expect(user.saved).not.toHaveProperty('stores.team')
  })

  test.each([
    ['gone crew', 'There is no store named "gone"'],
    ['team garden', 'The store garden already exists\n  Choose another name\n'],
    ['team team', 'The store team already exists\n  Choose another name\n'],
    ['team local', 'The store local is built in, and cannot be changed'],
    ['local crew', 'There is no store named "local"'],
    ['team x/y', 'A store cannot be called "x/y"'],
  ])('refuses %s', async (names, message) => {
    const result = await gardener().run(`stores rename ${names}`)
    expect(result).toMatchObject({ code: 2, out: '', err: expect.stringContaining(message) })
  })
})
