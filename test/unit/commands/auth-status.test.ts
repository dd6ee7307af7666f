import { describe, expect, test } from 'vitest'
import { AuthUser, answer, failure, lines, noToken, read, status, store, token, when } from '../../helpers/auth-user.js'

describe('status of the store that is named', () => {
  test('ends with 3 when there is no token', async () => {
    expect(await new AuthUser().auth('status')).toEqual({ ...noToken, out: lines(status(store, 'none')) })
    expect(await new AuthUser().auth('status --output text')).toEqual({
      code: 3,
      out: `${store}: no token\n`,
      err: `plants: There is no token for ${store}\n  Set PLANTS_TOKEN, or save one with: plants auth login --store ${store}\n`,
    })
  })

  test('tells when a token was saved, but not which', async () => {
    const user = new AuthUser()
    user.save({ tokens: { [store]: { token, savedAt: when } } })
    expect(await user.auth('status')).toEqual(answer(status(store, 'file', { savedAt: when })))
    expect(await user.auth('status --output text')).toEqual({
      code: 0,
      out: `${store}: saved on ${when.slice(0, 16)}Z in ${user.file}\n`,
      err: '',
    })
  })

  test('tells that PLANTS_TOKEN wins', async () => {
    const user = new AuthUser()
    user.save({ tokens: { [store]: { token, savedAt: when } } })
    const world = { env: { PLANTS_TOKEN: ` ${token}\n` } }
    expect(await user.auth('status', world)).toEqual(answer(status(store, 'variable')))
    expect(await user.auth('status --output text', world)).toEqual({ code: 0, out: `${store}: from PLANTS_TOKEN\n`, err: '' })
    expect(await user.auth('status', { env: { PLANTS_TOKEN: ' ' } })).toEqual(answer(status(store, 'file', { savedAt: when })))
  })

  test('refuses a PLANTS_TOKEN that is none, without repeating it', async () => {
    const message =
      'PLANTS_TOKEN contains a space, a line break or another invalid character. A token consists of letters, digits and -._~+/='
    expect(await new AuthUser().auth('status', { env: { PLANTS_TOKEN: 's3cret s3cret' } })).toEqual(
      failure(2, 400, message, 'Copy the token again, without any other text'),
    )
  })

  test('tells until when a token of a command is valid', async () => {
    const user = new AuthUser()
    const expires = '2999-01-02T03:04:05.000Z'
    const command = `echo {"token":"${token}","expires":"${expires}"}`
    user.save({ stores: { team: { address: `${store}/v1`, 'token-command': command } } })
    const env = { PATH: process.env['PATH'] ?? '' }
    expect(await user.auth('status --store team', { env })).toEqual(
      answer({ store: 'team', address: `${store}/v1`, source: 'command', expires }),
    )
    expect(await user.auth('status --store team --output text', { env })).toEqual({
      code: 0,
      out: `team (${store}/v1): from its token command, valid until ${expires}\n`,
      err: '',
    })
    expect(await user.auth(`status --store ${store}/v1`, { env })).toMatchObject({ code: 3, out: lines(status(`${store}/v1`, 'none')) })
  })
})

