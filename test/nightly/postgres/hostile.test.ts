import type { Socket } from 'node:net'
import { describe, expect, test } from 'vitest'
import { PostgresStore } from '../../../src/stores/postgres/store.js'
import {
  buildDatabaseOptions,
  openPostgresStore,
  parseDatabaseAddress,
  shareDatabase,
} from '../../helpers/postgres/database.js'
import { buildSqliteOptions, createPlant, gather } from '../../helpers/sandbox/store.js'
import { ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'
import {
  buildCopyRow,
  buildMessage,
  type Cells,
  openForged,
  writeEndlessly,
} from './forged-server.js'
import { settleAll } from './steps.js'

// What a server sends that is not what the schema says, or does not end, or does not come.

const getDatabase = shareDatabase()
const fern = { id: 5n, name: 'Fern' }
const token = {
  note: undefined,
  rights: ['create'] as const,
  createdAt: new Date(0),
  expiresAt: undefined,
}
const expectSent = (what: string) =>
  expect.stringMatching(RegExp(`^accessDenied: \\S+ sent ${what}$`))

test.each<{ error: string; cells: Cells }>([
  { error: 'a plant without a valid id', cells: ['abc', 'Fern', null] },
  { error: 'a plant without a valid id', cells: [null, 'Fern', null] },
  { error: 'a plant without a valid id', cells: ['9223372036854775808', 'Fern', null] },
  { error: 'a plant without a valid id', cells: ['-9223372036854775809', 'Fern', null] },
  { error: 'a plant without a valid id', cells: ['0x10', 'Fern', null] },
  { error: 'a plant without a valid id', cells: ['007', 'Fern', null] },
  { error: 'a plant without a valid id', cells: ['', 'Fern', null] },
  { error: 'a plant without a valid name', cells: ['5'] },
  { error: 'a plant without a valid name', cells: ['5', null, null] },
  { error: 'a plant without a valid name', cells: ['5', 'a\0b', null] },
  { error: 'a plant with an invalid tag', cells: ['5', 'Fern'] },
  { error: 'a plant with an invalid tag', cells: ['5', 'Fern', '\0'] },
])('a row that is not a plant is rejected as $error: $cells', async ({ error: what, cells }) => {
  const { store, forge } = await openForged(await getDatabase())
  await createPlant(store, fern, 'fern')
  forge({ cells, copied: buildCopyRow(cells) })
  const reads = [
    () => gather(store.read()),
    () => gather(store.read({ inPages: true })),
    () => store.get([5n]),
    () => createPlant(store, fern, 'fern'),
  ]
  for (const read of reads) expect(await settleAll([read()])).toEqual([expectSent(what)])
})

test('a row with bytes that are not UTF-8 is rejected', async () => {
  const { store, forge } = await openForged(await getDatabase())
  await createPlant(store, fern)
  forge({ copied: buildMessage('d', Buffer.from('5\t\xff\xfe\t\\N\n', 'latin1')) })
  expect(await settleAll([gather(store.read())])).toEqual([expectSent('a text that is not UTF-8')])
})

test.each([[[null]], [['many']], [['-1']], [[]]])(
  'the count %j of a server is rejected as invalid',
  async (cells) => {
    const { store, forge } = await openForged(await getDatabase())
    forge({ cells })
    expect(await settleAll([store.count()])).toEqual([expectSent('an invalid count')])
  },
)

test.each<{ field: 'name' | 'tag'; error: string; cells: Cells }>([
  { field: 'tag', error: 'an invalid tag', cells: ['\0', '1'] },
  { field: 'name', error: 'an invalid name', cells: [null, '1'] },
  { field: 'name', error: 'an invalid count', cells: ['Fern'] },
  { field: 'name', error: 'an invalid count', cells: ['Fern', null] },
  { field: 'name', error: 'an invalid count', cells: ['Fern', '-1'] },
])(
  'the invalid plants of a $field are rejected as $error: $cells',
  async ({ field, error: what, cells }) => {
    const { store, forge } = await openForged(await getDatabase())
    await createPlant(store, fern)
    forge({ copied: buildCopyRow(cells) })
    expect(await settleAll([store.countBy(field)])).toEqual([expectSent(what)])
  },
)

test.each<[string, Cells]>([
  ['an id', ['x', null, 'create', '1', null, null]],
  ['a note', ['1', '\0', 'create', '1', null, null]],
  ['rights', ['1', null, null, '1', null, null]],
  ['a time', ['1', null, 'create', '1', '8640000000000001', null]],
  ['a time of creation', ['1', null, 'create', null, null, null]],
  ['all columns', ['1', null, 'create', '1', null]],
])('a token that lacks %s is rejected', async (_, cells) => {
  const { store, forge } = await openForged(await getDatabase())
  await store.tokens.add(new Uint8Array(32), token)
  forge({ cells })
  const reads = [store.tokens.find(new Uint8Array(32)), gather(store.tokens.list())]
  const invalid = expectSent('a token with an invalid value')
  expect(await settleAll(reads)).toEqual([invalid, invalid])
})

describe('a signal ends the wait for', () => {
  const notice = buildMessage('N', Buffer.from('SNOTICE\0C00000\0Mx\0\0'))

  test.each<[string, (socket: Socket) => void]>([
    ['a login that is not answered', () => undefined],
    ['a login that is answered by notices', (socket) => writeEndlessly(socket, notice)],
  ])('%s', async (_, onData) => {
    const controller = new AbortController()
    const onConnect = (socket: Socket) =>
      void socket.once('data', () => {
        onData(socket)
        controller.abort(reason)
      })
    const { port } = await ScriptedServer.listen({ onConnect })
    expect(await settleAll([open(port, controller.signal)])).toEqual([reason])
  })

  test('a statement, and the connection with it', async () => {
    const database = await getDatabase()
    const controller = new AbortController()
    const store = await openPostgresStore(database, { runtime: createRuntime(controller.signal) })
    const release = await database.beginTransaction(
      'LOCK TABLE plant_store.plants IN ACCESS EXCLUSIVE MODE',
    )
    const waiting = [store.get([1n]), store.count(), createPlant(store, fern)]
    const running = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'
      AND datname = current_database()`
    await expect.poll(() => database.queryAsSuperuser(running), { interval: 5 }).toHaveLength(3)
    controller.abort(reason)
    expect(await settleAll(waiting)).toEqual([reason, reason, reason])
    await release()
  })
})

const reason = new Error('The command was interrupted')

function createRuntime(signal: AbortSignal) {
  return { ...buildSqliteOptions().runtime, getStopSignal: () => signal }
}

/** With a timeout that no test reaches. */
function open(port: number, signal = new AbortController().signal): Promise<PostgresStore> {
  const address = parseDatabaseAddress(
    { url: `postgres://plants@127.0.0.1:${port}/plants` },
    'sslmode=disable',
  )
  const options = buildDatabaseOptions({ env: {} }, { runtime: createRuntime(signal) })
  return PostgresStore.open(address, 'read', options)
}
