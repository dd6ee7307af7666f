import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../src/platform/errors.js'
import { canMount, smallDisk } from '../../helpers/linux.js'
import { exchange, type RawRequest } from '../../helpers/raw-http.js'
import {
  lockStore,
  logInto,
  quick,
  type RunningService,
  serve,
  serveStore,
  storedIn,
} from '../../helpers/service.js'

const fern = '{"id":1,"name":"Fern"}'

const about = (message: string, requestId = '') =>
  `${message}. Ask the operator of the service about request ${requestId}`

describe('503 means that nothing was stored, and when to retry:', () => {
  async function isAway(service: RunningService, request: RawRequest): Promise<void> {
    const { text, headers } = await exchange(service, request)
    const message = about(
      '503 The store is not available, and nothing was stored',
      headers['request-id'],
    )
    expect([text, headers['retry-after']]).toEqual([message, '1'])
  }

  test('when the store is locked for longer than --timeout', async () => {
    const service = await serve(['--timeout', '400ms'])
    const unlock = lockStore(service)
    await Promise.all(
      [1, 2, 3].map((id) => isAway(service, { body: `{"id":${id},"name":"Fern"}` })),
    )
    unlock()
    expect(await storedIn(service)).toEqual([])
    expect((await exchange(service, { body: fern })).status).toBe(200)
  })

  test.runIf(canMount)(
    'when the disk is full, until it is not (a tmpfs, needs unshare)',
    async () => {
      const { folder, owner, inside } = await smallDisk()
      const through = ['nsenter', '-t', `${owner}`, '-U', '-m', '--preserve-credentials']
      const service = await serve(['--store', join(folder, 'plants.db')], { folder, through })
      const { bavail, bsize } = statfsSync(inside)
      writeFileSync(join(inside, 'filler'), Buffer.alloc(bavail * bsize))
      const request = { body: `{"id":1,"name":"${'Fern'.repeat(5000)}"}` }
      await isAway(service, request)
      rmSync(join(inside, 'filler'))
      expect((await exchange(service, request)).status).toBe(200)
    },
  )
})

test.each([
  ['a defect', new TypeError('SECRET'), 'Internal error'],
  [
    'an unknown outcome',
    new PlantsError('unknownOutcome', 'SECRET'),
    'Whether the plant is stored is unknown',
  ],
])('500 says nothing of the inside, and names the request: %s', async (_, error, words) => {
  const service = await serveStore({ ...quick, write: () => Promise.reject(error) })
  const { text, headers } = await exchange(service, { body: fern })
  expect(text).toBe(about(`500 ${words}`, headers['request-id']))
  expect(service.log()).toContain('SECRET')
})

test('a service goes on when its log fails', async () => {
  const log = logInto(() => Promise.reject(new Error('The log is broken')))
  const service = await serveStore(quick, { log })
  for (const body of [fern, '{', fern])
    expect((await exchange(service, { body })).status).toBe(body === fern ? 200 : 400)
})
