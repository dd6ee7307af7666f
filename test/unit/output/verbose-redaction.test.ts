import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Hostile, http, json } from '../../helpers/hostile.js'
import { objectsOf } from '../../helpers/json-lines.js'
import { token } from '../../helpers/remote.js'
import { runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { create, wire } from '../../helpers/traces.js'

const posts = [json(200, { name: 'Fern' })]

describe('nothing is shown', () => {
  test('of a token, wherever a service repeats it', async () => {
    const said = { 'X-Token': token, Location: `https://example.com/?${token}`, 'Content-Type': `text/${token}` }
    for (const flags of [[], ['--output', 'json']]) {
      const remote = await Hostile.listen({ posts: [http(400, `{"error":400,"message":"${token}"}`, said)] })
      const { out, err } = await create(remote.url, flags)
      expect(err).toContain('***')
      expect(`${out}${err}`).not.toContain(token)
    }
  })

  test.each(['error', 'verbose', 'true'])(
    'that would spoil JSON: the token %s hides no name or value but texts',
    async (word) => {
      const env = { PLANTS_TOKEN: word }
      const { err } = await create('http://127.0.0.1:9', ['--timeout', '10ms', '--output', 'json'], { env })
      const [first, ...others] = objectsOf(err)
      expect(Object.keys(first ?? {})).toEqual(['verbose'])
      expect(Object.keys(others.at(-1) ?? {})).toEqual(['error', 'message', 'hint', 'retryable'])
    },
  )

  test('of a password in front of an @, although that is no address of a store', async () => {
    const env = { PLANTS_CONFIG_DIR: temporaryFolder() }
    for (const argv of [
      ['stores', 'list'],
      ['config', 'get', 'timeout'],
      ['create', '--id', '1', '--name', 'Fern'],
      ['doctor'],
    ]) {
      const { out, err } = await runPlants([...argv, '-v', '--store', 'https://user:s3cret@plants.example.com'], {
        env,
      })
      expect({ argv, said: `${out}${err}` }).toEqual({ argv, said: expect.not.stringContaining('s3cret') })
    }
  })

  test('of a token that a command prints, or that was saved', async () => {
    const folder = temporaryFolder()
    const env = { PLANTS_CONFIG_DIR: folder, PLANTS_TOKEN: '' }
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
    await runPlants(['auth', 'login', '--with-token', '--store', remote.url], { env, stdin: token })
    const saved = await create(remote.url, [], { env })
    expect(saved.err).toContain(`* token from ${join(folder, 'settings.json')}\n`)
    writeFileSync(join(folder, 'token.sh'), 'echo s3cret-of-command')
    await runPlants(['stores', 'add', 'team', remote.url, '--token-command', `/bin/sh ${join(folder, 'token.sh')}`], {
      env,
    })
    const found = await create('team', [], { env })
    expect(found.err).toContain('* token from the token command of team\n')
    expect(remote.posts.map(({ headers }) => headers['authorization'])).toEqual([
      ...[`Bearer ${token}`, `Bearer ${token}`], // the first of them when it was saved
      'Bearer s3cret-of-command',
    ])
    for (const { out, err } of [saved, found]) {
      expect(err).toContain('> authorization: Bearer ***\n')
      expect(`${out}${err}`).not.toMatch(/s3cret/)
    }
  })

  test('that could drive a terminal: control characters of headers are made visible', async () => {
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n'
    const wild = Buffer.from(
      `${head}X-Wild: a\tb\u009b31m\u0085\r\nX-Twice: one\r\nX-Twice: two\r\n\r\n{"name":"Fern"}`,
      'latin1',
    )
    const remote = await Hostile.listen({ posts: [wild] })
    const { code, err } = await create(remote.url, [], { terminals: ['stderr', 'stdout'] })
    expect({ code, said: wire(err, remote.url) }).toEqual({
      code: 0,
      said: expect.arrayContaining(['< x-wild: a\\u{9}b\\u{9b}31m\\u{85}', '< x-twice: one', '< x-twice: two']),
    })
    expect(err.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u)
  })

  test('on stdout but the answer', async () => {
    const remote = await Hostile.listen({ posts })
    const text = await create(remote.url, ['--output', 'text'])
    expect({ code: text.code, out: text.out }).toEqual({ code: 0, out: 'Planted Fern (id 1)\n' })
    for (const argv of [
      ['config', 'get', 'timeout'],
      ['config', 'list'],
      ['stores', 'list'],
      ['get', '1'],
      ['list'],
      ['tokens', 'list'],
    ]) {
      const env = { PLANTS_DATA_DIR: temporaryFolder(), PLANTS_CONFIG_DIR: temporaryFolder() }
      const quiet = await runPlants(argv, { env })
      const loud = await runPlants([...argv, '-v'], { env })
      expect({ argv, code: loud.code, out: loud.out }).toEqual({ argv, code: quiet.code, out: quiet.out })
      expect(loud.err).toMatch(/^\* settings .*\n(\* .*\n)+/)
      expect(loud.err.endsWith(quiet.err)).toBe(true)
    }
  })

  test('of settings twice', async () => {
    const env = { PLANTS_DATA_DIR: temporaryFolder(), PLANTS_CONFIG_DIR: temporaryFolder() }
    await runPlants(['stores', 'add', 'team', 'https://plants.example.com'], { env })
    for (const argv of [
      ['stores', 'use', 'team'],
      ['auth', 'status'],
      ['config', 'set', 'timeout', '1m'],
      ['stores', 'remove', 'team'],
    ]) {
      const { err } = await runPlants([...argv, '--verbose'], { env })
      expect({ argv, count: err.match(/^\* timeout /gm)?.length }).toEqual({ argv, count: 1 })
    }
  })
})
