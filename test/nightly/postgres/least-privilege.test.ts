import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { createDatabase, openPostgresStore } from '../../helpers/postgres/database.js'
import { parseObjects, Sandbox } from '../../helpers/sandbox/sandbox.js'
import { createPlant, deletePlant } from '../../helpers/sandbox/store.js'
import { exchangeOnce, type RawRequest } from '../../helpers/scripted-server/raw-http.js'
import { type RunningService, serve, testToken } from '../../helpers/scripted-server/service.js'
import { createRole } from './steps.js'

const all = 'create,read,update,delete'
const [, grants = ''] =
  /^```text\nCREATE ROLE service .*\n(GRANT [^`]*)```$/m.exec(
    readFileSync('docs/postgresql.md', 'utf8'),
  ) ?? []

/** A database, and its role with the grants of docs/postgresql.md alone. */
async function freshRole() {
  const database = await createDatabase()
  const { role, url } = await createRole(database, 'service')
  await database.query(grants.replaceAll('TO service;', `TO ${role};`))
  const env = { ...database.env, PLANTS_SERVE_TOKEN: testToken }
  const start = (...args: string[]) =>
    serve(['--store', url, '--admin-port', '0', ...args], { env })
  return { database, role, url, start }
}

async function readinessOf({ log }: RunningService) {
  const address = log.find(({ msg }) => msg === 'listening')?.['admin']
  const response = await fetch(`${address}/ready`)
  const { message } = (await response.json()) as { message?: string } // an Error, if it is not ready
  return [response.status, message]
}

const warningsOf = ({ log }: RunningService) =>
  log.filter(({ level }) => level === 'warn').map(({ msg }) => msg)

describe('a service with the role of "Least privilege"', () => {
  test('is ready, offers what the role may do, and logs what it does not offer', async () => {
    const { start } = await freshRole()
    const service = await start()
    expect(await readinessOf(service)).toEqual([200, undefined])
    const rights = expect.objectContaining({ rights: ['create', 'read'] })
    await expect.poll(() => service.log).toContainEqual(rights)
    const missing = 'The store does not allow this user to update or delete plants'
    const message = `${missing}, so the service does not offer that`
    const readLines = () => service.log.map(({ level, msg }) => [level, msg])
    await expect.poll(readLines).toContainEqual(['info', message])
    expect(warningsOf(service)).toEqual([])
    const requests: [status: number, RawRequest][] = [
      [200, { body: '{"id":1,"name":"Fern"}' }],
      [403, { method: 'DELETE', target: '/plants/1' }],
    ]
    for (const [status, request] of requests)
      expect((await exchangeOnce(service, request)).status).toBe(status)
  })

  test('imports no list with --sync, which may have to delete', async () => {
    const { database, url } = await freshRole()
    const user = new Sandbox()
    Object.assign(user.env, database.env, { PLANTS_STORE: url })
    user.write('list.csv', 'id,name\n1,Fern\n')
    const { code, err } = await user.run('import list.csv --sync --yes')
    expect([code, err]).toEqual([4, expect.stringContaining('update or delete plants')])
    expect((await user.run('count')).out).toBe('0\n')
  })

  test('imports no list with --sync, if it may do everything but delete', async () => {
    const { database, role, url } = await freshRole()
    await database.query(`GRANT UPDATE ON plant_store.plants TO ${role}`)
    const user = new Sandbox()
    Object.assign(user.env, database.env, { PLANTS_STORE: url })
    user.write('list.csv', 'id,name\n1,Fern\n')
    const { code, err } = await user.run('import list.csv --sync --yes')
    expect([code, err]).toEqual([4, expect.stringContaining('delete plants')])
    expect((await user.run('count')).out).toBe('0\n')
    expect((await user.run('import list.csv --if-exists update')).code).toBe(0)
  })

  test('creates no token, and the hint says that the owner can', async () => {
    const { database, url } = await freshRole()
    const env = { ...database.env, PLANTS_STORE: url }
    const created = await new Sandbox().run('tokens create', { env })
    expect(created).toMatchObject({ code: 4, out: '' })
    expect(created.err).toContain('permission denied for table tokens\n  Use the role of the owner')
  })

  test('is not ready with an --allow beyond the privileges of its role, and says why', async () => {
    const { start } = await freshRole()
    const service = await start('--allow', all)
    const reason =
      'The store does not allow this user to update or delete plants, which the service should offer. Grant it, then restart the service'
    expect(await readinessOf(service)).toEqual([503, reason])
    await expect.poll(() => warningsOf(service)).toEqual([reason])
    expect((await exchangeOnce(service, { body: '{"id":1,"name":"Fern"}' })).status).toBe(200)
  })

  test('is not ready while the role lacks a privilege that it had', async () => {
    const { database, role, start } = await freshRole()
    const service = await start()
    await database.query(`REVOKE INSERT ON plant_store.plants FROM ${role}`)
    const reason = 'The store does not allow this user to create plants'
    expect(await readinessOf(service)).toEqual([503, reason])
    const warning = `The service is not ready: ${reason}`
    await expect.poll(() => warningsOf(service)).toEqual([warning])
    await database.query(`GRANT INSERT ON plant_store.plants TO ${role}`)
    expect(await readinessOf(service)).toEqual([200, undefined])
  })
})

test('a reader is led to a page, whose statements let it read and change nothing', async () => {
  const database = await createDatabase()
  const plant = { id: 1n, name: 'Fern' }
  await createPlant(await openPostgresStore(database), plant)
  const { role, url } = await createRole(database, 'reader')
  const env = { ...database.env, PLANTS_STORE: url }
  const denied = await new Sandbox().run('list', { env })
  expect([denied.code, denied.err]).toEqual([4, expect.stringContaining('permission denied')])
  expect(denied.err).toContain('plants help postgresql')
  expect(denied.err).not.toContain('GRANT')
  const readerGrants = grants.replace(', INSERT', '').replace(/^.*imports.*$/m, '')
  await database.query(readerGrants.replaceAll('TO service;', `TO ${role};`))
  for (const line of ['list', 'get 1', 'count', 'export'])
    expect([line, (await new Sandbox().run(line, { env })).code]).toEqual([line, 0])
  for (const line of ['create --id 2 --name Moss', 'update 1 --name Oak', 'delete 1 --yes'])
    expect([line, (await new Sandbox().run(line, { env })).code]).toEqual([line, 4])
})

test('a service is not ready while its role may not look up tokens', async () => {
  const { database, role, url } = await freshRole()
  const { env } = database
  await new Sandbox().run(['tokens', 'create', '--store', database.url], { env })
  const service = await serve(['--store', url, '--admin-port', '0'], { env })
  expect(await readinessOf(service)).toEqual([200, undefined])
  await database.query(`REVOKE SELECT ON plant_store.tokens FROM ${role}`)
  const reason = expect.stringContaining('permission denied for table tokens')
  expect(await readinessOf(service)).toEqual([503, reason])
  await database.query(`GRANT SELECT ON plant_store.tokens TO ${role}`)
  expect(await readinessOf(service)).toEqual([200, undefined])
})

test('doctor says what a role may not do, and fails only if the role may do nothing', async () => {
  const { database, role, url } = await freshRole()
  const examine = async () => {
    const { out } = await new Sandbox().run('doctor', {
      env: { ...database.env, PLANTS_STORE: url },
    })
    const { state, message, hint } = parseObjects(out).at(-1) ?? {}
    return [state, String(message).replace(/^postgres:\S+: /, ''), hint !== undefined]
  }
  const missing = (what: string) => `The store does not allow this user to ${what} plants`
  expect(await examine()).toEqual(['ok', missing('update or delete'), false])
  await database.query(`REVOKE INSERT ON plant_store.plants FROM ${role}`)
  expect(await examine()).toEqual(['warning', missing('create, update or delete'), true])
  await database.query(`REVOKE ALL ON plant_store.plants FROM ${role}`)
  expect(await examine()).toEqual(['failed', missing('create, read, update or delete'), true])
})

test('a role has a right only with every privilege that the right needs', async () => {
  const { database, role, url } = await freshRole()
  await database.query(`GRANT DELETE ON plant_store.plants TO ${role}`)
  const store = await openPostgresStore({ ...database, url })
  const plant = { id: 1n, name: 'Fern' }
  await createPlant(store, plant)
  const denied = 'permission denied'
  expect(await store.findRights()).toEqual(['create', 'read'])
  await expect(deletePlant(store, 1n)).rejects.toThrow(denied)
  await database.query(`REVOKE SELECT ON plant_store.plants FROM ${role}`)
  expect(await store.findRights()).toEqual([])
  await expect(createPlant(store, plant)).rejects.toThrow(denied) // as it looks at plant 1
})
