import { expect, test } from 'vitest'
import { exchange } from '../../helpers/raw-http.js'
import { placeOf, serve, testToken } from '../../helpers/service.js'
import { World } from '../../helpers/world.js'

const fern = '{"id":1,"name":"Fern"}'

test('a service accepts PLANTS_SERVE_TOKEN and the tokens of --token-file, when they are given, and no others', async () => {
  const world = new World()
  world.write('tokens', 's3cret-first-of-the-file\r\n\n  s3cret-second-of-the-file  \n')
  const ofStore = (await world.spawn('tokens create')).out.trim()
  const service = await serve(['--token-file', `${world.home}/tokens`], { folder: world.home })
  const statusOf = async (token: string) =>
    (await exchange({ ...service, token }, { headers: { 'Idempotency-Key': 'k' }, body: fern })).status
  const accepted = [testToken, 's3cret-first-of-the-file', 's3cret-second-of-the-file']
  for (const token of accepted) expect(await statusOf(token)).toBe(200)
  for (const token of [ofStore, 's3cret-third-of-the-file']) expect(await statusOf(token)).toBe(400)
  expect(service.err).not.toMatch(/of-the-file/)
})

test('a token is made on a terminal for a store that has none, and shown once', async () => {
  const world = new World()
  const first = world.terminal('serve --port 0')
  await first.see('listening')
  const [token = '', ...more] = first.screen.match(/plants_[\w-]{43}/g) ?? []
  const address = /http:\/\/127\.0\.0\.1:\d+/.exec(first.screen)?.[0] ?? ''
  expect((await exchange({ place: placeOf(address), token }, { body: fern })).status).toBe(200)
  first.kill('SIGTERM')
  const ended = await first.ended
  expect([more, ended.code, ended.screen.match(/plants_[\w-]{43}/g)]).toEqual([[], 0, [token]])
  const second = world.terminal('serve --port 0')
  await second.see('listening')
  second.kill('SIGINT')
  expect((await second.ended).screen).not.toMatch(/plants_[\w-]{43}/)
})
