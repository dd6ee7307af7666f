import { connect, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import {
  createDatabase,
  type Database,
  openPostgresStore,
  shareDatabase,
  startOwnServer,
} from '../../helpers/postgres/database.js'
import { configure, waitForAbsentStandby } from '../../helpers/postgres/standby.js'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import {
  buildSqliteOptions,
  createPlant,
  deletePlant,
  gather,
  toCreates,
} from '../../helpers/sandbox/store.js'
import { ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'
import { createAll, settleAll, waitForBlockedSessions } from './steps.js'

const getDatabase = shareDatabase()
const moments: Moment[] = ['before', 'sent', 'answered']
const stored = 'SELECT id, idempotency_key AS key FROM plant_store.plants ORDER BY id'
const count = 'SELECT count(*)::int FROM plant_store.plants'
const fern = { id: 1n, name: 'Fern' }
const taken = expect.stringMatching(/^conflict: /)
const unknown = expect.stringMatching(/^unknownOutcome: /)
const timedOut = expect.stringMatching(/^unavailable: .*time/)
const plants = (length: number) =>
  Array.from({ length }, (_, id) => ({ id: BigInt(id), name: `Fern ${id}` }))

test.each(moments)(
  'a create has one correct outcome when its connection is cut at an INSERT, %s',
  async (moment) => {
    const database = await getDatabase()
    const { line, store } = await openByLine(database)
    await createPlant(store, { id: 7n, name: 'Moss' })
    line.cut('INSERT INTO plant_store.plants', moment)
    const calls = [
      createPlant(store, fern),
      createPlant(store, { ...fern, id: 2n }, 'two'),
      createPlant(store, fern),
      createPlant(store, { id: 7n, name: 'Moss' }),
    ]
    expect(await settleAll(calls)).toStrictEqual([fern, { ...fern, id: 2n }, taken, taken])
    expect(line.cuts).toBe(1)
    expect(await database.query(stored)).toEqual([
      { id: 1n, key: null },
      { id: 2n, key: 'two' },
      { id: 7n, key: null },
    ])
  },
)

test.each(moments)(
  'only creates with keys are repeated when their connection is cut at COMMIT, %s',
  async (moment) => {
    const { line, store } = await openByLine(await getDatabase())
    const create = (id: bigint, key?: string) => createPlant(store, { ...fern, id }, key)
    line.cut('COMMIT', moment)
    const keyed = [create(1n, 'key 1'), create(2n, 'key 2')]
    expect(await settleAll(keyed)).toStrictEqual([fern, { ...fern, id: 2n }])
    line.cut('COMMIT', moment)
    expect(await settleAll([create(3n, 'key 3'), create(4n)])).toEqual([unknown, unknown])
    line.cut('COMMIT', moment)
    expect(await settleAll([deletePlant(store, 1n)])).toEqual([unknown])
    expect(line.cuts).toBe(3)
  },
)

test.each([
  ['08P01', unknown], // what PgBouncer says when it has lost the server
  ['40003', unknown],
  ['XX000', unknown],
  ['40001', taken], // It says that nothing was stored, and the create is repeated.
])(
  'a create has the correct outcome when its successful COMMIT is answered with the error %s',
  async (code, outcome) => {
    const { line, store } = await openByLine(await getDatabase())
    line.cut('COMMIT', { code })
    expect(await settleAll([createPlant(store, fern)])).toEqual([outcome])
    expect((await store.get([1n])).get(1n)).toEqual(fern)
  },
)

test('each plant of a chunk is created once when the connection is cut in the middle', async () => {
  const database = await getDatabase()
  const { line, store } = await openByLine(database)
  line.cut('Fern 9000', 'before')
  const outcomes = await createAll(store, plants(10_000))
  expect(new Set(outcomes)).toEqual(new Set(['created']))
  expect([line.cuts, await database.query(count)]).toEqual([1, [{ count: 10_000 }]])
})

test.each(moments)(
  'an import whose COMMIT is cut %s repeats its chunk, and stores each plant once',
  async (moment) => {
    const database = await createDatabase()
    const { line } = await openByLine(database)
    const user = new ImportSandbox()
    const lines = Array.from({ length: 3000 }, (_, id) =>
      id % 3 === 2 ? 'bad\n' : buildPlantLine(id),
    )
    user.write('plants', lines.join(''))
    line.cut('COMMIT', moment)
    const command = `plants --rejects bad --store ${line.url}`
    const result = await user.import(command, undefined, { env: database.env })
    // What the first COMMIT has stored is found equal.
    const { created = 0, skipped = 0 } = result
    expect([result.code, created + skipped, line.cuts]).toEqual([6, 2000, 1])
    expect(await database.query(count)).toEqual([{ count: 2000 }])
    expect(user.readRejected('bad').map(({ line: at }) => at)).toEqual(
      Array.from({ length: 1000 }, (_, index) => 3 * index + 3),
    )
  },
)

test('an import whose COMMITs are all cut ends with an unknown outcome', async () => {
  const database = await createDatabase()
  const { line } = await openByLine(database)
  for (let cut = 0; cut < 100; cut += 1) line.cut('COMMIT', 'answered')
  const user = new ImportSandbox()
  user.write('plants', buildPlantLine(1) + buildPlantLine(2))
  const command = `plants --timeout 1s --store ${line.url}`
  const first = await user.import(command, undefined, { env: database.env })
  expect(first).toMatchObject({ code: 5, unknown: 2 })
  expect(first.err).toContain('To continue, run the same command again\n')
  const again = `plants --store ${database.url}`
  expect(await user.import(again, undefined, { env: database.env })).toMatchObject({ skipped: 2 })
})

test('an operation waits no longer than the timeout for a silent server', async () => {
  const { line, store } = await openByLine(await getDatabase(), { timeoutMs: 1000 })
  line.silence()
  expect(await settleAll([createPlant(store, fern)])).toEqual([timedOut])
  line.mend()
  await expect.poll(() => settleAll([store.check()]), { interval: 5 }).toEqual([undefined])
  const copied = store.transaction(async ({ write }) => {
    await write(toCreates([{ id: 9n, name: 'Oak' }]))
    line.silence()
    return write(toCreates(plants(600))) // by COPY
  })
  expect(await settleAll([copied])).toEqual([timedOut])
  line.mend()
  const moss = { id: 2n, name: 'Moss' }
  await expect
    .poll(() => settleAll([createPlant(store, moss, 'key')]), { interval: 5 })
    .toEqual([moss])
})

test('an export that is cut in the middle fails, and the next one is complete', async () => {
  const { line, store } = await openByLine(await getDatabase())
  const long = plants(40).map(({ id }) => ({ id, name: 'long '.repeat(200_000) }))
  await createAll(store, long)
  const read: bigint[] = []
  const cut = async () => {
    for await (const page of store.read()) {
      read.push(...page.map(({ id }) => id))
      if (read.length === 2) line.mend()
    }
  }
  await expect(cut()).rejects.toMatchObject({ kind: 'unavailable' })
  expect(read.length).toBeLessThan(40)
  expect(await gather(store.read())).toStrictEqual(long)
})

test('a create does not succeed before its plant is on the standby', async () => {
  const database = await startOwnServer()
  await database.queryAsSuperuser('ALTER ROLE plants SET synchronous_commit = off')
  const store = await openPostgresStore(database, { timeoutMs: 1000 })
  await waitForAbsentStandby(database)
  const create = () => createPlant(store, fern, 'fern')
  expect(await settleAll([create()])).toEqual([unknown])
  await configure(database, "synchronous_standby_names = ''")
  await expect.poll(() => create().catch(() => undefined)).toEqual(fern)
})

test('an export from a server that becomes silent ends at the timeout, or on a signal', async () => {
  const database = await getDatabase()
  const controller = new AbortController()
  const runtime = { ...buildSqliteOptions().runtime, getStopSignal: () => controller.signal }
  const hasty = await openPostgresStore(database, { timeoutMs: 500 })
  const patient = await openPostgresStore(database, { runtime })
  const release = await database.beginTransaction(
    'LOCK TABLE plant_store.plants IN ACCESS EXCLUSIVE MODE',
  )
  const reads = [hasty, patient].map((store) => gather(store.read()))
  await waitForBlockedSessions(database, 2)
  const reason = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
  controller.abort(reason)
  expect(await settleAll(reads)).toEqual([
    expect.stringMatching(/^unavailable: Could not reach .*: The time is over$/),
    reason,
  ])
  await release()
})

/**
 * When a connection is cut: "before" the server gets what was said; when it was "sent", so that the
 * server goes on alone; or when the server has "answered", and nobody has heard it.
 */
type Moment = 'before' | 'sent' | 'answered'

interface Cut {
  text: string
  /** or the SQLSTATE of the error that is sent instead of the response */
  moment: Moment | { code: string }
}

const readyForQuery = Buffer.from('Z\0\0\0\x05')

/** Opens a store over a line to its server, which can be cut. */
async function openByLine(database: Database, options?: Parameters<typeof openPostgresStore>[1]) {
  const address = new URL(database.url)
  const target = Number(address.port)
  const cuts: Cut[] = []
  let isSilent = false

  /** When to cut the connection over which this goes, if it has the text of the next cut. */
  const takeMoment = (data: Buffer): Cut['moment'] | undefined => {
    const [cut] = cuts
    if (!cut || !data.includes(cut.text)) return undefined
    cuts.shift()
    line.cuts += 1
    return cut.moment
  }

  const join = (near: Socket) => {
    const far = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true })
    far.on('error', () => near.destroy()).on('end', () => near.end())
    near.on('close', () => far.end()) // after what is on its way
    let isAwaited = false
    let code: string | undefined
    near.removeAllListeners('data').on('data', (data) => {
      const moment = takeMoment(data)
      if (moment === 'before') {
        near.destroy()
        far.destroy()
        return
      }
      far.write(data)
      isAwaited ||= moment === 'answered'
      if (typeof moment === 'object') code = moment.code
      if (moment === 'sent') near.destroy()
    })
    far.on('data', (data) => {
      const isOver = data.subarray(-6, -1).equals(readyForQuery)
      if (isAwaited && isOver) near.destroy()
      if (code === undefined) {
        if (!isAwaited && !isSilent) near.write(data)
      } else if (isOver) {
        const error = `SERROR\0C${code}\0Mlost\0\0`
        near.write(`E\0\0\0${String.fromCharCode(error.length + 4)}${error}${readyForQuery}I`)
        code = undefined
      }
    })
  }

  const hostile = await ScriptedServer.listen({ onConnect: join })
  address.port = `${hostile.port}`
  const line = {
    url: address.href,
    cuts: 0,
    /** Cuts the next connection over which a text goes to the server; then what it receives next. */
    cut: (text: string, moment: Cut['moment']) => void cuts.push({ text, moment }),
    silence: () => {
      isSilent = true
    },
    /** Cuts all, and is a line again for those who connect anew. */
    mend: () => {
      isSilent = false
      hostile.closeConnections()
    },
  }
  return { line, store: await openPostgresStore({ url: line.url, env: database.env }, options) }
}
