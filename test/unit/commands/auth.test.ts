import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { AuthUser, accepting, answer, failure, noToken, read, store, token, when } from '../../helpers/auth-user.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const isRoot = process.getuid?.() === 0

describe('token', () => {
  test('is printed for other programs, from wherever it is', async () => {
    const user = new AuthUser()
    user.save({
      tokens: { [store]: { token, savedAt: when } },
      stores: { team: { address: store, 'token-command': 'echo s3cret-made' } },
    })
    expect(await user.run(['auth', 'token', '--store', store])).toEqual({ code: 0, out: `${token}\n`, err: '' })
    expect(await user.auth('token')).toEqual(answer({ token, source: 'file', savedAt: when }))
    const env = { PLANTS_TOKEN: 's3cret-of-env' }
    expect(await user.run(['auth', 'token', '--store', store], { env })).toEqual({
      code: 0,
      out: 's3cret-of-env\n',
      err: '',
    })
    expect(await user.auth('token', { env })).toEqual(answer({ token: 's3cret-of-env', source: 'variable' }))
    const path = { PATH: process.env['PATH'] ?? '' }
    expect(await user.auth('token --store team', { env: path })).toEqual(
      answer({ token: 's3cret-made', source: 'command' }),
    )
    expect(await user.auth('token --store team', { env })).toEqual(
      answer({ token: 's3cret-of-env', source: 'variable' }),
    )
  })

  test('ends with 3 when there is none', async () => {
    expect(await new AuthUser().auth('token')).toEqual(noToken)
  })
})

describe('logout', () => {
  test('removes the token of this address alone, and says when there was none', async () => {
    const user = new AuthUser()
    const other = { 'https://other.example.com': { token: 'other', savedAt: when } }
    user.save({ tokens: { [store]: { token, savedAt: when }, ...other }, colour: 'green' })
    expect(await user.auth('logout')).toEqual(answer({ store, address: store, removed: true }))
    expect(user.saved).toEqual({ version: 1, tokens: other, colour: 'green' })
    expect((await user.auth('status')).code).toBe(3)
    expect(await user.auth('logout')).toEqual(answer({ store, address: store, removed: false }))
    expect((await user.auth('status --store https://other.example.com')).code).toBe(0)
    expect(readdirSync(user.folder).toSorted()).toEqual(['settings.json'])
  })

  test('of a name removes that of its address', async () => {
    const user = new AuthUser()
    user.save({ tokens: { [store]: { token, savedAt: when } }, stores: { team: { address: `${store}/` } } })
    expect(await user.auth('logout --store team')).toEqual(answer({ store: 'team', address: store, removed: true }))
    expect(await user.auth('logout --store team --output text')).toEqual({
      code: 0,
      out: `There was no saved token for team (${store})\n`,
      err: '',
    })
  })

  test('makes nothing where nothing was saved, and says where a token still comes from', async () => {
    const user = new AuthUser()
    expect(await user.auth('logout --output text', { env: { PLANTS_TOKEN: token } })).toEqual({
      code: 0,
      out: `There was no saved token for ${store}\n`,
      err: 'plants: PLANTS_TOKEN is still set\n',
    })
    expect(user.isUntouched).toBe(true)
    user.save({ stores: { team: { address: store, 'token-command': 'false' } } })
    expect((await user.auth('logout --output text --store team')).err).toBe('plants: team still has a token command\n')
  })
})

describe('a token is sent', () => {
  const fern = ['create', '--id', '1', '--name', 'Fern', '--store']

  test('from PLANTS_TOKEN, when it is set, whatever is saved', async () => {
    const user = new AuthUser()
    const remote = await Hostile.listen({ posts: [json(200, { name: 'Fern' })] })
    user.save({ tokens: { [remote.url]: { token, savedAt: when } } })
    expect((await user.run([...fern, remote.url], { env: { PLANTS_TOKEN: 's3cret-of-env' } })).code).toBe(0)
    expect(remote.posts.map(({ headers }) => headers['authorization'])).toEqual(['Bearer s3cret-of-env'])
  })

  test('only when it can be one: what was saved is held against the rules again', async () => {
    const user = new AuthUser()
    const remote = await Hostile.listen({ posts: [json(200, { name: 'Fern' })] })
    user.save({ tokens: { [remote.url]: { token: 's3cret\r\nX: b', savedAt: when } } })
    const { code, err } = await user.run([...fern, remote.url])
    expect({ code, err, connections: remote.connections }).toEqual({
      code: 2,
      err: expect.stringMatching(/^plants: The saved token contains a space, a line break/),
      connections: 0,
    })
  })
})

