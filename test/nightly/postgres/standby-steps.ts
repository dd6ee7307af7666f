import { type Database, openPostgresStore } from '../../helpers/postgres/database.js'
import { startServerWithStandby } from '../../helpers/postgres/standby.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { createPlant } from '../../helpers/sandbox/store.js'

// What the tests of a standby share.

export const pollOptions = { interval: 5 }
export const anyServer = 'target_session_attrs=any'
export const fern = { id: 1n, name: 'Fern', tag: 'shade' }
export const moss = { id: 2n, name: 'Moss' }

export type Servers = Awaited<ReturnType<typeof startServerWithStandby>>

/** A primary and its standby, both of which have two plants, and a token for each service. */
export async function startServers() {
  const servers = await startServerWithStandby()
  const { primary, standby } = servers
  const store = await openPostgresStore(primary)
  for (const plant of [fern, moss]) await createPlant(store, plant)
  const { out } = await new Sandbox().run('tokens create --allow create,read,update,delete', {
    env: { PLANTS_STORE: primary.url },
  })
  await standby.catchUp()
  return { ...servers, token: out.trim() }
}

export const getHost = ({ url }: Pick<Database, 'url'>) => new URL(url).host

/** The address of both servers, the first of which is tried first. */
export function joinServers(first: Pick<Database, 'url'>, second: Pick<Database, 'url'>): string {
  return second.url.replace('@', `@${getHost(first)},`)
}
