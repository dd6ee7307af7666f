import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { AuthUser, accepting, failure, read, store, token, when } from '../../helpers/auth-user.js'
import { socketPath } from '../../helpers/remote.js'
import type { RunOptions } from '../../helpers/run.js'
import { modeOf } from '../../helpers/settings-file.js'
import { temporaryFolder } from '../../helpers/temporary.js'

describe('login --with-token', () => {
  test('sends nothing, and saves nothing, where others could read it on its way', async () => {
    const user = new AuthUser()
    const message = 'The token is not sent to http://192.0.2.1: without TLS others could read it'
    const hint = 'Use https://, or on a network that only you use, add --allow-http'
    expect(await user.login('http://192.0.2.1')).toEqual(failure(2, 400, message, hint))
    expect(user.isUntouched).toBe(true)
    await user.run(['stores', 'add', 'team', 'http://192.0.2.1'])
    const named = failure(2, 400, message, `${hint}, or for good: plants config set stores.team.allow-http true`)
    expect(await user.login('team')).toEqual(named)
    expect(user.saved).toEqual({ version: 1, stores: { team: { address: 'http://192.0.2.1' } } })
  })

  test('is refused for a store that gets its token from a command, which is not run', async () => {
    const user = new AuthUser()
    const remote = await accepting()
    user.save({ stores: { team: { address: remote.url, 'token-command': `touch ${user.folder}/ran` } } })
    const hint =
      'Renew the token where the command reads it, or remove the command: plants config unset stores.team.token-command'
    expect(await user.login('team')).toEqual(failure(2, 400, 'team gets its token from a command', hint))
    expect({ connections: remote.connections, files: readdirSync(user.folder) }).toEqual({
      connections: 0,
      files: ['settings.json'],
    })
    expect((await user.login(remote.url)).code).toBe(0)
  })

  test('of a name is for its address', async () => {
    const user = new AuthUser()
    const { url } = await accepting()
    await user.run(['stores', 'add', 'team', `${url}/v1/`])
    expect(read(await user.login('team'))).toMatchObject({
      out: [{ store: 'team', address: `${url}/v1`, checked: true }],
    })
    expect(user.saved).toMatchObject({ tokens: { [`${url}/v1`]: { token } } })
  })

  test('saves the longest token', async () => {
    const user = new AuthUser()
    const { url } = await accepting()
    const longest = 's3cret'.padEnd(4096, 'x')
    expect((await user.login(url, `${longest}\n`)).code).toBe(0)
    expect(user.saved).toMatchObject({ tokens: { [url]: { token: longest } } })
  })

  const notOne =
    'The token on stdin contains a space, a line break or another invalid character. A token consists of letters, digits and -._~+/='

  test.each<[string, string | Uint8Array | undefined, string]>([
    ['nothing', undefined, 'The token on stdin is empty'],
    ['an empty text', '', 'The token on stdin is empty'],
    ['spaces', ' \r\n\t', 'The token on stdin is empty'],
    ['a space in it', 's3c ret', notOne],
    ['a header', 'Bearer s3cret', notOne],
    ['two lines', 's3cret\ns3cret', notOne],
    ['U+0000', 's3cret\0', notOne],
    ['a colour', '\u001b[31ms3cret', notOne],
    ['letters with accents', 's3cr\u00e9t', notOne],
    ['a colon', 's3cret:x', notOne],
    ['an equals sign within', 's3=cret', notOne],
    ['equals signs alone', '==', notOne],
    ['JSON', '{"token":"s3cret"}', notOne],
    ['too many characters', 's3cret'.repeat(683), 'The token on stdin is longer than 4096 characters'],
  ])('refuses %s, and asks and saves nothing', async (_, stdin, message) => {
    const user = new AuthUser()
    const remote = await accepting()
    const result = await user.auth(`login --with-token --store ${remote.url}`, stdin === undefined ? {} : { stdin })
    expect(result).toEqual(failure(2, 400, message, 'Copy the token again, without any other text'))
    expect({ isUntouched: user.isUntouched, connections: remote.connections }).toEqual({
      isUntouched: true,
      connections: 0,
    })
  })

  test.each<[string, string | Uint8Array, number, string, string]>([
    [
      'far too many characters',
      's3cret'.repeat(500_000),
      413,
      'Stdin is larger than 1 MiB (1048576 bytes)',
      'Pipe nothing but the token to stdin',
    ],
    [
      'bytes that are no text',
      Buffer.from('s3cret\xff\xfe', 'latin1'),
      400,
      'Stdin is not UTF-8',
      'Convert it from its encoding to UTF-8 first',
    ],
  ])('refuses %s, and saves nothing', async (_, stdin, error, message, hint) => {
    const user = new AuthUser()
    expect(await user.auth('login --with-token --store https://plants.example.com', { stdin })).toEqual(
      failure(2, error, message, hint),
    )
    expect(user.isUntouched).toBe(true)
  })

  test('replaces the token of this address, and keeps those of others and what it does not know', async () => {
    const user = new AuthUser()
    const { url } = await accepting()
    const other = { token: 'other', savedAt: when, more: 1 }
    const stores = { team: { address: url, colour: 'blue' } }
    user.save({
      tokens: { [url]: { token: 'old', savedAt: when }, 'https://other.example.com': other },
      colour: 'green',
      stores,
    })
    await user.login(url)
    expect(user.saved).toEqual({
      version: 1,
      tokens: { [url]: { token, savedAt: expect.not.stringMatching(when) }, 'https://other.example.com': other },
      ...{ colour: 'green', stores },
    })
  })

  test('makes a file that others could read its owner\u2019s alone, after a warning', async () => {
    const user = new AuthUser()
    const { url } = await accepting()
    user.save({})
    chmodSync(user.file, 0o644)
    const { code, err } = read(await user.login(url))
    const warning = `The settings in ${user.file} are open to others (mode 644). Fix it with: chmod 600 ${user.file}`
    expect({ code, err, mode: modeOf(user.file) }).toEqual({ code: 0, err: [{ warning }], mode: '600' })
  })

  test('keeps what several save, one after the other', async () => {
    const user = new AuthUser()
    const { url, port } = await accepting()
    const addresses = [url, `${url}/v1`, `${url}/V1`, `http://localhost:${port}`, `unix:${socketPath()}`]
    for (const [index, address] of addresses.entries())
      expect((await user.login(address, `s3cret-${index}`)).code).toBe(0)
    const { tokens } = user.saved as { tokens: Record<string, { token: string }> }
    expect(Object.entries(tokens).map(([address, { token }]) => [address, token])).toEqual(
      addresses.map((address, index) => [address, `s3cret-${index}`]),
    )
  })

  test('writes to where a link leads, and leaves the link', async () => {
    const user = new AuthUser()
    const { url } = await accepting()
    const target = join(temporaryFolder(), 'mine.json')
    writeFileSync(target, '{"version":1,"tokens":{}}', { mode: 0o600 })
    mkdirSync(user.folder, { recursive: true, mode: 0o700 })
    symlinkSync(target, user.file)
    expect((await user.login(url)).code).toBe(0)
    expect(lstatSync(user.file).isSymbolicLink()).toBe(true)
    expect(JSON.parse(readFileSync(target, 'utf8'))).toMatchObject({ tokens: { [url]: { token } } })
    expect(modeOf(target)).toBe('600')
  })

  test('says that PLANTS_TOKEN goes on winning, and sends the token that is to be saved', async () => {
    const user = new AuthUser()
    const remote = await accepting()
    const env = { PLANTS_TOKEN: 's3cret-of-env' }
    const { code, out, err } = await user.auth(`login --with-token --output text --store ${remote.url}`, {
      stdin: token,
      env,
    })
    expect(user.saved).toMatchObject({ tokens: { [remote.url]: { token } } })
    expect({ code, out, err }).toEqual({
      code: 0,
      out: `Saved the token for ${remote.url}, which accepts it\n`,
      err: 'plants: PLANTS_TOKEN is still set, and takes precedence\n',
    })
    expect(remote.posts.map(({ headers }) => headers['authorization'])).toEqual([`Bearer ${token}`])
  })

  test('does not say so of a PLANTS_TOKEN that is empty', async () => {
    const { url } = await accepting()
    const result = await new AuthUser().auth(`login --with-token --output text --store ${url}`, {
      stdin: token,
      env: { PLANTS_TOKEN: ' ' },
    })
    expect(result.err).toBe('')
  })

  test('asks nobody where nobody is', async () => {
    const user = new AuthUser()
    for (const world of [{ stdin: token }, { terminals: ['stdin' as const, 'stdout' as const] }]) {
      expect(await user.auth('login', world)).toEqual(
        failure(
          2,
          400,
          'Cannot prompt for the token',
          `Read it from stdin: plants auth login --store ${store} --from-stdin < FILE`,
        ),
      )
    }
    const everywhere: RunOptions = { terminals: ['stdin', 'stdout', 'stderr'] }
    expect((await user.auth('login --no-input', everywhere)).code).toBe(2)
    expect(user.isUntouched).toBe(true)
  })

  test.each([['login'], ['login --with-token'], ['logout'], ['status'], ['token']])(
    '%s is for a service, not for a file',
    async (verb) => {
      const user = new AuthUser()
      const { code, out, err } = read(await user.auth(`${verb} --store /srv/garden.db`, { stdin: token }))
      expect({ code, out, err }).toEqual({
        code: 2,
        out: [],
        err: [
          {
            error: 400,
            message: '/srv/garden.db is a file, and uses no token',
            hint: 'Select a store: --store https://plants.example.com',
          },
        ],
      })
    },
  )

  test.each([
    ['login', '--token', token],
    ['login', `--token=${token}`],
    ['login', token],
    ['login', `--with-token=${token}`],
    ['login', '--with-token', token],
    ['login', `-t${token}`],
  ])('a token on the command line is refused, and not repeated: %s', async (...args) => {
    const user = new AuthUser()
    const { code, out } = await user.run(['auth', ...args, '--store', store], { stdin: 'other' })
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(user.isUntouched).toBe(true)
  })
})
