import { expect, test } from 'vitest'
import { PlantsError } from '../../../src/platform/errors.js'
import { ConnectionPool } from '../../../src/stores/postgres/pool.js'
import { closedPort } from '../../helpers/hostile.js'
import { objectsOf } from '../../helpers/json-lines.js'
import { runPlants } from '../../helpers/run.js'
import { addressOf, databaseOptions } from '../../helpers/shared-store.js'

test('no try at a database begins when its time is over', async () => {
  let now = 0
  const clock = { signal: new AbortController().signal, now: () => now, random: () => 1 } // pauses of 10, 20, 40 … ms
  const options = databaseOptions({ env: { PGPASSWORD: '' } }, { clock })
  const address = addressOf({ url: 'postgres://plants@127.0.0.1:1/plants' })
  const pool = new ConnectionPool({ address, login: await options.login(address) }, options)
  const failure = new PlantsError('unavailable', 'The disk is full', { retryable: true })
  const tries: number[] = []
  const fail = async (): Promise<void> => {
    tries.push(now)
    now += 10
    throw failure
  }
  await expect(pool.retry({ deadline: 45 }, fail)).rejects.toBe(failure)
  expect(tries).toEqual([0, 10, 20])
  pool.close()
})

test('a command that cannot reach its database warns for how long it tries again', async () => {
  const argv = ['list', '--store', `postgres://u@127.0.0.1:${closedPort}/x`, '--timeout', '2s', '--output', 'json']
  const { code, err } = await runPlants(argv)
  const message = expect.stringContaining('Could not reach')
  const warning = expect.stringMatching(/ECONNREFUSED .*\. Trying again for up to 2 s$/)
  expect([code, objectsOf(err)]).toMatchObject([4, [{ warning }, { error: 503, message }]])
})
