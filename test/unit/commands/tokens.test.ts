import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type RunOptions, runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const stamp = /\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d\.\d{3})?Z/g

/** Runs commands on one store; times are TIME in what they say. */
function user(): (line: string, world?: RunOptions) => Promise<{ code: number; out: string; err: string }> {
  const store = join(temporaryFolder(), 'plants.db')
  return async (line, world) => {
    const { code, out, err } = await runPlants([...line.split(' '), '--store', store], world)
    const general = (text: string) => text.replaceAll(store, 'STORE').replaceAll(stamp, 'TIME')
    return { code, out: general(out), err: general(err) }
  }
}

describe('tokens create', () => {
  test('prints a new token each time, and nothing else', async () => {
    const run = user()
    const [first, second] = [await run('tokens create'), await run('tokens create --note laptop --expires 90d')]
    expect([first, second]).toEqual(
      ['plants: Created store STORE\n', ''].map((err) => ({
        code: 0,
        out: expect.stringMatching(/^plants_[\w-]{43}\n$/),
        err,
      })),
    )
    expect(first.out).not.toBe(second.out)
  })

  test('tells a program all about it when that was asked for', async () => {
    const { out } = await user()('tokens create --note laptop --expires 12h --output json')
    expect(JSON.parse(out)).toEqual({
      id: 1,
      note: 'laptop',
      rights: ['create', 'read'],
      createdAt: 'TIME',
      expiresAt: 'TIME',
      token: expect.stringMatching(/^plants_/),
    })
  })

  test('tells a person that it is shown only now, and until when it is valid', async () => {
    const { err } = await user()('tokens create --expires 2m', { terminals: ['stdout', 'stderr'] })
    expect(err).toContain('This is token 1, valid until TIME. It is not shown again')
  })

  test.each(['0', '90', '1.5', '90D', '', '-1', '5y', '999999999d', '36526d'])(
    'refuses to let one expire after %s',
    async (life) => {
      const message = `--expires must be a duration with its unit, such as 90d or 12h, up to 36525d, but was ${JSON.stringify(life)}`
      const { code, out, err } = await user()(`tokens create --expires=${life} --output json`)
      expect({ code, out, error: JSON.parse(err) }).toEqual({
        code: 2,
        out: '',
        error: { error: 400, message, hint: 'For example: --expires 90d' },
      })
    },
  )
})

describe('--allow', () => {
  test.each(['write', '', 'create,,read', 'create;read', 'READ'])(
    'of tokens create, serve and stores init is not "%s"',
    async (rights) => {
      const message = `--allow must be one or more of create, read, update, delete, separated by commas, but was ${JSON.stringify(rights)}`
      for (const command of ['tokens create', 'serve', 'stores init postgres://plants@db.example.com/plants']) {
        const { code, out, err } = await runPlants([...command.split(' '), `--allow=${rights}`, '--output', 'json'])
        const error = { error: 400, message, hint: 'For example: --allow create,read' }
        expect({ code, out, error: JSON.parse(err) }).toEqual({ code: 2, out: '', error })
      }
    },
  )
})

