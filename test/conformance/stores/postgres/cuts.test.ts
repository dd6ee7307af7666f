import { describe, expect, test } from 'vitest'
import type { PostgresStore } from '../../../../src/stores/postgres/postgres-store.js'
import { Importer, plant } from '../../../helpers/imports.js'
import {
  type Database,
  freshDatabase,
  ownServer,
  reusedDatabase,
} from '../../../helpers/postgres.js'
import {
  configure,
  createAll,
  createAtomically,
  creations,
  type Moment,
  openByLine,
  openShared,
  othersWait,
  settled,
  typesOf,
} from '../../../helpers/shared-store.js'
import { createPlant, deletePlant, gathered, replacePlant } from '../../../helpers/store.js'
import { settableTime } from '../../../helpers/time.js'

const database = reusedDatabase()
const insert = 'INSERT INTO plant_store.plants'
const moments: Moment[] = ['before', 'sent', 'answered']
const second = 1000
const fern = { id: 1n, name: 'Fern' }
const taken = (id: number) => `conflict: A plant with id ${id} already exists`
const unknown = expect.stringMatching(
  /^unknownOutcome: The connection to .* was lost during a commit: whether it is stored is unknown$/,
)

const cuts = [insert, 'COMMIT'].flatMap((text) => moments.map((moment) => [text, moment] as const))

test.each(cuts)(
  'answers once, and right, when the connection is cut at %s, %s',
  async (text, moment) => {
    const place = await database()
    const { line, store } = await openByLine(place)
    await createPlant(store, { id: 7n, name: 'Moss' })
    line.cut(text, moment)
    const calls = [
      createPlant(store, fern),
      createPlant(store, { ...fern, id: 2n }, 'two'),
      createPlant(store, fern),
      createPlant(store, { id: 7n, name: 'Moss' }),
    ]
    expect(await settled(calls)).toStrictEqual([fern, { ...fern, id: 2n }, taken(1), taken(7)])
    expect(line.cuts).toBe(1)
    const stored = await place.sql(
      'SELECT id, idempotency_key AS key FROM plant_store.plants ORDER BY id',
    )
    expect(stored.map(({ id, key }) => `${id} ${key}`)).toEqual(['1 null', '2 two', '7 null'])
  },
)

const undoCreates = "DELETE FROM plant_store.plants WHERE name = 'Fern'"
const undoKeys = "UPDATE plant_store.plants SET idempotency_key = NULL WHERE name = 'Fern'"

test.each<[string, string, (store: PostgresStore) => Promise<unknown>[]]>([
  [
    'the creates that share it',
    undoCreates,
    (store) => [3n, 4n].map((id) => createPlant(store, { ...fern, id })),
  ],
  ['the key of a create', undoKeys, (store) => [createPlant(store, { ...fern, id: 4n }, 'key')]],
  [
    'updates',
    "UPDATE plant_store.plants SET name = 'Moss' WHERE id = 2",
    (store) => [
      store.write([1n, 2n].map((id) => ({ type: 'update', patch: { id, name: 'Fern' } }))),
    ],
  ],
  [
    'deletes',
    "INSERT INTO plant_store.plants (id, name) VALUES (2, 'Moss')",
    (store) => [store.write([1n, 2n].map((id) => ({ type: 'delete', id })))],
  ],
  [
    'a token that is revoked',
    'UPDATE plant_store.tokens SET revoked_at = NULL',
    (store) => [store.tokens.revoke(1n, new Date())],
  ],
])(
  'does not take the number of a commit alone for a proof of all of %s',
  async (_, undo, change) => {
    const place = await freshDatabase()
    const { line, store } = await openByLine(place)
    await createAll(
      store,
      [1n, 2n].map((id) => ({ id, name: 'Moss' })),
    )
    const token = {
      note: undefined,
      rights: ['read'],
      createdAt: new Date(),
      expiresAt: undefined,
    } as const
    await store.tokens.add(Buffer.from('digest'), token)
    const statements = 'SELECT * FROM plant_store.plants, plant_store.tokens ORDER BY plants.id'
    const before = await place.sql(statements)
    line.cut('COMMIT', 'answered')
    line.block() // so that it asks later
    const outcomes = Promise.all(change(store).map((call) => settled([call])))
    await expect.poll(() => place.sql(statements), { interval: 5 }).not.toEqual(before)
    await place.sql(undo) // as after a crash that has lost it
    line.mend()
    expect(new Set((await outcomes).flat())).toEqual(new Set([unknown]))
  },
)

