import { once } from 'node:events'
import { lstatSync, readFileSync } from 'node:fs'
import { connect as connectSocket, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls, TLSSocket } from 'node:tls'
import { systemCode } from '../../platform/errors.js'
import { strangerAt } from '../../platform/files.js'
import { isLoopback } from '../../platform/network.js'
import type { PostgresAddress, PostgresHost } from '../address.js'
import type { Login } from '../store.js'
import { socketPath } from './address.js'
import { LoginError } from './login-methods.js'

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

/**
 * Looks at what a server challenges with (https://www.rfc-editor.org/rfc/rfc5802#section-5.1), before the driver computes what it wants.
 *
 * @param nonce what we have sent, with which the server's begins
 * @throws {LoginError} for one that is none, that would stop the process for seconds, or whose answer would be easy to guess from
 */
export function checkScram(challenge: string, nonce: string | undefined): void {
  const [, serverNonce = '', count] = /^r=([\x21-\x2b\x2d-\x7e]+),s=[A-Za-z0-9+/]+={0,2},i=([1-9]\d{0,9})$/.exec(challenge) ?? []
  if (count === undefined) throw new LoginError('what answers is no PostgreSQL server')
  if (Number(count) > maxIterations)
    throw new LoginError(`it asks for ${count} iterations of SCRAM, and ${maxIterations} are the most here`)
  if (Number(count) < minIterations)
    throw new LoginError(`it asks for ${count} iterations of SCRAM, and ${minIterations} are the fewest here`)
  if (nonce === undefined || !serverNonce.startsWith(nonce) || serverNonce === nonce)
    throw new LoginError('the challenge of the server does not answer ours')
}

/** What PostgreSQL asks for when nothing else was set, and what RFC 7677 demands. */
const minIterations = 4096

/** These take about a second, in which nothing else happens. */
const maxIterations = 1_000_000

/**
 * Looks at whom a Unix socket belongs to that was connected to: where others can make the one of a server that is away, they would get the
 * password and the plants. PostgreSQL's own account is trusted as well, and a group that may write to the folder, as Debian's may.
 *
 * @param requirePeer the name or number of the only user that it may belong to, as libpq's parameter `requirepeer`
 * @param trusts whether a user is this one, or root
 * @throws {LoginError} and what the system says of a socket that is gone, whoever it was of
 */
export function checkSocketOwner(path: string, requirePeer: string | undefined, trusts: (uid: number) => boolean): void {
  if (process.platform === 'win32') return
  if (requirePeer !== undefined) {
    const { uid } = lstatSync(path)
    const name = nameOf(uid)
    if (requirePeer === name || requirePeer === String(uid)) return
    throw new LoginError(`its socket belongs to ${name ?? `the user ${uid}`}, and requirepeer is ${requirePeer}`)
  }
  const isPostgres = (uid: number) => ['postgres', '_postgres'].includes(nameOf(uid) ?? '')
  const stranger = strangerAt(path, { trusts: (uid) => trusts(uid) || isPostgres(uid), writers: 0o002 })
  if (stranger !== undefined) throw new LoginError(stranger, 'LOGIN_SOCKET')
}

/** The name of a user of this machine; undefined for one that is kept elsewhere. */
function nameOf(uid: number): string | undefined {
  try {
    const lines = readFileSync('/etc/passwd', 'utf8').split('\n')
    return lines.map((line) => line.split(':')).find(([, , number]) => number === String(uid))?.[0]
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}
