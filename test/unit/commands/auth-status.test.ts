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
    expect(await user.auth('status --output text', world)).toEqual({
      code: 0,
      out: `${store}: from PLANTS_TOKEN\n`,
      err: '',
    })
    expect(await user.auth('status', { env: { PLANTS_TOKEN: ' ' } })).toEqual(
      answer(status(store, 'file', { savedAt: when })),
    )
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
    expect(await user.auth(`status --store ${store}/v1`, { env })).toMatchObject({
      code: 3,
      out: lines(status(`${store}/v1`, 'none')),
    })
  })
})

describe('status without --store', () => {
  const stores = { garden: { address: '/srv/garden.db' }, team: { address: 'https://team.example.com/v1' } }
  const team = { address: 'https://team.example.com/v1', source: 'file', savedAt: when }
  const gone = { store: 'https://gone.example.com', address: 'https://gone.example.com', source: 'file', savedAt: when }
  const tokens = { [team.address]: { token, savedAt: when }, [gone.address]: { token, savedAt: when } }
  const run = async (user: AuthUser, env: Record<string, string> = {}, ...args: string[]) =>
    read(await user.run(['auth', 'status', '--output', 'ndjson', ...args], { env }))

  test('is of the store of this run, and of the addresses with a token', async () => {
    const user = new AuthUser()
    user.save({ stores, tokens, store: 'team' })
    expect(await run(user)).toEqual({ code: 0, out: [{ store: 'team', ...team }, gone], err: [] })
    expect(await run(user, { PLANTS_TOKEN: token })).toEqual({
      code: 0,
      out: [{ store: 'team', address: team.address, source: 'variable' }, gone],
      err: [],
    })
    expect(await run(user, { PLANTS_STORE: 'garden', PLANTS_TOKEN: token })).toEqual({
      code: 0,
      out: [{ store: team.address, ...team }, gone],
      err: [],
    })
  })

  test('ends with 3 when the store of this run has none, whatever others have', async () => {
    const user = new AuthUser()
    user.save({ tokens, store: 'https://bare.example.com' })
    expect(await run(user)).toEqual({
      code: 3,
      out: [status('https://bare.example.com', 'none'), { store: team.address, ...team }, gone],
      err: [
        {
          error: 401,
          message: 'There is no token for https://bare.example.com',
          hint: 'Set PLANTS_TOKEN, or save one with: plants auth login',
        },
      ],
    })
  })

  test('ends with 3 when the store of this run is a file and nothing is saved, even with PLANTS_TOKEN', async () => {
    const user = new AuthUser()
    const hint = 'Save one with: plants auth login --store https://plants.example.com'
    for (const env of [{}, { PLANTS_TOKEN: token }])
      expect(await run(user, env)).toEqual({
        code: 3,
        out: [],
        err: [{ error: 401, message: 'No token is saved', hint }],
      })
  })

  test('shows no token that stands where an address should, and counts it for none', async () => {
    const user = new AuthUser()
    const misplaced = {
      's3cret-as-a-key': { token: 'https://x.example', savedAt: when },
      's3cret/key': { token: 'x', savedAt: when },
    }
    user.save({ tokens: misplaced })
    for (const output of ['text', 'json']) {
      const { code, out, err } = await user.run(['auth', 'status', '--output', output])
      expect({ code, out, err }).toEqual({
        code: 3,
        out: output === 'text' ? '' : '[\n]\n',
        err: expect.stringContaining('No token is saved'),
      })
    }
    user.save({ tokens: { ...misplaced, ...tokens } })
    expect(
      (await user.run(['auth', 'status'], { terminals: ['stdout', 'stderr'] })).out.trimEnd().split('\n'),
    ).toHaveLength(2)
  })

  test('shows no token that stands in an address that a token was saved for', async () => {
    const user = new AuthUser()
    const entry = { token, savedAt: when }
    user.save({ tokens: { ...tokens, 'https://me:s3cret@x.example': entry, 'https:s3cret': entry } })
    for (const output of ['text', 'json']) expect((await user.run(['auth', 'status', '--output', output])).code).toBe(0)
  })

  test('is a sentence a store for people', async () => {
    const user = new AuthUser()
    user.save({ stores, tokens, store: 'team' })
    expect(await user.run(['auth', 'status', '--output', 'text'])).toEqual({
      code: 0,
      out: [
        `team (https://team.example.com/v1): saved on 2026-01-02T03:04Z in ${user.file}`,
        `https://gone.example.com: saved on 2026-01-02T03:04Z in ${user.file}\n`,
      ].join('\n'),
      err: '',
    })
  })
})