describe('status of all stores', () => {
  const stores = {
    garden: { address: '/srv/garden.db' },
    team: { address: 'https://team.example.com/v1' },
    work: { address: 'https://work.example.com', 'token-command': 'false' },
    same: { address: 'HTTPS://TEAM.example.com:443/v1/' },
    bare: { address: 'https://bare.example.com' },
  }
  const tokens = {
    'https://team.example.com/v1': { token, savedAt: when },
    'https://gone.example.com': { token, savedAt: when },
  }
  const team = { store: 'team', address: 'https://team.example.com/v1', source: 'file', savedAt: when }
  const others = [
    { store: 'work', address: 'https://work.example.com', source: 'command' },
    { ...team, store: 'same' },
    { store: 'bare', address: 'https://bare.example.com', source: 'none' },
    { store: 'https://gone.example.com', address: 'https://gone.example.com', source: 'file', savedAt: when },
  ]
  const byName = (a: { store: string }, b: { store: string }) => (a.store < b.store ? -1 : 1)
  const run = async (user: AuthUser, env: Record<string, string> = {}, ...args: string[]) => {
    const { code, out, err } = read(await user.run(['auth', 'status', '--output', 'ndjson', ...args], { env }))
    return { code, out: (out as { store: string }[]).toSorted(byName), err }
  }

  test('is of those with a name, of the addresses with a token, and runs no command', async () => {
    const user = new AuthUser()
    user.save({ stores, tokens })
    expect(await run(user)).toEqual({ code: 0, out: [team, ...others].toSorted(byName), err: [] })
  })

  test('is also of the store of this run, and PLANTS_TOKEN counts for no other', async () => {
    const user = new AuthUser()
    user.save({ stores, tokens })
    const env = { PLANTS_TOKEN: token }
    const named = { PLANTS_STORE: 'team', ...env }
    expect(await run(user, named)).toEqual({
      code: 0,
      out: [{ store: 'team', address: team.address, source: 'variable' }, ...others].toSorted(byName),
      err: [],
    })
    const nameless = { PLANTS_STORE: 'https://new.example.com', ...env }
    expect(await run(user, nameless)).toEqual({
      code: 0,
      out: [status('https://new.example.com', 'variable'), team, ...others].toSorted(byName),
      err: [],
    })
    expect(await run(user, env)).toEqual({ code: 0, out: [team, ...others].toSorted(byName), err: [] })
  })

  test('ends with 3 when the store of this run is remote and has none, whatever others have', async () => {
    const user = new AuthUser()
    user.save({ stores, tokens, store: 'bare' })
    expect(await run(user)).toEqual({
      code: 3,
      out: [team, ...others].toSorted(byName),
      err: [
        {
          error: 401,
          message: 'There is no token for https://bare.example.com',
          hint: 'Set PLANTS_TOKEN, or save one with: plants auth login',
        },
      ],
    })
    user.save({ stores, tokens, store: 'team' })
    expect((await run(user)).code).toBe(0)
  })

  test('shows the others also when the command of the store of this run fails, and ends with 3', async () => {
    const user = new AuthUser()
    user.save({ stores, tokens, store: 'work' })
    const { code, out } = await run(user, { PATH: process.env['PATH'] ?? '' })
    expect({ code, stores: out.map((line) => line.store) }).toEqual({ code: 3, stores: expect.arrayContaining(['team', 'bare']) })
  })

  test.each([
    ['nothing is saved', {}, 'https://plants.example.com'],
    ['no store has a token', { stores: { bare: stores.bare, garden: stores.garden } }, 'bare'],
  ])('ends with 3 when the store of this run is a file and %s', async (_, fields, store) => {
    const user = new AuthUser()
    user.save(fields)
    const { code, err } = await run(user)
    const hint = `Save one with: plants auth login --store ${store}`
    expect({ code, err }).toEqual({ code: 3, err: [{ error: 401, message: 'No store has a token', hint }] })
  })

  test('ends with 3 for PLANTS_TOKEN alone, which is for no file', async () => {
    const user = new AuthUser()
    expect((await run(user, { PLANTS_TOKEN: token })).code).toBe(3)
  })

  test('tells of a store whose settings are wrong, and shows all others', async () => {
    const user = new AuthUser()
    const wrong = {
      password: { address: 'https://me:hunter2@x.example' },
      nowhere: { address: 'nowhere' },
      later: { address: 'ftp://x.example' },
      slow: { address: 'https://slow.example.com', timeout: 'soon' },
      quoted: { address: 'https://quoted.example.com', 'token-command': "sh -c 'echo s3cret'" },
    }
    user.save({ stores: { ...wrong, ...stores }, tokens })
    const { code, out, err } = await run(user)
    expect({ code, out }).toEqual({ code: 0, out: [team, ...others].toSorted(byName) })
    const told = Object.keys(wrong).map((name) => ({ warning: expect.stringMatching(RegExp(`^stores\\.${name}\\.[\\w-]+ in `)) }))
    expect(err).toEqual(told)
    expect(JSON.stringify(err)).not.toMatch(/hunter2|s3cret/)
    const text = await user.run(['auth', 'status', '--output', 'text'])
    expect({ code: text.code, lines: text.out.trimEnd().split('\n').length }).toEqual({ code: 0, lines: 5 })
    expect(text.err.match(/^plants: stores\./gm)).toHaveLength(5)
  })

  test('shows no token that stands where an address should, and counts it for none', async () => {
    const user = new AuthUser()
    const misplaced = { 's3cret-as-a-key': { token: 'https://x.example', savedAt: when }, 's3cret/key': { token: 'x', savedAt: when } }
    user.save({ tokens: misplaced })
    for (const output of ['text', 'json']) {
      const { code, out, err } = await user.run(['auth', 'status', '--output', output])
      expect({ code, out, err }).toEqual({
        code: 3,
        out: output === 'text' ? '' : '[\n]\n',
        err: expect.stringContaining('No store has a token'),
      })
    }
    user.save({ tokens: { ...misplaced, ...tokens } })
    expect((await user.run(['auth', 'status'], { terminals: ['stdout', 'stderr'] })).out.trimEnd().split('\n')).toHaveLength(2)
  })

  test('shows no token that stands in an address that a token was saved for', async () => {
    const user = new AuthUser()
    const entry = { token, savedAt: when }
    user.save({ tokens: { ...tokens, 'https://me:s3cret@x.example': entry, 'https:s3cret': entry } })
    for (const output of ['text', 'json']) expect((await user.run(['auth', 'status', '--output', output])).code).toBe(0)
  })

  test('is of one store when that is named', async () => {
    const user = new AuthUser()
    user.save({ stores, tokens })
    expect(await run(user, {}, '--store', 'team')).toEqual({ code: 0, out: [team], err: [] })
    expect(await run(user, {}, '--store', 'same')).toEqual({ code: 0, out: [{ ...team, store: 'same' }], err: [] })
  })

  test('is a sentence a store for people', async () => {
    const user = new AuthUser()
    user.save({ stores: { team: stores.team, bare: stores.bare }, tokens })
    const { code, out, err } = await user.run(['auth', 'status', '--output', 'text'])
    expect({ code, out: out.split('\n').toSorted(), err }).toEqual({
      code: 0,
      out: [
        '',
        'bare (https://bare.example.com): no token',
        `https://gone.example.com: saved on 2026-01-02T03:04Z in ${user.file}`,
        `team (https://team.example.com/v1): saved on 2026-01-02T03:04Z in ${user.file}`,
      ],
      err: '',
    })
  })
})
