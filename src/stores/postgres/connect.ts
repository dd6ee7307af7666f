import { PlantsError, systemCode } from '../../platform/errors.js'
import type { PostgresAddress, PostgresHost } from '../address.js'
import type { OpenOptions } from '../store.js'
import { Connection } from './connection.js'
import { type Account, NoTls, type Route, routesTo, TlsFailed } from './dial.js'
import { mayPass, sqlState } from './failure.js'
import { LoginError } from './login-methods.js'
import { checkServer, isWanted } from './server-state.js'

type Options = Pick<OpenOptions, 'allowAsyncCommit'>

/** Goes through the hosts, and the ways to each, until one is as it was asked for. Throws what says most of why none is. */
export async function connect(account: Account, options: Options, signal: AbortSignal): Promise<Connection> {
  const { hosts, targetSessionAttrs } = account.address
  const passes = targetSessionAttrs === 'prefer-standby' ? (['standby', 'any'] as const) : [targetSessionAttrs]
  const tries = passes.flatMap((attributes) => hosts.map((host) => ({ host, attributes })))
  let failure: unknown
  for (const { host, attributes } of tries) {
    try {
      return await connectTo({ host, attributes }, account, options, signal)
    } catch (error) {
      if (isFinal(error)) throw error
      if (failure === undefined || isMoreTelling(error, failure)) failure = error
    }
  }
  throw failure
}

interface Target {
  host: PostgresHost
  attributes: PostgresAddress['targetSessionAttrs']
}

async function connectTo({ host, attributes }: Target, account: Account, options: Options, signal: AbortSignal): Promise<Connection> {
  let failure: unknown
  for (const route of routesTo(host, account.address)) {
    try {
      return await connectBy(route, attributes, account, options, signal)
    } catch (error) {
      failure ??= error
      // Without an entry for this way in pg_hba.conf, the other one may have one. As libpq has it, what offers TLS goes on without, too.
      const isOther = error instanceof NoTls || error instanceof TlsFailed || sqlState(error)?.startsWith('28')
      if (!isOther) break
    }
  }
  throw failure
}

async function connectBy(
  route: Route,
  attributes: Target['attributes'],
  account: Account,
  options: Options,
  closing: AbortSignal,
): Promise<Connection> {
  const { name, connectTimeout } = account.address
  const signal = AbortSignal.any([closing, AbortSignal.timeout(connectTimeout)])
  const connection = await Connection.open(route, account, signal)
  const stop = () => connection.destroy()
  signal.addEventListener('abort', stop, { once: true })
  try {
    if (isWanted(await checkServer(connection, account.address, options), attributes)) return connection
    throw new PlantsError('unavailable', `${name} is not ${attributes} now`, { hint: 'Try again, or name another server', retryable: true })
  } catch (error) {
    connection.destroy()
    throw signal.aborted ? signal.reason : error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Who is not let in by one server is not tried at others, as libpq has it: a wrong password would else look like a server that is away. */
function isFinal(error: unknown): boolean {
  return error instanceof LoginError || systemCode(error) === 'SASL_SIGNATURE_MISMATCH' || /^(28|3D)/.test(sqlState(error) ?? '')
}

/** Of several hosts, what may pass says more than what will not: one that comes back is enough. */
function isMoreTelling(error: unknown, other: unknown): boolean {
  return mayPass(error) && !mayPass(other)
}
