import { expect, test } from 'vitest'
import { PostgresStore } from '../../../../src/stores/postgres/store.js'
import { ownServer } from '../../../helpers/postgres.js'
import { addressOf, databaseOptions } from '../../../helpers/shared-store.js'
import { closedAfterTest } from '../../../helpers/store.js'

const fern = { id: 1n, name: 'Fern' }
const unknown = expect.objectContaining({ kind: 'unknownOutcome' })

test('what is not on a standby is answered by no store, also by one that was connected before there was a standby', async () => {
  const database = await ownServer()
  const open = async () => closedAfterTest(await PostgresStore.open(addressOf(database), databaseOptions(database, { timeout: 1500 })))
  const [first, second] = [await open(), await open()]
  await Promise.all([first.create({ ...fern, id: -1n }), second.create({ ...fern, id: -2n })])
  await database.admin("ALTER SYSTEM SET synchronous_standby_names = 'absent'")
  await database.admin('SELECT pg_reload_conf()')
  const awaited = async () => (await database.admin('SHOW synchronous_standby_names'))[0]
  await expect.poll(awaited).toEqual({ synchronous_standby_names: 'absent' })
  const create = (store: PostgresStore) => store.create(fern, { idempotencyKey: 'fern' })

  await expect(create(first)).rejects.toEqual(unknown)
  expect(await Promise.allSettled([create(second), create(first)])).toMatchObject([{ status: 'rejected' }, { status: 'rejected' }])

  await database.admin('ALTER SYSTEM RESET synchronous_standby_names')
  await database.admin('SELECT pg_reload_conf()')
  await expect.poll(() => create(second).catch(() => undefined)).toEqual({ name: 'Fern' })
  expect(await create(first)).toEqual({ name: 'Fern' })
})
