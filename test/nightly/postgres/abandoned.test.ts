import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { type Database, openPostgresStore, shareDatabase } from '../../helpers/postgres/database.js'
import { installations } from '../../helpers/postgres/server.js'
import { buildSqliteOptions, createPlant, gather } from '../../helpers/sandbox/store.js'
import { ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'
import { settleAll, waitForBlockedSessions } from './steps.js'

// No session may stay at a server whose client has gone, because `max` would not count it.

const fern = { id: 1n, name: 'Fern' }
const reason = new Error('The command was interrupted')
/** Only the server itself can end a statement before this. */
const timeoutMs = 3_600_000

test.each(installations)(
  'statements that are interrupted while they wait for a lock end at the server: $name',
  async (installation) => {
    const database = await shareDatabase(installation)()
    const controller = new AbortController()
    const runtime = { ...buildSqliteOptions().runtime, getStopSignal: () => controller.signal }
    const store = await openPostgresStore(database, { timeoutMs, runtime })
    const release = await database.beginTransaction(
      'LOCK TABLE plant_store.plants IN ACCESS EXCLUSIVE MODE',
    )
    const waiting = [store.get([1n]), gather(store.read()), createPlant(store, fern)]
    await waitForBlockedSessions(database, 3)
    controller.abort(reason)
    expect(await settleAll(waiting)).toEqual([reason, reason, reason])
    await waitForBlockedSessions(database, 0)
    await release()
  },
)

test('a server that does not accept the setting is used without it', async () => {
  const database = await shareDatabase()()
  const url = await listenBefore(database)
  const store = await openPostgresStore({ ...database, url }, { parameters: 'sslmode=disable' })
  await createPlant(store, fern)
  expect(await gather(store.read())).toEqual([fern])
})

/** Listens before a server, and makes the setting in what clients send invalid. */
async function listenBefore({ url }: Pick<Database, 'url'>): Promise<string> {
  const target = Number(new URL(url).port)
  const onConnect = (client: Socket) => {
    const server = connect(target, '127.0.0.1')
    server.on('error', () => client.destroy()).on('close', () => client.destroy())
    client.on('close', () => server.destroy())
    client.on('data', (data: Buffer) => {
      const text = data
        .toString('latin1')
        .replaceAll('check_interval = 500', 'check_interval = -50')
      server.write(Buffer.from(text, 'latin1'))
    })
    server.on('data', (data) => client.write(data))
  }
  const { port } = await ScriptedServer.listen({ onConnect })
  return Object.assign(new URL(url), { port }).href
}
