import { expect, test } from 'vitest'
import { Hostile, json } from '../../helpers/hostile.js'
import { objectsOf } from '../../helpers/json-lines.js'
import { token } from '../../helpers/remote.js'
import { World } from '../../helpers/world.js'

test.each<[string, Record<string, unknown>, Record<string, unknown>, Record<string, string>?]>([
  ['an empty ca-cert of all stores', { 'ca-cert': '' }, {}],
  ['an empty ca-cert of the store', {}, { 'ca-cert': '' }],
  ['a ca-cert that is not there', { 'ca-cert': '/nonexistent/ca.pem' }, {}],
  ['a ca-cert with U+0000', { 'ca-cert': '/etc/ca\0.pem' }, {}],
  ['an empty token command', {}, { 'token-command': '' }],
  ['a token command with a quote', {}, { 'token-command': "sh -c 'echo x'" }],
  ['PLANTS_ALLOW_HTTP', {}, {}, { PLANTS_ALLOW_HTTP: 'maybe' }],
  ['PLANTS_CA_CERT', {}, {}, { PLANTS_CA_CERT: '/nonexistent/ca.pem' }],
])('a wrong setting that decides about trust keeps the token from the store: %s', async (_, saved, ofStore, env) => {
  const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
  const stores = { team: { address: remote.url, ...ofStore } }
  const user = new World({ ...saved, stores, tokens: { [remote.url]: { token, savedAt: '' } } })
  for (const line of env ? ['doctor --store team'] : ['doctor', 'doctor --store team']) {
    const { out } = await user.run(`${line} --output ndjson`, { ...(env && { env }) })
    expect(objectsOf(out)).toContainEqual(
      expect.objectContaining({ check: 'store team', state: expect.stringMatching(/failed|warning/) }),
    )
  }
  expect(remote.connections).toBe(0)
})
