import type { ConnectionOptions } from 'node:tls'
import pg from 'pg'
import { PlantsError } from '../../errors.js'
import { isLoopback } from '../../platform/urls.js'
import type { PostgresHost } from '../address.js'
import type { PostgresAccess } from './address.js'
import { examineServer, PostgresConnection } from './connection.js'

export function createTlsOptions({ address, login }: PostgresAccess): ConnectionOptions {
  const { sslmode } = address
  const { ca, cert, key } = login
  // As in libpq, `require` verifies the certificate only if a root certificate is configured.
  const verifiesServer = sslmode.startsWith('verify') || (sslmode === 'require' && ca !== undefined)
  const identityOption = sslmode !== 'verify-full' && { checkServerIdentity: () => undefined }
  return { rejectUnauthorized: verifiesServer, ca, cert, key, ...identityOption }
}

/** @param tls is false for connections without TLS */
export function createPool(
  { host, port }: PostgresHost,
  tls: ConnectionOptions | false,
  access: PostgresAccess,
): pg.Pool {
  const { address, login, timeoutMs } = access
  const { hosts, user, database, maxConnections, name } = address
  const isVerified = tls !== false && tls.rejectUnauthorized === true
  const isPrivate = host.startsWith('/') || isLoopback(host) || isVerified
  const pool = new pg.Pool({
    host,
    port,
    user,
    database,
    max: maxConnections,
    application_name: 'plants',
    password: () => {
      const password = login.findPassword({ host, port })
      if (password !== undefined) return password
      const hint = login.passwordHint
      throw new PlantsError('unauthorized', `${name} requires a password`, { hint })
    },
    ssl: tls,
    connectionTimeoutMillis: Math.min(5000, timeoutMs / hosts.length),
    idleTimeoutMillis: 0,
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
    types: { getTypeParser: () => (text: string) => text },
    Client: isPrivate ? pg.Client : ScramOnlyClient,
    onConnect: async (client) => void (await examineServer(new PostgresConnection(client, access))),
  })
  // Node.js ends the process for an error without a listener. An idle connection that fails is
  // dropped by the pool, and the error of a statement reaches its caller anyway.
  pool.on('error', () => undefined)
  return pool.on('connect', (client) => void client.on('error', () => undefined))
}

/** RFC 7677 asks servers for at least this many. With fewer, a password is easily guessed. */
const minScramIterations = 4096

/**
 * Logs in only with SCRAM. This class is for connections that others could read, or on which
 * another server could answer. They could read a password there, use its MD5 hash, or guess it from
 * a proof of few iterations.
 */
class ScramOnlyClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config)
    const rejectServer = (request: string) => {
      const message = `${this.host} requests ${request} over a connection that others could read`
      const hint = 'Verify its certificate, with sslmode=verify-full in the address'
      this.connection.stream.destroy(new PlantsError('unauthorized', message, { hint }))
    }
    for (const event of ['authenticationCleartextPassword', 'authenticationMD5Password'])
      this.connection.prependListener(event, () => rejectServer('the password'))
    // The message of the server has the number of iterations as `i=4096` (RFC 5802, 5.1).
    this.connection.prependListener('authenticationSASLContinue', ({ data }: { data: string }) => {
      const counts = data.split(',').filter((attribute) => attribute.startsWith('i='))
      const iterations = Number(counts[0]?.slice(2))
      if (counts.length !== 1 || !(iterations >= minScramIterations))
        rejectServer('a proof of the password with too few iterations')
    })
  }
}