test('an import is done even if its checkpoint cannot be removed', async () => {
  const place = await freshDatabase()
  const { line } = await openByLine(place)
  const user = new Importer()
  user.write('plants', plant(1) + plant(2))
  line.cut('DELETE FROM plant_store.imports', 'sent', 1000)
  const argv = ['import', 'plants', '--store', line.url, '--timeout', '1h', '--output', 'text']
  const now = () => (line.cuts < 2 ? 0 : 3_600_000)
  const { code, out, err } = await user.run(argv, { env: place.env, now })
  expect([code, out]).toEqual([0, expect.stringMatching(/^Read 2 plants in .*: 2 created\n$/)])
  expect(err).toMatch(/plants: The import is done, but its checkpoint may have been left: .*\n$/)
})

test.each<Moment>(['before', 'sent', 'answered'])(
  'an import whose commits are cut %s keeps all once',
  async (moment) => {
    const place = await freshDatabase()
    const { line } = await openByLine(place)
    const user = new Importer()
    user.write(
      'plants',
      Array.from({ length: 3000 }, (_, id) => (id % 3 === 2 ? 'bad\n' : plant(id))).join(''),
    )
    line.cut('COMMIT', moment, 2)
    const argv = ['import', 'plants', '--rejects', 'bad', '--store', line.url]
    const { code } = await user.run(argv, { env: place.env })
    expect([code, line.cuts]).toEqual([6, 2])
    expect(await place.sql('SELECT count(*)::int FROM plant_store.plants')).toEqual([
      { count: 2000 },
    ])
    expect(user.rejected('bad').map(({ line: at }) => at)).toEqual(
      Array.from({ length: 1000 }, (_, index) => 3 * index + 3),
    )
  },
)

test('a server that may not tell leaves the outcome of a commit unknown, and creates work', async () => {
  const place = await freshDatabase()
  const { line, store } = await openByLine(place)
  await place.admin('REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC')
  line.cutAll()
  expect(await createPlant(store, fern)).toStrictEqual(fern)
  line.cut('COMMIT', 'answered')
  expect(await settled([createPlant(store, { id: 2n, name: 'Moss' })])).toEqual([unknown])
})

test('waits no longer than its time for what is silent', async () => {
  const place = await database()
  const { line, store } = await openByLine(place, { timeout: 1000 })
  line.silence()
  expect(await settled([createPlant(store, fern)])).toEqual([
    expect.stringMatching(/^unavailable: .*no answer in time$/),
  ])
  line.mend()
  await expect.poll(() => settled([store.check()]), { interval: 5 }).toEqual([undefined])
  const moss = { id: 2n, name: 'Moss' }
  await expect
    .poll(() => settled([createPlant(store, moss, 'key')]), { interval: 5 })
    .toEqual([moss])
})

