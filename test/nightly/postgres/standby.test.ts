import { expect, test } from 'vitest'
import { createFixedTokenSource } from '../../../src/server/authenticate.js'
import { type Database, openPostgresStore } from '../../helpers/postgres/database.js'
import { startServerWithStandby } from '../../helpers/postgres/standby.js'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { exchangeOnce } from '../../helpers/scripted-server/raw-http.js'
import {
  serveInProcess,
  testCaller,
  testToken,
  toConnectOptions,
} from '../../helpers/scripted-server/service.js'

// PostgreSQL waits for the synchronous standby after a commit. When that wait is canceled, it answers
// COMMIT with a warning: the plant is stored on the primary, and is lost if that fails.

const often = { interval: 5 }
const hour = 3_600_000
const waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
const unknownOfImport = '{"created":0,"updated":0,"skipped":0,"rejected":0,"unknown":1}\n'
const stored = 'SELECT id::int FROM plant_store.plants ORDER BY id'

test('no command succeeds before the standby has its plants, not even when it is repeated', async () => {
  const { primary, standby } = await startServerWithStandby()
  await primary.queryAsSuperuser('ALTER ROLE plants SET client_min_messages = error')
  const user = new ImportSandbox()
  const env = { ...primary.env, PLANTS_STORE: primary.url }
  const run = (line: string, now = () => 0) =>
    user.run(line, { env, stdin: buildPlantLine(3), now })
  const lines = [
    'create --id 1 --name Fern',
    'create --id 2 --name Moss --idempotency-key moss',
    'create --id 2 --name Moss --idempotency-key moss',
    'import --if-exists same',
    'import --if-exists same',
    'import --if-exists update',
    `stores init ${primary.url}`,
  ]
  await standby.stop('immediate')
  for (const line of lines) {
    let canceledCount = 0
    // After two waits that were canceled, its timeout is over, so that it tries no more.
    const running = run(line, () => (canceledCount < 2 ? 0 : hour))
    const { code, out, err } = await cancelWaitsUntilEnd(primary, running, (count) => {
      canceledCount += count
    })
    expect({ line, code, out, err }).toMatchObject({ line, code: 5 })
    expect(out).toBe(line.startsWith('import') ? unknownOfImport : '')
    expect(err).toContain('canceling wait for synchronous replication')
  }

  await standby.start()
  for (const line of lines.slice(1))
    expect({ line, ...(await run(line)) }).toMatchObject({ line, code: 0 })
  await primary.stop('immediate')
  await standby.promote()
  expect(await standby.queryAsSuperuser(stored)).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }])
})

test('a service repeats a create with a key until the standby has it, even if that writes nothing', async () => {
  const { primary, standby } = await startServerWithStandby()
  // With this trigger, an INSERT of what is stored fails without having written anything.
  await primary.queryAsSuperuser(`CREATE FUNCTION ignore() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RETURN CASE WHEN EXISTS (SELECT FROM plant_store.plants WHERE id = NEW.id)
      THEN NULL ELSE NEW END; END $$;
    CREATE TRIGGER ignore BEFORE INSERT ON plant_store.plants FOR EACH ROW EXECUTE FUNCTION ignore()`)
  const { address } = await serveInProcess({
    openStore: () => openPostgresStore(primary),
    openTokenSource: async () => createFixedTokenSource(testToken, testCaller),
  })
  const service = { endpoint: toConnectOptions(address), token: testToken }
  const create = (id: number, headers = {}) =>
    exchangeOnce(service, { headers, body: `{"id":${id},"name":"Fern"}` })
  const key = { 'Idempotency-Key': 'fern' }

  await standby.stop('immediate')
  const withoutKey = await cancelWaitsUntilEnd(primary, create(1))
  expect(withoutKey.text).toMatch(/^500 Whether the plant is stored is unknown/)
  let isAnswered = false
  const repeated = create(2, key).finally(() => {
    isAnswered = true
  })
  for (let tries = 1; tries <= 3; tries += 1)
    await expect.poll(() => cancelWaits(primary), often).toBe(1)
  await expect.poll(() => primary.queryAsSuperuser(`SELECT ${waiting}`), often).toHaveLength(1)
  expect(isAnswered).toBe(false)

  await standby.start()
  expect((await repeated).text).toBe('200 {"name":"Fern"}')
  expect((await create(2, key)).text).toBe('200 {"name":"Fern"}')
  await primary.stop('immediate')
  await standby.promote()
  expect(await standby.queryAsSuperuser(stored)).toEqual([{ id: 1 }, { id: 2 }])
})

/** Does what an administrator does who sees commits that hang; gives how many were waiting. */
async function cancelWaits({ queryAsSuperuser }: Database): Promise<number> {
  return (await queryAsSuperuser(`SELECT pg_cancel_backend(pid) ${waiting}`)).length
}

async function cancelWaitsUntilEnd<T>(
  database: Database,
  running: Promise<T>,
  onCanceled: (count: number) => void = () => undefined,
): Promise<T> {
  const controller = new AbortController()
  const ended = running.finally(() => controller.abort())
  while (!controller.signal.aborted) onCanceled(await cancelWaits(database))
  return ended
}
