import { PlantsError } from '../../platform/errors.js'
import type { PostgresAddress } from '../common/address.js'
import type { Client } from './postgres-client.js'
import { fsyncs, rightsStatement, toRights } from './sql.js'

/**
 * Returns the version of the server. Throws `unavailable` without the requested `target_session_attrs` or UTF8, and an
 * error of the server if fsync is off.
 */
export async function checkServer(client: Client, address: PostgresAddress): Promise<string> {
  const { name, targetSessionAttrs } = address
  const [[version, encoding, readOnly, standby] = []] = await client.ask({ text: state })
  if (encoding !== 'UTF8') {
    const hint = `Create one that can: createdb --encoding UTF8 --template template0 NAME`
    throw new PlantsError('unavailable', `${name} has the encoding ${encoding}, which cannot store every character`, { hint })
  }
  // https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-TARGET-SESSION-ATTRS
  const isStandby = standby === 't'
  const isWanted = { any: true, primary: !isStandby, 'read-write': !isStandby && readOnly !== 'on' }
  if (isWanted[targetSessionAttrs]) return version ?? ''
  client.destroy()
  const hint = 'Try again, or use the address of another server'
  throw new PlantsError('unavailable', `${name} is not ${targetSessionAttrs} now`, { hint, retryable: true })
}

/** Throws `unavailable` when no plant can be created over a connection. */
export async function checkWritable(client: Client, address: PostgresAddress): Promise<void> {
  await checkServer(client, address)
  const [row] = await client.ask(rightsStatement())
  if (!toRights(row).includes('create')) throw mayNotCreate(address)
}

export function mayNotCreate({ name, user }: PostgresAddress): PlantsError {
  return new PlantsError('unavailable', `${user} has no right to create plants in ${name}`, { hint: 'See: plants doctor' })
}

const settings = ['server_version', 'server_encoding', 'transaction_read_only']
const state = `SELECT ${settings.map((name) => `pg_catalog.current_setting('${name}', true)`).join()}, pg_catalog.pg_is_in_recovery(), ${fsyncs}`
