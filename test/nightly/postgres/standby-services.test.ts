import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { openPostgresStore } from '../../helpers/postgres/database.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { createPlant } from '../../helpers/sandbox/store.js'
import { exchangeOnce } from '../../helpers/scripted-server/raw-http.js'
import { type RunningService, serve } from '../../helpers/scripted-server/service.js'
import {
  anyServer,
  fern,
  getHost,
  joinServers,
  pollOptions,
  type Servers,
  startServers,
} from './standby-steps.js'

// A service next to a standby, also while that is promoted.

async function explainReadiness({ log }: RunningService): Promise<unknown> {
  const address = log.find(({ msg }) => msg === 'listening')?.['admin']
  const response = await fetch(`${address}/ready`)
  const { message } = (await response.json()) as { message?: string } // an Error, if it is not ready
  return message ?? response.status
}

function serveStandby({ standby, token }: Servers & { token: string }, ...args: string[]) {
  const store = `${standby.url}?${anyServer}`
  return serve(['--store', store, '--admin-port', '0', ...args], { env: {}, token })
}

const list = { method: 'GET', target: '/plants' }
/** A create has no other status for what its client did wrong. */
const notOffered = '400 (403) This service does not create plants'
const create = { body: '{"id":9,"name":"Oak"}' }

test('a service next to a standby offers only reads, and says why', async () => {
  const servers = await startServers()
  const server = getHost(servers.standby)
  const services = [await serveStandby(servers), await serveStandby(servers, '--allow', 'read')]
  const missing = `The server ${server} is read-only, so the service cannot create, update or delete plants, even if the server accepts writes later`
  for (const [index, service] of services.entries()) {
    const readMissing = () => service.log.filter(({ msg }) => msg === missing)
    await expect
      .poll(() => service.log)
      .toContainEqual(expect.objectContaining({ rights: ['read'] }))
    await expect.poll(readMissing).toHaveLength(index === 0 ? 1 : 0)
    expect(service.log.filter(({ level }) => level === 'warn')).toEqual([])
    expect(await explainReadiness(service)).toBe(200)
    expect((await exchangeOnce(service, list)).status).toBe(200)
    expect((await exchangeOnce(service, create)).text).toBe(notOffered)
  }
  await new Sandbox().run('tokens revoke 1', { env: { PLANTS_STORE: servers.primary.url } })
  for (const service of services)
    await expect.poll(async () => (await exchangeOnce(service, list)).status, pollOptions).toBe(401)
})

test('the services of docs/more-machines.md create at the primary, and read from the standby', async () => {
  const { primary, standby, token } = await startServers()
  const page = readFileSync('docs/more-machines.md', 'utf8')
  const lines = Array.from(page.matchAll(/^plants serve (--allow .*)$/gm), ([, args = '']) =>
    args
      .replace('primary.example.com', getHost(primary))
      .replace('standby.example.com', getHost(standby))
      .replaceAll("'", '')
      .split(' '),
  )
  expect(lines).toHaveLength(2)
  const [creator, reader] = await Promise.all(lines.map((args) => serve(args, { env: {}, token })))
  if (!creator || !reader) throw new Error('The page has two services')
  expect((await exchangeOnce(creator, create)).text).toBe('200 {"name":"Oak"}')
  const read = async () => (await exchangeOnce(reader, { ...list, target: '/plants/9' })).text
  await expect.poll(read, pollOptions).toBe('200 {"id":9,"name":"Oak"}')
  expect((await exchangeOnce(creator, list)).status).toBe(403)
  expect((await exchangeOnce(reader, create)).text).toBe(notOffered)
  await primary.stop('immediate')
  await standby.promote()
  const other = { body: '{"id":10,"name":"Ash"}' }
  expect((await exchangeOnce(creator, other)).text).toBe('200 {"name":"Ash"}')
  expect((await exchangeOnce(reader, { ...list, target: '/plants/10' })).status).toBe(200)
})

test('a service next to a standby creates plants as soon as the standby is promoted', async () => {
  const servers = await startServers()
  const service = await serveStandby(servers, '--allow', 'create,read')
  const readOnly = `The server ${getHost(servers.standby)} is read-only`
  await expect
    .poll(() => service.log)
    .toContainEqual(
      expect.objectContaining({
        level: 'warn',
        msg: `${readOnly}, so the service cannot create plants until the server accepts writes`,
      }),
    )
  expect(await explainReadiness(service)).toBe(readOnly)
  const rejected = await exchangeOnce(service, create)
  expect(rejected.text).toMatch(/^503 The store is not available, and nothing was stored/)
  expect((await exchangeOnce(service, list)).status).toBe(200)
  await servers.primary.stop('immediate')
  await servers.standby.promote()
  expect(await explainReadiness(service)).toBe(200)
  expect((await exchangeOnce(service, create)).text).toBe('200 {"name":"Oak"}')
})

test('a standby serves reads while it is promoted, and accepts changes afterwards', async () => {
  const { primary, standby } = await startServers()
  const writer = await openPostgresStore({ ...primary, url: joinServers(primary, standby) })
  const reader = await openPostgresStore(standby, { parameters: anyServer })
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
