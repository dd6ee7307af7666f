import { beforeEach, expect, test } from 'vitest'
import { tokensOfStore } from '../../../../src/server/authenticator.js'
import { PostgresStore } from '../../../../src/stores/postgres/store.js'
import { type Database, freshDatabase } from '../../../helpers/postgres.js'
import { exchange } from '../../../helpers/raw-http.js'
import { logInto, placeOf, serveHere, testToken } from '../../../helpers/service.js'
import { addressOf, databaseOptions } from '../../../helpers/shared-store.js'
import { answer, objectsOf, printed, refusal, World } from '../../../helpers/world.js'

let user: World

beforeEach(() => {
  user = new World()
})

/** Each may meet a database without a store. */
const lines = [
  ...[
    'list',
    'get 1',
    'count',
    'count --by tag',
    'export',
    'export plants.csv',
    'create --id 2 --name Fern',
  ],
  ...[
    'create --id next --name Fern',
    'create --id 2 --name Fern --dry-run',
    'create --id next --name Fern --dry-run',
  ],
  ...[
    'update 1 --name Fern',
    'update 1 --name Fern --dry-run',
    'delete 1 --yes',
    'delete --tag a --yes',
  ],
  ...[
    'import',
    'import --dry-run',
    'import --atomic',
    'import --id-from next',
    'import --if-exists update',
  ],
  ...['tokens create', 'tokens list', 'tokens revoke 1', 'serve --port 0'],
]

async function emptyDatabase() {
  const database = await freshDatabase({ isEmpty: true })
  const isStillEmpty = async () =>
    expect(await database.sql("SELECT to_regnamespace('plant_store') AS schema")).toEqual([
      { schema: null },
    ])
  return { database, isStillEmpty }
}

function worldOf({ env }: Database, url: string) {
  return { env: { ...env, PLANTS_STORE: url }, stdin: '{"id":5,"name":"Fern"}\n' }
}

test('every command reports the same for a database without a store, and creates none', async () => {
  const { database, isStillEmpty } = await emptyDatabase()
  const { url } = database
  const message = `There is no store at ${url.replace('plants@', '')}`
  const hint = 'Check the address. A store is created by: plants stores init ADDRESS'
  const world = worldOf(database, url)
  for (const line of lines)
    expect({ line, ...(await user.run(line, world)) }).toEqual({
      line,
      ...refusal(message, hint, 4),
    })
  const served = {
    ...world,
    env: { ...world.env, PLANTS_SERVE_TOKEN: 'plants_s3cret-of-the-service' },
  }
  expect(await user.run('serve --port 0', served)).toEqual(refusal(message, hint, 4))
  const json = { error: 503, message, hint }
  expect(await user.run('create --id 2 --name Fern -o json', world)).toEqual({
    ...{ code: 4, out: '' },
    err: `${JSON.stringify(json)}\n`,
  })
  const finding = { check: `store ${url.replace('plants@', '')}`, state: 'failed', message, hint }
  expect(await user.run('doctor', world)).toMatchObject({
    code: 1,
    out: expect.stringContaining(JSON.stringify(finding)),
  })
  expect(user.has('plants.csv')).toBe(false)
  await isStillEmpty()
})

test('stores init creates a store, and keeps one that is there', async () => {
  const { database } = await emptyDatabase()
  const { url, env } = database
  const address = url.replace('plants@', '')
  user.save({ stores: { shared: { address: url } } })
  expect(await user.run('stores init shared', { env })).toEqual(answer({ address, created: true }))
  expect(await user.run('create --id 1 --name Fern --store shared', { env })).toMatchObject({
    code: 0,
  })
  for (const place of ['shared', url])
    expect(await user.run(['stores', 'init', place], { env })).toEqual(
      answer({ address, created: false }),
    )
  const text = await user.run('stores init shared --output text', { env })
  expect(text).toEqual(printed(`There is a store at ${address} already\n`))
  expect(await user.run('count --store shared', { env })).toEqual(printed('1\n'))
})

test('stores init takes one server', async () => {
  const address = 'postgres://ann@h1,h2:5433/garden'
  const message =
    'stores init takes an address with one server, but postgres://h1:5432,h2:5433/garden has 2'
  const refused = refusal(message, 'Name the server that accepts writes')
  user.save({ stores: { two: { address } } })
  for (const [place, env] of [
    [address, {}],
    ['two', {}],
    ['postgres:///garden', { PGHOST: 'h1,h2', PGPORT: '5432,5433' }],
  ] as const)
    expect({ place, ...(await user.run(['stores', 'init', place], { env })) }).toEqual({
      place,
      ...refused,
    })
})

test('a service whose database loses its store answers 503, and logs one sentence', async () => {
  const database = await freshDatabase()
  let log = ''
  const { address } = await serveHere({
    openStore: () => PostgresStore.open(addressOf(database), databaseOptions(database)),
    openTokenSource: async (tokens) =>
      tokensOfStore(tokens, performance.now.bind(performance), Date.now),
    log: logInto(async (lines) => {
      log += lines
    }),
  })
  await database.sql('DROP SCHEMA plant_store CASCADE')
  const { status, body } = await exchange(
    { place: placeOf(address), token: testToken },
    { target: '/plants/1', method: 'GET' },
  )
  const what =
    'The store is not available, and nothing was stored. Ask the operator of the service about request '
  expect({ status, body: JSON.parse(body) }).toEqual({
    status: 503,
    body: { error: 503, message: expect.stringContaining(what) },
  })
  const [failure] = objectsOf(log).filter(({ level }) => level === 'error')
  expect(failure).toEqual({
    ...{
      level: 'error',
      time: expect.any(String),
      requestId: expect.any(String),
      code: 'inaccessible',
      reason: 'relation "plant_store.tokens" does not exist',
    },
    msg: `There is no store at ${addressOf(database).name}`,
  })
})
