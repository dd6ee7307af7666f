import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Hostile, json } from '../../helpers/hostile.js'
import { objectsOf } from '../../helpers/json-lines.js'
import { token } from '../../helpers/remote.js'
import { runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'

describe('a setting that decides about trust', () => {
  test.each<[string, Record<string, unknown>, Record<string, unknown>, Record<string, string>, string[]]>([
    ['an empty ca-cert of all stores', { 'ca-cert': '' }, {}, {}, []],
    ['an empty ca-cert of the store', {}, { 'ca-cert': '' }, {}, []],
    ['a ca-cert that is not there', { 'ca-cert': '/nonexistent/ca.pem' }, {}, {}, []],
    ['a ca-cert with U+0000', { 'ca-cert': '/etc/ca\0.pem' }, {}, {}, []],
    ['an empty token command', {}, { 'token-command': '' }, {}, []],
    ['a token command with a quote', {}, { 'token-command': "sh -c 'echo x'" }, {}, []],
    ['PLANTS_ALLOW_HTTP', {}, {}, { PLANTS_ALLOW_HTTP: 'maybe' }, ['--store', 'team']],
    ['PLANTS_CA_CERT', {}, {}, { PLANTS_CA_CERT: '/nonexistent/ca.pem' }, ['--store', 'team']],
  ])('and is wrong keeps the token from the store: %s', async (_, saved, ofStore, env, flags) => {
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
    const root = temporaryFolder()
    const world = { ...env, PLANTS_CONFIG_DIR: root, PLANTS_DATA_DIR: root }
    const stores = { team: { address: remote.url, ...ofStore } }
    const tokens = { [remote.url]: { token, savedAt: '2026-01-02T03:04:05.678Z' } }
    writeFileSync(join(root, 'settings.json'), JSON.stringify({ version: 1, ...saved, stores, tokens }), {
      mode: 0o600,
    })
    for (const more of [flags, ['--store', 'team']]) {
      const { out } = await runPlants(['doctor', '--output', 'ndjson', ...more], { env: world })
      expect(objectsOf(out)).toContainEqual(
        expect.objectContaining({ check: 'store team', state: expect.stringMatching(/failed|warning/) }),
      )
    }
    expect(remote.connections).toBe(0)
  })
})

test('takes no argument, and knows its flags', async () => {
  expect(await runPlants(['doctor', 'me'])).toMatchObject({ code: 2, out: '' })
  expect(await runPlants(['doctor', '--fix'])).toMatchObject({ code: 2, out: '' })
  expect(await runPlants(['doctor', '--output', 'xml'])).toMatchObject({ code: 2, out: '' })
})
