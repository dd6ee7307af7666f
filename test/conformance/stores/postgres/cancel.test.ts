import { connect, type Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import type { Login } from '../../../../src/stores/credentials.js'
import {
  buildDatabaseOptions,
  type Database,
  openPostgresStore,
  startOwnServer,
} from '../../../helpers/postgres/database.js'
import { waitForAbsentStandby } from '../../../helpers/postgres/standby.js'
import { createCertificate, hasOpenssl } from '../../../helpers/sandbox/certificates.js'
import { createPlant, gather } from '../../../helpers/sandbox/store.js'
import { ScriptedServer } from '../../../helpers/scripted-server/scripted-server.js'
import { settleAll, waitForBlockedSessions } from './steps.js'

// A server does not notice that a client has gone while a statement waits. So what is given up is
// canceled, and leaves no session there that `max` does not count.

const unknown = expect.stringMatching(/^unknownOutcome: /)
const timeoutMs = 1000

test('a commit that waits for an absent standby leaves no session at the server', async () => {
  const database = await startOwnServer()
  await expectNoSessionAfterCommit(database, await openPostgresStore(database, { timeoutMs }))
})

test('a cancelled commit over a Unix socket leaves no session at the server', async () => {
  const database = await startOwnServer()
  const url = `postgres://plants@/plants?host=${database.socketFolder}&port=${database.port}`
  await expectNoSessionAfterCommit(
    database,
    await openPostgresStore({ ...database, url }, { timeoutMs }),
  )
})

describe.runIf(hasOpenssl)('over TLS (needs openssl)', () => {
  test('a cancelled commit leaves no session, and the request to cancel is encrypted', async () => {
    const tls = createCertificate({ names: ['DNS:localhost'] })
    const database = await startOwnServer({ tls })
    const line = await listenBefore(database)
    const login: Login = { ...buildDatabaseOptions(database).login, ca: tls.cert }
    const url = database.url.replace(`127.0.0.1:${database.port}`, `localhost:${line.port}`)
    const options = { timeoutMs, login, parameters: 'sslmode=verify-full' }
    await expectNoSessionAfterCommit(
      database,
      await openPostgresStore({ ...database, url }, options),
    )
    expect(line.requests.length).toBeGreaterThan(0)
    for (const request of line.requests) expect(request.includes(cancelRequest)).toBe(false)
  })
})

test('a cancelled export leaves no session at the server', async () => {
  const database = await startOwnServer()
  const store = await openPostgresStore(database, { timeoutMs })
  const release = await database.beginTransaction(
    'LOCK TABLE plant_store.plants IN ACCESS EXCLUSIVE MODE',
  )
  expect(await settleAll([gather(store.read())])).toEqual([expect.stringMatching(/^unavailable: /)])
  await waitForBlockedSessions(database, 0)
  await release()
})

test('a server that does not answer a request to cancel delays the error by a second at most', async () => {
  const database = await startOwnServer()
  const line = await listenBefore(database)
  const url = database.url.replace(`:${database.port}`, `:${line.port}`)
  const store = await openPostgresStore({ ...database, url }, { timeoutMs })
  await waitForAbsentStandby(database)
  line.silence()
  const startMs = performance.now()
  expect(await settleAll([createPlant(store, { id: 1n, name: 'Fern' })])).toEqual([unknown])
  // The driver takes a second more than the timeout. The rest is for a slow machine.
  expect(performance.now() - startMs).toBeLessThan(timeoutMs + 5000)
})

/** The code of the message; what precedes it is its length. */
const cancelRequest = Buffer.from([0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e])

async function expectNoSessionAfterCommit(
  database: Database,
  store: Awaited<ReturnType<typeof openPostgresStore>>,
): Promise<void> {
  await waitForAbsentStandby(database)
  const ids = [1n, 2n]
  for (const id of ids)
    expect(await settleAll([createPlant(store, { id, name: 'Fern' })])).toEqual([unknown])
  const sessions = `SELECT wait_event FROM pg_stat_activity
    WHERE application_name = 'plants' AND state = 'active'`
  await expect.poll(() => database.queryAsSuperuser(sessions), { interval: 5 }).toEqual([])
  expect(await database.queryAsSuperuser('SELECT id FROM plant_store.plants ORDER BY id')).toEqual(
    ids.map((id) => ({ id })),
  )
}

/** Listens before a server, and records what clients send until it says nothing any more. */
async function listenBefore({ port: target }: { port: number }) {
  const requests: Buffer[] = []
  let isSilent = false
  const join = (near: Socket) => {
    if (isSilent) return
    const far = connect(target, '127.0.0.1')
    far.on('error', () => near.destroy()).on('close', () => near.destroy())
    near.on('close', () => far.destroy())
    near.removeAllListeners('data').on('data', (data) => {
      requests.push(data)
      far.write(data)
    })
    far.on('data', (data) => near.write(data))
  }
  const { port } = await ScriptedServer.listen({ onConnect: join })
  const silence = () => {
    isSilent = true
  }
  return { port, requests, silence }
}
