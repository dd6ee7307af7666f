import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { plants } from '../../helpers/process.js'
import { exchange } from '../../helpers/raw-http.js'
import { placeOf, serve, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'

const fern = '{"id":1,"name":"Fern"}'

describe('the tokens that a service accepts', () => {
  test('are those of the store; without one, and without a terminal, it does not start', async () => {
    const folder = temporaryFolder()
    await plants(['create', '--id', '1', '--name', 'Fern'], folder)
    const { err, ...result } = await plants(['serve', '--port', '0', '--output', 'json'], folder)
    const message = `${join(folder, 'data/plants.db')} has no valid token, so no client could use the service`
    const error = {
      error: 401,
      message,
      hint: 'Create one with: plants tokens create. Or set PLANTS_SERVE_TOKEN, or add --token-file PATH',
    }
    expect({ ...result, err: JSON.parse(err) }).toEqual({ code: 3, out: '', err: error })
  })

  test('are PLANTS_SERVE_TOKEN and those of --token-file, when they are given, and no others', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'tokens')
    writeFileSync(file, 's3cret-first-of-the-file\r\n\n  s3cret-second-of-the-file  \n')
    const ofStore = (await plants(['tokens', 'create'], folder)).out.trim()
    const service = await serve(['--token-file', file], { folder })
    const isAccepted = async (token: string) => {
      const { status, body } = await exchange(
        { place: service.place, token },
        { headers: { 'Idempotency-Key': 'k' }, body: fern },
      )
      return status === 200 || JSON.parse(body).error
    }
    const accepted = (tokens: string[]) => Promise.all(tokens.map(isAccepted))
    const all = [
      testToken,
      's3cret-first-of-the-file',
      's3cret-second-of-the-file',
      ofStore,
      's3cret-third-of-the-file',
    ]
    expect(await accepted(all)).toEqual([true, true, true, 401, 401])
    expect(service.err).not.toMatch(/of-the-file/)
  })

  test('are made on a terminal for a store that has none, and shown once', async () => {
    const folder = temporaryFolder()
    const first = terminal(['serve', '--port', '0'], folder)
    await first.see('listening')
    const [token = '', ...more] = first.screen.match(/plants_[\w-]{43}/g) ?? []
    const address = /http:\/\/127\.0\.0\.1:\d+/.exec(first.screen)?.[0] ?? ''
    expect((await exchange({ place: placeOf(address), token }, { body: fern })).status).toBe(200)
    first.kill('SIGTERM')
    const ended = await first.ended
    expect([more, ended.code, ended.screen.match(/plants_[\w-]{43}/g)]).toEqual([[], 0, [token]])
    const second = terminal(['serve', '--port', '0'], folder)
    await second.see('listening')
    second.kill('SIGINT')
    expect((await second.ended).screen).not.toMatch(/plants_[\w-]{43}/)
  })
})
