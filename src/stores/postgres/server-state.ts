import pg from 'pg'
import { PlantsError } from '../../platform/errors.js'
import type { PostgresAddress } from '../common/address.js'
import type { OpenOptions } from '../common/store.js'
import type { Client } from './client.js'
import type { Account } from './login.js'
import { rightsStatement, toRights } from './sql.js'

/** The state of a server. */
interface ServerState {
  version: string
  isReadOnly: boolean
  isStandby: boolean
  /** whether a commit returns only when it is on disk */
  isDurable: boolean
}

/**
 * Reads the state of a server.
 *
 * @throws {PlantsError} `unavailable` for a database that cannot store every character, or acknowledges commits before they are on disk
 */
export async function checkServer(
  client: Client,
  address: PostgresAddress,
  { allowAsyncCommit }: Pick<OpenOptions, 'allowAsyncCommit'>,
): Promise<ServerState> {
  const [[version, encoding, commit, fsync, readOnly, standby] = []] = await client.ask({ text: state })
  if (encoding !== 'UTF8') {
    const hint = `Create one that can: createdb --encoding UTF8 --template template0 NAME`
    throw new PlantsError('unavailable', `${address.name} has the encoding ${encoding}, which cannot store every character`, { hint })
  }
  const isDurable = commit !== 'off' && fsync !== 'off'
  if (!isDurable && !allowAsyncCommit) throw asyncCommit(address, commit === 'off' ? 'synchronous_commit' : 'fsync')
  return { version: version ?? '', isDurable, isReadOnly: readOnly === 'on', isStandby: standby === 't' }
}

/** Throws `unavailable` when no plant can be created over a connection. Destroys a connection to a server that has become read-only. */
export async function checkWritable(client: Client, { address }: Account, options: Pick<OpenOptions, 'allowAsyncCommit'>): Promise<void> {
  const { isReadOnly } = await checkServer(client, address, options)
  const [rights] = await client.ask(rightsStatement())
  if (!toRights(rights).includes('create')) throw mayNotCreate(address)
  if (!isReadOnly) return
  client.destroy()
  throw new PlantsError('unavailable', `${address.name} is read-only now`, { hint: 'Try again', retryable: true })
}

/** The error for a role without the right to create plants. */
export function mayNotCreate({ name, user }: PostgresAddress): PlantsError {
  return new PlantsError('unavailable', `${user} has no right to create plants in ${name}`, { hint: 'See: plants doctor' })
}

const state = `SELECT ${[
  ...['server_version', 'server_encoding', 'synchronous_commit', 'fsync', 'transaction_read_only'].map(
    (name) => `pg_catalog.current_setting('${name}', true)`,
  ),
  'pg_catalog.pg_is_in_recovery()',
].join()}`

function asyncCommit({ name, user }: PostgresAddress, setting: string): PlantsError {
  const hint =
    setting === 'fsync'
      ? 'Turn it on in postgresql.conf, or take the risk with --allow-async-commit'
      : `Turn it on: ALTER ROLE ${pg.escapeIdentifier(user)} SET synchronous_commit = on. Or take the risk with --allow-async-commit`
  return new PlantsError('unavailable', `${name} answers before a plant is on disk: ${setting} is off`, { hint })
}

/** Whether a server has these attributes (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-TARGET-SESSION-ATTRS). */
export function isWanted({ isReadOnly, isStandby }: ServerState, attributes: PostgresAddress['targetSessionAttrs']): boolean {
  return {
    any: true,
    'prefer-standby': true,
    'read-write': !isReadOnly && !isStandby,
    'read-only': isReadOnly || isStandby,
    primary: !isStandby,
    standby: isStandby,
  }[attributes]
}
