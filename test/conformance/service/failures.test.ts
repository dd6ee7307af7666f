import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type ErrorKind, PlantsError } from '../../../src/errors.js'
import { createProblem, createRejectedOutcome } from '../../../src/stores/change.js'
import type { Store } from '../../../src/stores/store.js'
import { canMount, mountSmallDisk } from '../../helpers/sandbox/linux.js'
import { openDatabase, readIds } from '../../helpers/sandbox/sqlite-file.js'
import { exchangeOnce } from '../../helpers/scripted-server/raw-http.js'
import {
  createLogTo,
  getStorePath,
  quickStore,
  serve,
  serveStore,
} from '../../helpers/scripted-server/service.js'

const fern = '{"id":1,"name":"Fern"}'

describe('503 means that nothing was stored, and when to retry:', () => {
  const away = { status: 503, headers: { 'retry-after': '1' } }

  test('when the store is locked for longer than --timeout', async () => {
    const service = await serve(['--timeout', '400ms'])
    const db = openDatabase(getStorePath(service))
    db.exec('BEGIN IMMEDIATE')
    const creates = [1, 2, 3].map((id) =>
      exchangeOnce(service, { body: `{"id":${id},"name":"F"}` }),
    )
    expect(await Promise.all(creates)).toMatchObject([away, away, away])
    db.exec('ROLLBACK')
    expect(readIds(getStorePath(service))).toEqual([])
    expect((await exchangeOnce(service, { body: fern })).status).toBe(200)
  })

  test.runIf(canMount)(
    'when the disk is full, until it is not (a tmpfs, needs unshare)',
    async () => {
      const { folder, enter: through, inside } = await mountSmallDisk()
      const service = await serve([], { folder, through })
      const { bavail, bsize } = statfsSync(inside)
      writeFileSync(join(inside, 'filler'), Buffer.alloc(bavail * bsize))
      const request = { body: `{"id":1,"name":"${'Fern'.repeat(5000)}"}` }
      expect(await exchangeOnce(service, request)).toMatchObject(away)
      rmSync(join(inside, 'filler'))
      expect((await exchangeOnce(service, request)).status).toBe(200)
    },
  )
})

test.each<[ErrorKind | 'a bug', status: number, error: number]>([
  ['conflict', 400, 409],
  ['constraint', 400, 422],
  ['notFound', 400, 404],
  ['unavailable', 503, 503],
  ['accessDenied', 503, 503],
  ['unknownOutcome', 500, 500],
  ['internalError', 500, 500],
  ['a bug', 500, 500],
])('a failure says nothing of the inside, and no hint: %s', async (kind, status, error) => {
  const what = status < 500 ? 'What failed' : 'SECRET'
  const hint = 'HINT: plants get 1 --store ./plants.db'
  const failure =
    kind === 'a bug' ? new TypeError(what) : new PlantsError(kind, what, { hint, cause: 'SECRET' })
  const writes: Store['write'][] = [() => Promise.reject(failure)]
  if (kind !== 'a bug')
    writes.push(async () => [createRejectedOutcome(createProblem(kind, what, hint))])
  for (const write of writes) {
    const service = await serveStore({ ...quickStore, write })
    const answer = await exchangeOnce(service, { body: fern })
    const { message, ...rest } = JSON.parse(answer.body)
    expect({ status: answer.status, rest }).toEqual({ status, rest: { error } })
    expect(message).not.toMatch(/SECRET|HINT/)
    expect(message).toContain(status < 500 ? what : answer.headers['request-id'])
    expect(answer.headers['retry-after']).toBe(status === 503 ? '1' : undefined)
    if (status >= 500) expect(service.log()).toContain('SECRET')
  }
})

test('a service goes on when its log fails', async () => {
  const log = createLogTo(() => Promise.reject(new Error('The log is broken')))
  const service = await serveStore(quickStore, { log })
  for (const body of [fern, '{', fern])
    expect((await exchangeOnce(service, { body })).status).toBe(body === fern ? 200 : 400)
})
