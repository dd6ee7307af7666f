import { describe, expect, test } from 'vitest'
import { Hostile, json } from '../../helpers/hostile.js'
import { objectsOf } from '../../helpers/json-lines.js'
import { token } from '../../helpers/remote.js'
import { create, wire } from '../../helpers/traces.js'
import { World } from '../../helpers/world.js'

describe('--verbose shows', () => {
  test.each(['error', 'verbose', 'true'])('no *** in the names of JSON for the token %s', async (word) => {
    const env = { PLANTS_TOKEN: word }
    const { err } = await create('http://127.0.0.1:9', ['--timeout', '10ms', '--output', 'json'], { env })
    const [first, ...others] = objectsOf(err)
    expect(Object.keys(first ?? {})).toEqual(['verbose'])
    expect(Object.keys(others.at(-1) ?? {})).toEqual(['error', 'message', 'hint', 'retryable'])
  })

  test('the source of a token, but not the token', async () => {
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
    const user = new World()
    await user.run(`auth login --with-token --store ${remote.url}`, { stdin: token })
    user.write('token.txt', 's3cret-of-command')
    await user.run(['stores', 'add', 'team', remote.url, '--token-command', `cat ${user.home}/token.txt`])
    for (const [store, source] of [
      [remote.url, user.file],
      ['team', 'the token command of team'],
    ]) {
      const { err } = await user.run(`create --id 1 --name Fern --verbose --store ${store}`)
      expect(err.split('\n')).toEqual(expect.arrayContaining([`* token from ${source}`, '> authorization: Bearer ***']))
    }
    const sent = remote.posts.map(({ headers }) => headers['authorization'])
    expect(sent).toEqual([`Bearer ${token}`, `Bearer ${token}`, 'Bearer s3cret-of-command']) // the first by the login
  })

  test('control characters of headers escaped', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n'
    const wild = 'X-Wild: a\tb\u009b31m\u0085\r\nX-Twice: one\r\nX-Twice: two'
    const remote = await Hostile.listen({ posts: [Buffer.from(`${head}${wild}\r\n\r\n{"name":"Fern"}`, 'latin1')] })
    const { err } = await create(remote.url, [], { terminals: ['stderr', 'stdout'] })
    const shown = ['< x-wild: a\\u{9}b\\u{9b}31m\\u{85}', '< x-twice: one', '< x-twice: two']
    expect(wire(err, remote.url)).toEqual(expect.arrayContaining(shown))
    expect(err.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u)
  })

  test.each(['config get timeout', 'config list', 'stores list', 'get 1', 'list', 'tokens list'])(
    'nothing on stdout: plants %s',
    async (line) => {
      const user = new World()
      const quiet = await user.run(line)
      const loud = await user.run(`${line} -v`)
      expect({ ...loud, err: loud.err.endsWith(quiet.err) }).toEqual({ ...quiet, err: true })
      expect(loud.err).toMatch(/^\* settings .*\n(\* .*\n)+/)
    },
  )

  test('no setting twice', async () => {
    const user = new World({ stores: { team: { address: 'https://plants.example.com' } } })
    for (const line of ['stores use team', 'auth status', 'config set timeout 1m', 'stores remove team']) {
      const { err } = await user.run(`${line} --verbose`)
      expect({ line, count: err.match(/^\* timeout /gm)?.length }).toEqual({ line, count: 1 })
    }
  })
})
