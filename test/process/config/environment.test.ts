import { expect, test } from 'vitest'
import { parseObjects, Sandbox } from '../../helpers/sandbox/sandbox.js'

// Commander reads the variables of a process itself, which no test within this process has.

test('an empty environment variable counts as not set, and the variable of a switch needs a value', async () => {
  const user = new Sandbox({ timeout: '7s' })
  const env = { PLANTS_TIMEOUT: ' ', PLANTS_ALLOW_HTTP: 'false', PLANTS_CA_CERT: ' ./ca.pem ' }
  const { code, out } = await user.spawn('config list --output ndjson', { env })
  const rows = parseObjects(out).map(({ name, value, source }) => [name, value, source])
  expect([code, rows]).toEqual([
    0,
    expect.arrayContaining([
      ['timeout', '7s', 'saved'],
      ['allow-http', 'false', 'variable'],
      ['ca-cert', './ca.pem', 'variable'],
    ]),
  ])
})

test('an environment variable is not saved with a store, and does not hide a repeated option', async () => {
  const user = new Sandbox()
  const env = { PLANTS_TIMEOUT: '9s', PLANTS_ALLOW_HTTP: '1' }
  expect((await user.spawn('stores add team http://127.0.0.1:9', { env })).code).toBe(0)
  expect(user.saved).toEqual({ version: 1, stores: { team: { address: 'http://127.0.0.1:9' } } })
  const { code, err } = await user.spawn('config list --timeout 1s --timeout 2s', { env })
  expect([code, err]).toEqual([2, expect.stringContaining('--timeout was given twice')])
})
