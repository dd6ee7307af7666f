import { PlantsError } from '../../platform/errors.js'
import type { PostgresAddress } from '../common/address.js'
import type { Client } from './client.js'
import { notDurable } from './errors.js'
import type { Account } from './login.js'
import { rightsStatement, toRights } from './sql.js'

interface ServerState {
  version: string
  isReadOnly: boolean
  isStandby: boolean
}

/**
 * Reads the state of a server.
 *
 * @throws {PlantsError} `unavailable` for a database that cannot store every character, or has fsync off
 */
export async function checkServer(client: Client, address: PostgresAddress): Promise<ServerState> {
  const [[version, encoding, fsync, readOnly, standby] = []] = await client.ask({ text: state })
  if (encoding !== 'UTF8') {
    const hint = `Create one that can: createdb --encoding UTF8 --template template0 NAME`
    throw new PlantsError('unavailable', `${address.name} has the encoding ${encoding}, which cannot store every character`, { hint })
  }
  if (fsync === 'off') {
    const { message, hint } = notDurable(address)
    throw new PlantsError('unavailable', message, { hint })
  }
  return { version: version ?? '', isReadOnly: readOnly === 'on', isStandby: standby === 't' }
}

/** Throws `unavailable` when no plant can be created over a connection. Destroys a connection to a server that has become read-only. */
export async function checkWritable(client: Client, { address }: Account): Promise<void> {
  const { isReadOnly } = await checkServer(client, address)
  const [rights] = await client.ask(rightsStatement())
  if (!toRights(rights).includes('create')) throw mayNotCreate(address)
  if (!isReadOnly) return
  client.destroy()
  throw new PlantsError('unavailable', `${address.name} is read-only now`, { hint: 'Try again', retryable: true })
}

export function mayNotCreate({ name, user }: PostgresAddress): PlantsError {
  return new PlantsError('unavailable', `${user} has no right to create plants in ${name}`, { hint: 'See: plants doctor' })
}

const state = `SELECT ${[
  ...['server_version', 'server_encoding', 'fsync', 'transaction_read_only'].map((name) => `pg_catalog.current_setting('${name}', true)`),
  'pg_catalog.pg_is_in_recovery()',
].join()}`

/** Whether a server has these attributes (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-TARGET-SESSION-ATTRS). */
export function isWanted({ isReadOnly, isStandby }: ServerState, attributes: PostgresAddress['targetSessionAttrs']): boolean {
  return {
    any: true,
    'read-write': !isReadOnly && !isStandby,
    primary: !isStandby,
  }[attributes]
}
