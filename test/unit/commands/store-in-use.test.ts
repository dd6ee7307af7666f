import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { gardener, onTerminal } from '../../helpers/gardener.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { answer, printed, refusal, World } from '../../helpers/world.js'

const fern = 'create --id 1 --name Fern'

describe('stores use', () => {
  test('sets the store of all commands that name none, as config set store does', async () => {
    const user = gardener()
    expect(await user.run('stores use garden')).toEqual(answer({ name: 'store', value: 'garden' }))
    expect(user.saved).toMatchObject({ store: 'garden' })
    expect(await user.run('stores use garden', onTerminal)).toEqual(printed('Set store to garden\n'))
    expect(await user.run('stores use local --output text')).toEqual(printed('Set store to local\n'))
    expect(await user.run('config get store')).toEqual(printed('local\n'))
    const world = { env: { PLANTS_STORE: 'team' } }
    expect((await user.run('stores use garden', world)).err).toBe(
      'plants: PLANTS_STORE is still set, and takes precedence\n',
    )
  })

  test.each([
    ['gardn', 'There is no store named "gardn"', 'Did you mean garden?'],
    ['nothing', 'There is no store named "nothing"', expect.stringMatching(/^The saved stores are: team, garden$/)],
    [
      'constructor',
      'There is no store named "constructor"',
      expect.stringMatching(/^The saved stores are: team, garden$/),
    ],
    ['', expect.stringMatching(/^store is empty/), expect.any(String)],
    ['__proto__', expect.stringMatching(/^store does not name a store: "__proto__"/), expect.any(String)],
    ['x'.repeat(65), expect.stringMatching(/^store does not name a store: "x+"/), expect.any(String)],
  ])('refuses %j', async (name, message, hint) => {
    const user = gardener({ store: 'team' })
    const { code, out, err } = await user.run(['stores', 'use', name, '--output', 'json'])
    expect({ code, out, ...JSON.parse(err) }).toEqual({ code: 2, out: '', error: 400, message, hint })
    expect(user.saved).toEqual(gardener({ store: 'team' }).saved)
  })
})

describe('the store of a command is', () => {
  const dbs = { flag: '/flag.db', variable: '/variable.db', saved: '/saved.db' }

  test.each<[string, string[], Record<string, string>, string, string]>([
    ['--store, a name', ['--store', 'flag'], { PLANTS_STORE: 'variable' }, 'saved', 'flag.db'],
    ['--store, an address', ['--store', './other.db'], { PLANTS_STORE: 'variable' }, 'saved', 'other.db'],
    ['--store local', ['--store', 'local'], { PLANTS_STORE: 'variable' }, 'saved', 'data/plants.db'],
    ['PLANTS_STORE, a name', [], { PLANTS_STORE: 'variable' }, 'saved', 'variable.db'],
    ['PLANTS_STORE, an address', [], { PLANTS_STORE: './other.db' }, 'saved', 'other.db'],
    ['PLANTS_STORE=local', [], { PLANTS_STORE: 'local' }, 'saved', 'data/plants.db'],
    ['what was chosen with use', [], { PLANTS_STORE: '' }, 'saved', 'saved.db'],
    ['local', [], {}, 'local', 'data/plants.db'],
  ])('%s', async (_, flags, env, used, expected) => {
    const user = new World()
    for (const [name, path] of Object.entries(dbs)) await user.run(['stores', 'add', name, `.${path}`])
    await user.run(['stores', 'use', used])
    const err = expected === 'data/plants.db' ? '' : `plants: Created store ${join(user.home, expected)}\n`
    expect(await user.run([...fern.split(' '), ...flags], { env })).toEqual({ ...answer({ name: 'Fern' }), err })
    const made = ['flag.db', 'variable.db', 'saved.db', 'other.db', 'data/plants.db'].filter((path) =>
      existsSync(join(user.home, path)),
    )
    expect(made).toEqual([expected])
  })

  test('a service, by its name, with its path and the token of this run', async () => {
    const user = new World()
    const remote = await Hostile.listen({ posts: [json(200, { name: 'Fern' })] })
    await user.run(['stores', 'add', 'team', `${remote.url}/v1/`])
    expect(await user.run(`${fern} --store team`, { env: { PLANTS_TOKEN: 's3cret' } })).toEqual(
      answer({ name: 'Fern' }),
    )
    expect(remote.posts.map(({ line, headers }) => [line, headers['authorization']])).toEqual([
      ['POST /v1/plants', 'Bearer s3cret'],
    ])
  })

  test.each([
    ['--store', ['--store', 'gardn'], {}, 'There is no store named "gardn" (from --store)', 'Did you mean garden?'],
    [
      'PLANTS_STORE',
      [],
      { PLANTS_STORE: 'gardn' },
      'There is no store named "gardn" (from PLANTS_STORE)',
      'Did you mean garden?',
    ],
    [
      '--store',
      ['--store', 'nothing'],
      {},
      'There is no store named "nothing" (from --store)',
      /^The saved stores are: team, garden\. /,
    ],
  ])('refused when %s names none', async (_, flags, env: Record<string, string>, message, hint) => {
    const user = gardener()
    for (const command of [fern, 'list', 'get 1', 'auth status', 'tokens list']) {
      const { code, out, err } = await user.run([...command.split(' '), ...flags, '--output', 'json'], { env })
      const matching = typeof hint === 'string' ? hint : expect.stringMatching(hint)
      expect({ command, code, out, ...JSON.parse(err) }).toEqual({
        command,
        code: 2,
        out: '',
        error: 400,
        message,
        hint: matching,
      })
    }
    expect(readdirSync(user.home)).toEqual(['config'])
  })
})

describe('a store that is in use, and gone from the file,', () => {
  test('is named, with how to choose another', async () => {
    const user = gardener({ store: 'gone' })
    for (const command of [fern, 'list', 'auth status']) {
      expect(await user.run(command)).toEqual(
        refusal(
          `There is no store named "gone" (from store in ${user.file})`,
          'The saved stores are: team, garden. Choose another: plants stores use local',
        ),
      )
    }
    expect((await user.run(`${fern} --store ./other.db`)).code).toBe(0)
    expect((await user.run(fern, { env: { PLANTS_STORE: 'local' } })).code).toBe(0)
    expect((await user.run('doctor')).out).toContain('gone')
  })

  test.each([
    ['stores use local'],
    ['stores use garden'],
    ['config set store garden'],
    ['config unset store'],
    ['stores add gone ./gone.db'],
  ])('can be mended with %s', async (command) => {
    const user = gardener({ store: 'gone' })
    expect(await user.run(command)).toMatchObject({ code: 0, err: '' })
    expect((await user.run('config list')).code).toBe(0)
    const { out } = await user.run('stores list')
    expect(out.match(/"inUse":true/g)).toEqual(['"inUse":true'])
  })

  test('hinders no change of another', async () => {
    const user = gardener({ store: 'gone' })
    for (const command of [
      'stores add new /new.db',
      'stores remove garden',
      'config set stores.team.timeout 3m',
      'stores list',
    ]) {
      expect({ command, ...(await user.run(command)) }).toMatchObject({ command, code: 0, err: '' })
    }
  })
})
