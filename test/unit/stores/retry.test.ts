import { expect, onTestFinished, test } from 'vitest'
import { PlantsError } from '../../../src/platform/errors.js'
import type { Failure } from '../../../src/stores/http/classify.js'
import { HttpClient } from '../../../src/stores/http/http-client.js'
import { requestToRead } from '../../../src/stores/http/plant-request.js'
import { Requests } from '../../../src/stores/http/retry.js'
import { parseAddress } from '../../../src/stores/registry.js'
import { closedPort } from '../../helpers/hostile.js'
import { objectsOf } from '../../helpers/json-lines.js'
import { usualAccess } from '../../helpers/remote.js'
import { runPlants } from '../../helpers/run.js'
import { openOptions, place } from '../../helpers/store.js'

test('how long a request is retried does not change by asking, and refused connections use up no timeout', async () => {
  let now = 0
  const clock = { signal: new AbortController().signal, now: () => now, random: () => 0 }
  const address = await parseAddress(`http://127.0.0.1:${closedPort}`, 'test', place())
  if (address.scheme !== 'remote') throw new Error('Only services are expected here')
  const warnings: string[] = []
  const notify = async (text: string) => {
    warnings.push(text)
    now += 1000
  }
  const access = { ...usualAccess, notify }
  const client = await HttpClient.open(address, access, openOptions({ timeout: 30_000, retry: 1500, clock }))
  onTestFinished(() => client.close())
  const requests = new Requests(client)
  const error = new PlantsError('unavailable', 'Not now')
  const failures: Failure[] = [
    { outcome: 'retry', error, isRefused: true },
    { outcome: 'retry', error, retryAfter: 28_000 },
    { outcome: 'retry', error, retryAfter: 29_500 },
  ]
  const asked = () => failures.map((failure) => requests.isOver(failure))
  expect([asked(), asked()]).toEqual(Array(2).fill([false, false, true]))
  now = 29_000
  expect([asked(), asked()]).toEqual(Array(2).fill([false, true, true]))
  const sent = requests.send(requestToRead(client, 1n))
  await expect.poll(() => warnings.length).toBe(1)
  expect(asked()).toEqual([false, false, true]) // the refused connection has begun the timeout again
  now = 31_000
  expect(await sent).toMatchObject({ outcome: 'retry', isRefused: true })
  expect(warnings).toEqual([expect.stringMatching(/the connection was refused\. Trying again for up to 2 s$/)])
})

test('a command tries for two seconds to reach its database, and says so', async () => {
  const argv = ['list', '--store', `postgres://u@127.0.0.1:${closedPort}/x`, '--timeout', '30s', '--output', 'json']
  const { code, err } = await runPlants(argv)
  const message = expect.stringContaining('Could not reach')
  const warning = expect.stringMatching(/ECONNREFUSED .*\. Trying again for up to 2 s$/)
  expect([code, objectsOf(err)]).toMatchObject([4, [{ warning }, { error: 503, message }]])
})
