import { expect, test } from 'vitest'
import { type Database, openShared, ownServerWithStandby } from '../../../helpers/postgres.js'
import { createPlant } from '../../../helpers/store.js'
import { objectsOf, World } from '../../../helpers/world.js'
import { configure, settled } from './steps.js'

// A standby has the plants of its primary, a moment later, and accepts no change.

const often = { interval: 5 }
const any = 'target_session_attrs=any'
const fern = { id: 1n, name: 'Fern', tag: 'shade' }
const moss = { id: 2n, name: 'Moss' }
const useWritable =
  'Use target_session_attrs=read-write in an address with the server that accepts writes, or promote this one'

/** A primary and its standby, both of which have two plants, and a token for each service. */
async function startServers() {
  const servers = await ownServerWithStandby()
  const { primary, standby } = servers
  const store = await openShared(primary)
  for (const each of [fern, moss]) await createPlant(store, each)
  const { out } = await new World().run('tokens create --allow create,read,update,delete', {
    env: { PLANTS_STORE: primary.url },
  })
  await standby.catchUp()
  return { ...servers, token: out.trim() }
}

const hostOf = ({ url }: Pick<Database, 'url'>) => new URL(url).host

/** The address of both servers, the first of which is tried first. */
function bothOf(first: Pick<Database, 'url'>, second: Pick<Database, 'url'>): string {
  return second.url.replace('@', `@${hostOf(first)},`)
}

test.each(['the address', 'the variable'])(
  'commands read from a standby if %s allows it',
  async (where) => {
    const { standby } = await startServers()
    const isOfAddress = where === 'the address'
    const env = isOfAddress
      ? { PLANTS_STORE: `${standby.url}?${any}` }
      : { PLANTS_STORE: standby.url, PGTARGETSESSIONATTRS: 'any' }
    const lines = [
      'get 1 2',
      'list',
      'list --search FE',
      'list --tag shade --sort name',
      'count',
      'count --by tag',
      'export -o csv -',
      'tokens list',
      'create --id 1 --name Fern --dry-run --store ./other.db',
    ]
    for (const line of lines) {
      const { code, err } = await new World().run(line, { env })
      expect({ line, code, err }).toEqual({ line, code: 0, err: '' })
    }
    const { out } = await new World().run('list', { env })
    expect(objectsOf(out)).toEqual([
      { id: 1, name: 'Fern', tag: 'shade' },
      { id: 2, name: 'Moss' },
    ])
  },
)

test('a change at a standby ends at once, and says what to do', async () => {
  const { primary, standby } = await startServers()
  const lines = [
    'create --id 3 --name Oak',
    'create --id next --name Oak',
    'create --id 1 --name Fern --tag shade --idempotency-key fern',
    'create --id 3 --name Oak --dry-run',
    'update 1 --name Oak',
    'delete 1 --yes',
    'delete --tag shade --yes',
    'tokens create',
    'tokens revoke 1',
    `stores init ${standby.url}?${any}`,
  ]
  const env = { PLANTS_STORE: `${standby.url}?${any}`, PLANTS_TIMEOUT: '1h' }
  for (const line of lines) {
    const { code, out, err } = await new World().run(line, { env })
    expect({ line, code, out }).toEqual({ line, code: 4, out: '' })
    expect(err).toContain(`The server ${hostOf(standby)} is read-only`)
    expect(err).toContain(useWritable)
  }
  const readWrite = `${bothOf(standby, primary)}?target_session_attrs=read-write`
  const followed = { ...env, PLANTS_STORE: readWrite }
  expect(await new World().run('create --id 3 --name Oak', { env: followed })).toMatchObject({
    code: 0,
  })
})

test('of several servers, the first that answers is used', async () => {
  const { primary, standby } = await startServers()
  const open = (first: Database, second: Database) =>
    openShared({ ...first, url: bothOf(first, second) }, { parameters: any })
  const [atStandby, atPrimary] = [await open(standby, primary), await open(primary, standby)]
  const onStandby = { name: hostOf(standby), isReadOnly: true }
  const onPrimary = { name: hostOf(primary), isReadOnly: false }
  const findServers = () => Promise.all([atStandby, atPrimary].map((store) => store.findServer()))
  expect(await findServers()).toEqual([onStandby, onPrimary])
  await standby.stop('fast')
  expect(await findServers()).toEqual([onPrimary, onPrimary])
})

test('a server that is read-only by a setting is read, too, and is ready for that', async () => {
  const { primary } = await startServers()
  await configure(primary, 'default_transaction_read_only = on')
  const store = await openShared(primary, { parameters: any })
  await expect.poll(async () => (await store.findServer()).isReadOnly, often).toBe(true)
  const readOnly = `unavailable: The server ${hostOf(primary)} is read-only`
  const calls = [store.check(['read']), store.check(), store.write([]), createPlant(store, fern)]
  expect(await settled(calls)).toEqual([undefined, readOnly, readOnly, readOnly])
})

test('while a standby is promoted, reads go on there, and writes go on at it afterwards', async () => {
  const { primary, standby } = await startServers()
  const writer = await openShared({ ...primary, url: bothOf(primary, standby) })
  const reader = await openShared(standby, { parameters: any })
  await writer.check()
  await primary.stop('immediate')
  const created = createPlant(writer, { id: 3n, name: 'Oak' })
  expect((await reader.get([1n])).get(1n)).toEqual(fern)
  let isPromoted = false
  const promoted = standby.promote().finally(() => {
    isPromoted = true
  })
  while (!isPromoted) expect((await reader.get([1n])).get(1n)).toEqual(fern)
  await promoted
  expect(await created).toEqual({ id: 3n, name: 'Oak' })
  expect((await reader.get([3n])).get(3n)).toEqual({ id: 3n, name: 'Oak' })
  expect(await createPlant(reader, { id: 4n, name: 'Ash' })).toEqual({ id: 4n, name: 'Ash' })
})