describe('tokens list and revoke', () => {
  test('show at most 1000 columns of a note, but all of it to a program', async () => {
    const run = user()
    await run(`tokens create --note ${'x'.repeat(100_000)}`)
    await run('tokens create')
    const { out } = await run('tokens list --output text')
    expect(out.split('\n').map((line) => line.length)).toEqual([1051, 1056, 1056, 0])
    expect((await run('tokens list')).out).toContain('x'.repeat(100_000))
  })

  test('fit a terminal of 80 columns', async () => {
    const run = user()
    await run('tokens create --note continuous-integration --expires 90d')
    await run('tokens create --allow create,read,update,delete')
    const { out } = await run('tokens list --no-color', { terminals: ['stdout'] })
    expect(out.replaceAll(/\d{4}-\d\d-\d\d/g, 'YYYY-MM-DD')).toBe(`\
ID  NOTE              CREATED     EXPIRES     LAST USED  STATE  RIGHTS
 1  continuous-inte…  YYYY-MM-DD  YYYY-MM-DD             valid  create,read
 2                    YYYY-MM-DD                         valid  create,read,upd…
`)
  })

  test('show what tokens are for, and whether they are valid, but never a token', async () => {
    const run = user()
    await run('tokens create --note laptop --expires 1ms')
    await run('tokens create')
    await run('tokens create --note ci --allow delete,read,delete')
    expect(await run('tokens revoke 3 --output text')).toEqual({ code: 0, out: 'Revoked token 3 (ci)\n', err: '' })
    const { out } = await run('tokens list --output text')
    expect(
      out.split('\n').map((line) =>
        line
          .replaceAll(/\d{4}-\d\d-\d\d/g, 'DAY')
          .split(/ +/)
          .filter(Boolean),
      ),
    ).toEqual([
      ['ID', 'NOTE', 'CREATED', 'EXPIRES', 'LAST', 'USED', 'STATE', 'RIGHTS'],
      ['1', 'laptop', 'DAY', 'DAY', 'expired', 'create,read'],
      ['2', 'DAY', 'valid', 'create,read'],
      ['3', 'ci', 'DAY', 'revoked', 'read,delete'],
      [],
    ])
    expect((await run('tokens list')).out.split('\n').slice(1, 3)).toEqual([
      '{"id":2,"rights":["create","read"],"createdAt":"TIME"}',
      '{"id":3,"note":"ci","rights":["read","delete"],"createdAt":"TIME","revokedAt":"TIME"}',
    ])
  })

  test('revoke twice what was revoked once, at its own time', async () => {
    const run = user()
    await run('tokens create')
    const once = await run('tokens revoke 1')
    expect(await run('tokens revoke 1')).toEqual(once)
    expect(once).toEqual({
      code: 0,
      out: '{"id":1,"rights":["create","read"],"createdAt":"TIME","revokedAt":"TIME"}\n',
      err: '',
    })
  })

  test('revoke by a note that one token has which is not revoked yet', async () => {
    const run = user()
    for (const note of ['ci', 'ci', 'laptop']) await run(`tokens create --note ${note}`)
    expect(await run('tokens revoke laptop --output text')).toMatchObject({ out: 'Revoked token 3 (laptop)\n' })
    expect(await run('tokens revoke ci')).toEqual({
      code: 2,
      out: '',
      err: 'plants: 2 tokens have the note "ci": 1, 2\n  Use an id: plants tokens revoke ID --store STORE\n',
    })
    await run('tokens revoke 1')
    expect(await run('tokens revoke ci')).toMatchObject({ code: 0, out: expect.stringContaining('"id":2') })
    expect(await run('tokens revoke ci')).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^plants: No token has the id or the note "ci" in STORE\n/),
    })
  })

  test('revoke by a note that is a number, where no token has that id', async () => {
    const run = user()
    for (const note of ['2', '7', '7', '8']) await run(`tokens create --note ${note}`)
    expect(await run('tokens revoke 2 --output text')).toMatchObject({ out: 'Revoked token 2 (7)\n' })
    expect(await run('tokens revoke 7 --output text')).toMatchObject({ out: 'Revoked token 3 (7)\n' })
    expect(await run('tokens revoke 8 --output text')).toMatchObject({ out: 'Revoked token 4 (8)\n' })
    for (const note of ['9', '9']) await run(`tokens create --note ${note}`)
    expect(await run('tokens revoke 9')).toMatchObject({
      code: 2,
      err: expect.stringContaining('2 tokens have the note "9": 5, 6\n'),
    })
  })

  test('make no store where there is none', async () => {
    const run = user()
    const err = 'plants: There is no store at STORE\n  Check the address. plants create creates a missing store\n'
    for (const line of ['tokens list', 'tokens revoke 7', 'list'])
      expect(await run(line)).toEqual({ code: 4, out: '', err })
  })

  test('say that there is none', async () => {
    const run = user()
    await run('create --id 1 --name Fern')
    expect(await run('tokens list')).toMatchObject({
      code: 0,
      out: '',
      err: 'plants: No tokens. Create one with: plants tokens create --store STORE\n',
    })
    const missing = {
      code: 1,
      out: '',
      err: 'plants: No token has the id or the note "7" in STORE\n  List the tokens with: plants tokens list --store STORE\n',
    }
    expect(await run('tokens revoke 7')).toEqual(missing)
  })
})

test.each(['tokens list', 'tokens create', 'tokens revoke 1', 'serve'])('%s refuses a service', async (line) => {
  const result = await runPlants([...line.split(' '), '--store', 'https://plants.example.com/v1/', '--output', 'json'])
  const message = 'https://plants.example.com/v1 is a service, but this command needs direct access to the store'
  expect({ ...result, err: JSON.parse(result.err) }).toEqual({
    code: 2,
    out: '',
    err: {
      error: 400,
      message,
      hint: 'Run the command on the host of the service, or select another store with --store',
    },
  })
})
