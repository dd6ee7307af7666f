import { expect, onTestFinished, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import { HttpClient } from '../../../../src/stores/http/client.js'
import type { Failure } from '../../../../src/stores/http/failure.js'
import { Retries } from '../../../../src/stores/http/retry.js'
import { parseAddress } from '../../../../src/stores/registry.js'
import { token } from '../../../helpers/remote.js'
import { openOptions, place } from '../../../helpers/store.js'

test('how long a request is retried does not change by asking', async () => {
  let now = 0
  const clock = { signal: new AbortController().signal, now: () => now, random: () => 0 }
  const address = await parseAddress('http://127.0.0.1:9', 'test', place())
  if (address.scheme !== 'remote') throw new Error('Only services are expected here')
  const access = { token, userAgent: 'test', ca: undefined, proxy: undefined, observer: undefined, tokenHint: '' }
  const options = openOptions({ timeout: 30_000, retry: 2000, clock })
  const client = await HttpClient.open(address, { ...access, notify: async () => {} }, options)
  onTestFinished(() => client.close())
  const retries = new Retries(client)
  const failure: Failure = { outcome: 'retry', reason: 'refused', error: new PlantsError('unavailable', 'Refused') }
  const asked = () => [retries.explain(failure), retries.limit(failure), retries.pauseAfter(failure, 0), retries.left]
  now = 1500
  expect([asked(), asked()]).toEqual(Array(2).fill(['Refused. Trying again for up to 1 s', 2000, 50, 28_500]))
  retries.note(failure)
  expect([asked(), asked()]).toEqual(Array(2).fill(['Refused. Trying again for up to 2 s', 3500, 50, 30_000]))
  now = 2500
  retries.note(failure)
  expect(asked()).toEqual(['Refused. Trying again for up to 1 s', 3500, 50, 30_000])
  now = 3500
  expect(retries.pauseAfter(failure, 0)).toBeUndefined()
})
