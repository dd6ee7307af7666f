import { expect, test } from 'vitest'
import { closedPort } from '../../helpers/hostile.js'
import { runPlants } from '../../helpers/run.js'
import { objectsOf } from '../../helpers/world.js'

test('a command tries for two seconds to reach its database, and says so', async () => {
  const argv = [
    'list',
    '--store',
    `postgres://u@127.0.0.1:${closedPort}/x`,
    '--timeout',
    '30s',
    '--output',
    'json',
  ]
  const { code, err } = await runPlants(argv)
  const message = expect.stringContaining('Could not reach')
  const warning = expect.stringMatching(/ECONNREFUSED .*\. Trying again for up to 2 s$/)
  expect([code, objectsOf(err)]).toMatchObject([4, [{ warning }, { error: 503, message }]])
})
