import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type ErrorKind, PlantsError } from '../../src/errors.js'
import { createProblem, createRejectedOutcome } from '../../src/stores/change.js'
import type { Store } from '../../src/stores/store.js'
import { canMount, mountSmallDisk } from '../helpers/sandbox/linux.js'
import { openDatabase, readIds } from '../helpers/sandbox/sqlite-file.js'
import { exchangeOnce } from '../helpers/scripted-server/raw-http.js'
import {
  createLogTo,
  getStorePath,
  quickStore,
  serve,
  serveStore,
} from '../helpers/scripted-server/service.js'

const fern = '{"id":1,"name":"Fern"}'

describe('a service has stored nothing, and responds 503 with Retry-After,', () => {
  const unavailable = { status: 503, headers: { 'retry-after': '1' } }

  test('when its store is locked for longer than --timeout', async () => {
    const service = await serve(['--timeout', '400ms'])
    const db = openDatabase(getStorePath(service))
    db.exec('BEGIN IMMEDIATE')
    const creates = [1, 2, 3].map((id) =>
      exchangeOnce(service, { body: `{"id":${id},"name":"F"}` }),
    )
    expect(await Promise.all(creates)).toMatchObject([unavailable, unavailable, unavailable])
    db.exec('ROLLBACK')
    expect(readIds(getStorePath(service))).toEqual([])
    expect((await exchangeOnce(service, { body: fern })).status).toBe(200)
  })

  test.runIf(canMount)(
    'when its disk is full, until there is space again (a tmpfs, needs unshare)',
    async () => {
      const { folder, enter: through, inside } = await mountSmallDisk()
      const service = await serve([], { folder, through })
      const { bavail, bsize } = statfsSync(inside)
      writeFileSync(join(inside, 'filler'), Buffer.alloc(bavail * bsize))
      const request = { body: `{"id":1,"name":"${'Fern'.repeat(5000)}"}` }
      expect(await exchangeOnce(service, request)).toMatchObject(unavailable)
      rmSync(join(inside, 'filler'))
      expect((await exchangeOnce(service, request)).status).toBe(200)
    },
  )
})

test.each<{ kind: ErrorKind | 'TypeError'; status: number; error: number }>([
  { kind: 'conflict', status: 400, error: 409 },
  { kind: 'constraint', status: 400, error: 422 },
  { kind: 'notFound', status: 400, error: 404 },
  { kind: 'unavailable', status: 503, error: 503 },
  { kind: 'accessDenied', status: 503, error: 503 },
  { kind: 'unknownOutcome', status: 500, error: 500 },
  { kind: 'internalError', status: 500, error: 500 },
  { kind: 'TypeError', status: 500, error: 500 },
])(
  'a service answers a failure $kind with $status, and shows neither internals nor a hint',
  async (row) => {
    const { kind, status, error } = row
    const description = status < 500 ? 'What failed' : 'SECRET'
    const hint = 'HINT: plants get 1 --store ./plants.db'
    const failure =
      kind === 'TypeError'
        ? new TypeError(description)
        : new PlantsError(kind, description, { hint, cause: 'SECRET' })
    const writes: Store['write'][] = [() => Promise.reject(failure)]
    if (kind !== 'TypeError')
      writes.push(async () => [createRejectedOutcome(createProblem(kind, description, hint))])
    for (const write of writes) {
      const service = await serveStore({ ...quickStore, write })
      const response = await exchangeOnce(service, { body: fern })
      const { message, ...members } = JSON.parse(response.body)
      expect({ status: response.status, members }).toEqual({ status, members: { error } })
      expect(message).not.toMatch(/SECRET|HINT/)
      expect(message).toContain(status < 500 ? description : response.headers['request-id'])
      expect(response.headers['retry-after']).toBe(status === 503 ? '1' : undefined)
      if (status >= 500) expect(service.log()).toContain('SECRET')
    }
  },
)

test('a service keeps responding when its log fails', async () => {
  const log = createLogTo(() => Promise.reject(new Error('The log is broken')))
  const service = await serveStore(quickStore, { log })
  for (const body of [fern, '{', fern])
    expect((await exchangeOnce(service, { body })).status).toBe(body === fern ? 200 : 400)
})