describe('of its time, which is one for all that it asks,', () => {
  /** A poll sets the timers of a test forward by its interval. */
  const still = { interval: 0 }

  /** Whose runtime and timers stand still. */
  async function openStill() {
    const place = await database()
    const { now, pass, timeOut } = settableTime({ isStill: true })
    const { signal } = new AbortController()
    const runtime = { handleSignals: () => signal, now, random: Math.random }
    const { line, store } = await openByLine(place, {
      timeout: 3 * second,
      runtime,
      parameters: 'max=1',
    })
    await createPlant(store, { id: 9n, name: 'Moss' })
    const cut = (text: string) => {
      line.cut(text, 'unanswered')
      return () => expect.poll(() => line.cuts, still).toBe(1)
    }
    return { place, line, store, cut, pass, timeOut }
  }

  test.each<[string, (store: PostgresStore) => Promise<unknown>]>([
    ['a create', (store) => createPlant(store, fern)],
    ['a delete', (store) => deletePlant(store, 9n)],
    [
      'creates that are written together',
      (store) => createAll(store, [fern, { id: 2n, name: 'Oak' }]),
    ],
    [
      'an import in one transaction',
      (store) => createAtomically(store, [fern, { id: 2n, name: 'Oak' }]),
    ],
  ])('%s keeps a third for the question what became of its commit', async (_, change) => {
    const { line, store, cut, timeOut } = await openStill()
    const sent = cut('COMMIT')
    const outcome = settled([change(store)])
    await sent()
    line.block()
    timeOut(2 * second)
    await expect.poll(() => line.blocked, still).toBe(1)
    timeOut(second)
    expect(await outcome).toEqual([unknown])
  })

  test('a create that is answered in the last third succeeds', async () => {
    const { store, cut, timeOut } = await openStill()
    const sent = cut('COMMIT')
    const created = createPlant(store, fern)
    await sent()
    timeOut(2 * second)
    expect(await created).toStrictEqual(fern)
  })

  test('a read has what the wait for a connection has left', async () => {
    const { place, store, cut, pass, timeOut } = await openStill()
    const sent = cut('SELECT id, name, tag')
    const release = await place.hold('LOCK TABLE plant_store.plants IN EXCLUSIVE MODE')
    const created = createPlant(store, fern)
    const read = settled([store.get([1n])])
    await othersWait(place, 1)
    pass(2 * second)
    await release()
    await created
    await sent()
    timeOut(second)
    expect(await read).toEqual([expect.stringMatching(/^unavailable: .*no answer in time$/)])
  })

  test.each<[string, (store: PostgresStore, waited: number) => Promise<unknown>]>([
    ['a read', (store, waited) => store.get([1n], { waited })],
    ['a list', (store, waited) => gathered(store.read({ waited, inPages: true }))],
    ['an export', (store, waited) => gathered(store.read({ waited }))],
    ['a create', (store, waited) => store.write([{ type: 'create', plant: fern }], { waited })],
    [
      'an update',
      (store, waited) =>
        store.write([{ type: 'update', patch: { id: 9n, name: 'Ivy' } }], { waited }),
    ],
  ])('%s has what its caller has left', async (_, call) => {
    const { store, cut, timeOut } = await openStill()
    const sent = cut('plant_store.plants')
    const outcome = settled([call(store, 2 * second)])
    await sent()
    timeOut(second)
    expect(await outcome).toEqual([expect.stringMatching(/^unavailable: .*no answer in time$/)])
  })

  test('a transaction has it again for each write, and for the commit', async () => {
    const { store, pass } = await openStill()
    const outcomes = await store.transaction(async ({ write }) => {
      const found = []
      for (const id of [1n, 2n, 3n]) {
        found.push(...(await write(creations([{ id, name: 'Fern' }]))))
        pass(2 * second)
      }
      return found
    })
    expect(typesOf(outcomes)).toEqual(['created', 'created', 'created'])
  })

  test('an export has it again for each part', async () => {
    const { store, pass } = await openStill()
    const name = 'long '.repeat(100_000)
    await createAll(
      store,
      [1n, 2n, 3n, 4n].map((id) => ({ id, name })),
    )
    const ids = []
    for await (const plants of store.read()) {
      ids.push(...plants.map(({ id }) => id))
      pass(2 * second)
    }
    expect(ids).toEqual([1n, 2n, 3n, 4n, 9n])
  })

  test('a commit that could not be answered is not sent', async () => {
    const { place, store, pass } = await openStill()
    const release = await place.hold('LOCK TABLE plant_store.plants IN EXCLUSIVE MODE')
    const outcome = settled([createPlant(store, fern)])
    await othersWait(place, 1)
    pass(3 * second)
    await release()
    expect(await outcome).toEqual([
      expect.stringMatching(/^unavailable: .* did not finish in time$/),
    ])
    expect(await place.sql('SELECT id FROM plant_store.plants')).toEqual([{ id: 9n }])
  })
})

test('an export that is cut in the middle fails, and the next one is complete', async () => {
  const { line, store } = await openByLine(await database())
  const name = 'long '.repeat(200_000)
  const plants = Array.from({ length: 40 }, (_, id) => ({ id: BigInt(id), name }))
  await createAll(store, plants)
  const read: bigint[] = []
  const cut = async () => {
    for await (const page of store.read()) {
      read.push(...page.map(({ id }) => id))
      if (read.length === 2) line.cutAll()
    }
  }
  await expect(cut()).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringMatching(/^Could not reach postgres:/),
  })
  expect(read.length).toBeLessThan(plants.length)
  expect(await gathered(store.read())).toStrictEqual(plants)
})

test.each(moments)(
  'deletes once, and returns what it was, when the connection is cut at COMMIT, %s',
  async (moment) => {
    const { line, store } = await openByLine(await database())
    await createPlant(store, fern)
    line.cut('COMMIT', moment)
    expect(await deletePlant(store, 1n, fern)).toStrictEqual(fern)
    expect(line.cuts).toBe(1)
  },
)

