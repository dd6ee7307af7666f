import { once } from 'node:events'
import { connect as connectSocket, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, TLSSocket } from 'node:tls'
import { systemCode } from '../../platform/errors.js'
import { isLoopback } from '../../platform/network.js'
import type { Login, PostgresAddress, PostgresHost } from '../store.js'
import { socketPath } from './hosts.js'
import { checkSocketOwner } from './socket-owner.js'

/** Who logs in, and how. */
export interface Account {
  address: PostgresAddress
  login: Login
}

/** How a server is reached. */
export interface Route {
  host: PostgresHost
  /** whether TLS is asked for, is a must, or is left out */
  tls: 'never' | 'offered' | 'always'
}

/**
 * The ways to a server in the order in which they are tried, as libpq has it: the second one where the server lets nobody in who comes the
 * first way (https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION).
 */
export function routesTo(host: PostgresHost, { sslmode }: PostgresAddress): Route[] {
  if (isSocketFolder(host)) return [{ host, tls: 'never' }]
  return routes[sslmode].map((tls) => ({ host, tls }))
}

const routes: Record<PostgresAddress['sslmode'], Route['tls'][]> = {
  disable: ['never'],
  allow: ['never', 'always'],
  prefer: ['offered', 'never'],
  require: ['always'],
  'verify-ca': ['always'],
  'verify-full': ['always'],
}

export function isSocketFolder({ host }: PostgresHost): boolean {
  return host.startsWith('/')
}

/** Whether a password may go over a connection as it is: to this machine, or by TLS to a server whose certificate was checked. */
export function isTrusted(socket: Socket, { host }: Route, account: Account): boolean {
  return isSocketFolder(host) || isLoopback(host.host) || (socket instanceof TLSSocket && isChecked(account))
}

/** TLS was begun, and came to nothing. */
export class TlsFailed extends Error {
  readonly code: string | undefined

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.code = systemCode(cause)
  }
}

/** The server has no TLS, and the address wants it. */
export class NoTls extends Error {
  readonly code = 'NO_TLS'
}

/**
 * Connects to a server, up to where the protocol's first message goes.
 *
 * @throws what the system, or TLS, says; `NoTls`; the reason of the signal
 */
export async function dial({ host, tls }: Route, account: Account, signal: AbortSignal): Promise<Socket> {
  const socket = connectSocket(isSocketFolder(host) ? { path: socketPath(host.host, host.port) } : { host: host.host, port: host.port })
  const stop = () => socket.destroy(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  try {
    signal.throwIfAborted()
    socket.setNoDelay(true)
    await once(socket, 'connect')
    if (isSocketFolder(host)) checkSocketOwner(socketPath(host.host, host.port), account.address.requirePeer, account.login.trusts)
    return tls === 'never' ? socket : await secure(socket, { host, tls }, account)
  } catch (error) {
    socket.on('error', () => undefined).destroy()
    throw signal.aborted ? signal.reason : error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Asks for TLS (https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-SSL). */
async function secure(socket: Socket, { host, tls }: Route, account: Account): Promise<Socket> {
  socket.write(sslRequest)
  const [answer] = (await Promise.race([once(socket, 'data'), ended(socket)])) as [Buffer]
  const text = answer.toString('latin1')
  if (text === 'N' && tls === 'offered') return socket
  if (text === 'N') throw new NoTls('the server has no TLS')
  // More than one byte would have come without TLS, from whoever put it there.
  if (text !== 'S') throw new Error('what answers is no PostgreSQL server')
  const secured = connectTls({ socket, host: host.host, ...(isIP(host.host) ? {} : { servername: host.host }), ...trust(account) })
  try {
    await once(secured, 'secureConnect')
  } catch (error) {
    throw new TlsFailed(error)
  }
  return secured
}

const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])

async function ended(socket: Socket): Promise<never> {
  await once(socket, 'end')
  throw new Error('the server closed the connection')
}

/** A certificate that was given is held against the server's in every mode, as libpq does. */
function isChecked({ address: { sslmode, sslrootcert }, login: { ca } }: Account): boolean {
  return sslmode.startsWith('verify') || sslrootcert !== undefined || ca !== undefined
}

/** Whom to believe. */
function trust(account: Account): ConnectionOptions {
  const {
    address: { sslmode, sslrootcert },
    login: { ca, cert, key },
  } = account
  const own = cert === undefined || key === undefined ? {} : { cert, key }
  const isNamed = sslmode === 'verify-full' || sslrootcert === 'system'
  return {
    ...own,
    ...(ca === undefined ? {} : { ca }),
    rejectUnauthorized: isChecked(account),
    ...(isNamed ? {} : { checkServerIdentity: () => undefined }),
  }
}