describe('a settings file that is broken', () => {
  // The other kinds of it are in unit/config/broken-file.test.ts.
  test.each<[string, string, RegExp]>([
    ['cut off', `{"version":1,"tokens":{"${store}":{"token":"${token}`, /are not JSON: .*line 1/],
    [
      'of a later version',
      `{"version":2,"tokens":{"${store}":"${token}"}}`,
      /written by a newer plants \(version 2\)$/,
    ],
    ['with tokens in an array', `{"version":1,"tokens":["${token}"]}`, /tokens must be an object$/],
    [
      'with a token that is no text',
      `{"version":1,"tokens":{"${store}":{"token":["${token}"],"savedAt":"${when}"}}}`,
      /tokens\.https:\/\/plants\.example\.com\.token must be a string$/,
    ],
  ])('is named, and left as it is: %s', async (_, text, why) => {
    const user = new AuthUser()
    user.write(text)
    for (const command of ['status', 'logout', 'token', 'login --with-token', 'status --verbose']) {
      const { code, out, err } = read(await user.auth(command, { stdin: 's3cret-another' }))
      expect({ command, code, out, err }).toEqual({
        ...{ command, code: 2, out: [] },
        err: [{ error: 400, message: expect.stringMatching(why), hint: expect.any(String) }],
      })
      expect(err).toEqual([
        expect.objectContaining({ message: expect.stringContaining(`The settings in ${user.file} `) }),
      ])
    }
    expect((await user.run(['create', '--id', '1', '--name', 'Fern', '--store', store])).code).toBe(2)
    expect(readFileSync(user.file)).toEqual(Buffer.from(text))
    expect(readdirSync(user.folder)).toEqual(['settings.json'])
  })

  test('is refused also when PLANTS_TOKEN is set', async () => {
    const user = new AuthUser()
    user.write('{')
    expect((await user.auth('status', { env: { PLANTS_TOKEN: token } })).code).toBe(2)
  })

  test('that is a folder is named', async () => {
    const user = new AuthUser()
    mkdirSync(user.file, { recursive: true })
    expect(read(await user.auth('status'))).toMatchObject({
      code: 2,
      err: [{ message: `The settings in ${user.file} are a directory` }],
    })
  })
})

describe('a folder in which nothing can be saved', () => {
  const hint = 'Choose another directory with PLANTS_CONFIG_DIR, or use flags and variables instead'
  const message = (folder: string, why: string) =>
    `The settings in ${folder}/settings.json could not be changed: ${why}`

  test('because a file is in its place, is named', async () => {
    const { url } = await accepting()
    const folder = join(temporaryFolder(), 'file')
    writeFileSync(folder, 'mine')
    for (const place of [folder, '/dev/null/plants']) {
      const result = await new AuthUser().auth(`login --with-token --store ${url}`, {
        stdin: token,
        env: { PLANTS_CONFIG_DIR: place },
      })
      expect(result).toEqual(failure(74, 500, message(place, 'a part of its path is not a directory'), hint))
    }
    expect(readFileSync(folder, 'utf8')).toBe('mine')
  })

  test.skipIf(isRoot)('because it is read-only, is named (needs a user that is not root)', async () => {
    const user = new AuthUser()
    const { url } = await accepting()
    user.save({})
    chmodSync(user.folder, 0o500)
    const result = await user.login(url)
    chmodSync(user.folder, 0o700)
    expect(result).toEqual(failure(74, 500, message(user.folder, 'permission denied'), hint))
    expect(user.saved).toEqual({ version: 1 })
  })

  test('because the file is read-only, is named', async () => {
    const user = new AuthUser()
    const { url } = await accepting()
    user.save({})
    chmodSync(user.file, 0o400)
    const mend = `Make the file writable: chmod u+w ${user.file}`
    expect(await user.login(url)).toEqual(failure(74, 500, message(user.folder, 'the file is read-only'), mend))
  })
})