test('does not take for its own what another has deleted', async () => {
  const place = await database()
  const store = await openShared(place)
  await createPlant(store, fern)
  const commit = await place.hold('DELETE FROM plant_store.plants')
  const deleted = settled([deletePlant(store, 1n)])
  await othersWait(place, 1)
  await commit('COMMIT')
  expect(await deleted).toEqual(['notFound: No plant has id 1'])
})

async function waitFor(database: Database, standby: '' | 'absent'): Promise<void> {
  await configure(database, `synchronous_standby_names = '${standby}'`)
  const awaited = async () => (await database.admin('SHOW synchronous_standby_names'))[0]
  await expect.poll(awaited).toEqual({ synchronous_standby_names: standby })
}

/** Cancels each wait of the server for its standby until a call is over: what is committed is on this server alone. */
async function cancelWaits(database: Database, call: Promise<unknown>): Promise<number> {
  let [isOver, cancelled] = [false, 0]
  void call.finally(() => {
    isOver = true
  })
  // Except what waits for an earlier commit to reach the standby.
  const where = "wait_event = 'SyncRep' AND query NOT LIKE '%pg_xact_status%'"
  while (!isOver) {
    cancelled += (
      await database.admin(`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE ${where}`)
    ).length
  }
  return cancelled
}

describe('a commit is not answered when the server stops waiting for its standby,', () => {
  const changes: { change(store: PostgresStore): Promise<unknown> }[] = [
    { change: (store) => createPlant(store, fern) },
    { change: (store) => replacePlant(store, { id: 2n, name: 'Ivy' }) },
    { change: (store) => deletePlant(store, 3n) },
    { change: (store) => createAll(store, [{ id: 4n, name: 'Oak' }]) },
    { change: (store) => createAtomically(store, [{ id: 5n, name: 'Yew' }]) },
  ]

  test.each([
    ['and says so, whatever the default of the role', false, 'off'],
    ['and the connection is lost, so that a retry finds what was committed', true, 'on'],
  ])('%s', async (_, isCut, commit) => {
    const database = await ownServer()
    await database.admin(`ALTER ROLE plants SET synchronous_commit = ${commit}`)
    const users = await Promise.all(
      changes.map(async ({ change }) => {
        const { line, store } = await openByLine(database, { timeout: 3000 })
        return { line, change: () => change(store) }
      }),
    )
    const moss =
      "INSERT INTO plant_store.plants (id, name, attempt) VALUES (2, 'Moss', 0), (3, 'Moss', 0)"
    await database.sql(moss)
    await waitFor(database, 'absent')
    if (isCut) for (const { line } of users) line.cut('COMMIT', 'sent')
    const outcomes = settled(users.map(({ change }) => change()))
    expect(await cancelWaits(database, outcomes)).toBeGreaterThan(0)
    expect(await outcomes).toEqual(changes.map(() => unknown))
    expect(users.map(({ line }) => line.cuts)).toEqual(changes.map(() => Number(isCut)))
    const stored = await database.sql('SELECT id FROM plant_store.plants ORDER BY id')
    expect(stored.map(({ id }) => id)).toEqual([1n, 2n, 4n, 5n])
  })
})

test('a create is not answered before the plant is on the standby, not even a repeated one', async () => {
  const database = await ownServer()
  const store = await openShared(database, { timeout: 1000 })
  await createPlant(store, { id: 2n, name: 'Moss' })
  await waitFor(database, 'absent')
  const create = () => createPlant(store, fern, 'fern')
  expect(await settled([create()])).toEqual([unknown])
  const again = settled([create()])
  await cancelWaits(database, again)
  expect(await again).toEqual([unknown])
  await waitFor(database, '')
  await expect.poll(() => create().catch(() => undefined)).toEqual(fern)
})

test('a checkpoint is read after a transaction that replaces it', async () => {
  const place = await freshDatabase()
  const [store, other] = [await openShared(place), await openShared(place)]
  await store.transaction(({ saveCheckpoint }) =>
    saveCheckpoint({ id: 'one', from: undefined, to: 'a' }),
  )
  let read: Promise<string | undefined> = Promise.resolve(undefined)
  await store.transaction(async ({ saveCheckpoint }) => {
    await saveCheckpoint({ id: 'one', from: 'a', to: 'b' })
    read = other.checkpoint('one')
    await expect.poll(() => place.sql('SELECT FROM pg_locks WHERE NOT granted')).toHaveLength(1)
  })
  expect(await read).toBe('b')
})
