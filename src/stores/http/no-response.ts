/*
 * Explains requests without a response: what the code of an error means, and what a person can do
 * about it. Only a request that was not sent has certainly changed nothing.
 */
import { type ErrorKind, getSystemCode, PlantsError } from '../../errors.js'
import { isTimeout } from '../../platform/runtime.js'
import { isLoopback } from '../../platform/urls.js'
import type { HttpAddress } from '../address.js'
import { describeConnectionFailure } from '../certificate-errors.js'
import { formatWithScheme } from './address.js'
import {
  type HttpClient,
  type HttpRequest,
  type NoResponse,
  TruncatedResponseError,
} from './http-client.js'

/**
 * Why a request has no result. If `isOutcomeUnknown`, the service may have processed the request,
 * and only a repetition can show whether it did.
 */
export interface Failure {
  error: PlantsError
  isOutcomeUnknown?: boolean
}

/** Why a service gave no response. */
interface Reason {
  text?: string
  hint?: string
  /** True if the same request may succeed a moment later. */
  isTransient?: boolean
}

const unreachableReason: Reason = { hint: 'Check the address and the network', isTransient: true }
const timeoutReason: Reason = {
  text: 'it timed out',
  hint: 'Check the address and the network, or wait longer with --timeout 2m',
  isTransient: true,
}
const closedReason: Reason = {
  text: 'the connection was closed',
  hint: 'If the address is right, the service has too many connections: try again later',
  isTransient: true,
}
/** `describePlainAddress` gives the hint. */
const noTlsReason: Reason = { text: 'the TLS handshake failed' }
const noHttpReason: Reason = {
  text: 'the response is not HTTP',
  hint: 'Check the address: another program may answer at this port',
}
const untrustedReason: Reason = {
  hint: 'If you trust its issuer, give --ca-cert a file that contains the certificate of the issuer',
}

/**
 * The key is the code of an error of the system, Node.js or OpenSSL. The error of a proxy has no
 * code.
 */
const reasons: Readonly<Record<string, Reason>> = {
  ECONNREFUSED: {
    text: 'the connection was refused',
    hint: 'Check the host and the port, and that the service is running there. To start one: plants serve --port PORT',
    isTransient: true,
  },
  ENOTFOUND: { text: 'the host is unknown', hint: 'Check the address for typing errors' },
  TIMEOUT: timeoutReason,
  ETIMEDOUT: timeoutReason,
  ECONNRESET: closedReason,
  EPIPE: closedReason,
  '': unreachableReason,
  EAI_AGAIN: unreachableReason,
  EHOSTUNREACH: unreachableReason,
  ENETUNREACH: unreachableReason,
  HPE_HEADER_OVERFLOW: { ...noHttpReason, text: 'the response headers are larger than 16 KiB' },
  EPROTO: noTlsReason,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTlsReason,
  ERR_SSL_WRONG_VERSION_NUMBER: noTlsReason,
  DEPTH_ZERO_SELF_SIGNED_CERT: {
    hint: 'If you trust the service, get its certificate from the operator, and give the file to --ca-cert',
  },
  SELF_SIGNED_CERT_IN_CHAIN: untrustedReason,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrustedReason,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrustedReason,
  ERR_TLS_CERT_ALTNAME_INVALID: {
    hint: 'Use an address with a host that the certificate of the service names',
  },
  CERT_HAS_EXPIRED: {
    hint: 'Let the operator of the service renew its certificate, and check the clock of this machine',
  },
}

export const proxyHint = 'Check HTTPS_PROXY or HTTP_PROXY, or bypass the proxy with NO_PROXY'
const otherReason: Reason = { hint: 'Check the address and the certificate of the service' }

/**
 * Proposes plain HTTP. On a network, others could read the token, so the proposal includes
 * --allow-http.
 */
function describePlainAddress(address: HttpAddress): string {
  const plainAddress = formatWithScheme(address, 'http:')
  if (isLoopback(address.url.hostname)) return `Try ${plainAddress}`
  return `Check the port, or in a private network, try ${plainAddress} with --allow-http`
}

/** The codes of the parser of node:http begin with `HPE_`. */
function findReason(code: string): Reason {
  return reasons[code] ?? (code.startsWith('HPE_') ? noHttpReason : otherReason)
}

export function createNoResponseFailure(
  client: HttpClient,
  request: HttpRequest,
  { cause, isSent }: NoResponse,
): Failure {
  // The error of a port that speaks TLS, or of a proxy, is a PlantsError already.
  const explainedError = cause instanceof PlantsError ? cause : undefined
  const hasChangedNothing = !isSent || request.method === 'GET'
  if (explainedError && hasChangedNothing) return { error: explainedError }
  if (!isSent) return { error: createUnreachableError(client, cause) }
  const message = explainedError?.message ?? describeFailedRequest(client, cause)
  return createFailureAfterSending(request, 'noResponse', message, {
    cause,
    hint: explainedError?.hint ?? chooseReadHint(request, cause),
  })
}

/** Another program, such as PostgreSQL, closes the connection when it gets a request of HTTP. */
function chooseReadHint({ method }: HttpRequest, cause: unknown): string | undefined {
  if (method !== 'GET' || cause instanceof TruncatedResponseError) return undefined
  return 'Check the address and the port, or try again later'
}

/** Creates the error of a request that was not sent. */
function createUnreachableError({ address, access }: HttpClient, cause: unknown): PlantsError {
  const code = findCode(cause)
  const reason = findReason(code)
  const { text = describeConnectionFailure(cause), isTransient } = reason
  const message = `Could not reach ${address.name}${describeProxy(access.proxy)}: ${text}`
  const kind = isTransient ? 'unavailable' : 'accessDenied'
  const isProxyProblem = access.proxy !== undefined && concernsProxy(code, reason)
  const serviceHint = reason === noTlsReason ? describePlainAddress(address) : reason.hint
  return new PlantsError(kind, message, { hint: isProxyProblem ? proxyHint : serviceHint, cause })
}

/** Describes why a request that was sent has no response. */
function describeFailedRequest(client: HttpClient, cause: unknown): string {
  if (cause instanceof TruncatedResponseError)
    return `The response of ${client.address.name} ${cause.message}`
  const { text = describeConnectionFailure(cause) } = findReason(findCode(cause))
  return `${describeMissingResponse(client)}: ${text}`
}

/** Finds the key of `reasons` for an error. It is empty for an error without a code. */
function findCode(cause: unknown): string {
  return getSystemCode(cause) ?? (isTimeout(cause) ? 'TIMEOUT' : '')
}

/**
 * Returns true if a failure concerns the proxy. The request was not sent, and the proxy is
 * contacted first.
 */
function concernsProxy(code: string, { isTransient = false }: Reason): boolean {
  return isTransient || code === 'ENOTFOUND' || code.startsWith('HPE_')
}

/**
 * If a proxy forwards plain HTTP, the proxy received the request, and the service may not have
 * received it.
 */
function describeMissingResponse(client: HttpClient): string {
  const { name } = client.address
  const proxyClause = describeForwardingProxy(client)
  return proxyClause === ''
    ? `${name} received the request, but did not answer`
    : `The request to ${name} was sent${proxyClause}, but not answered`
}

/**
 * Names the proxy that forwards requests in plain HTTP. A response without an Error may come from
 * this proxy.
 */
export function describeForwardingProxy({ address, access }: HttpClient): string {
  return address.url.protocol === 'http:' ? describeProxy(access.proxy) : ''
}

function describeProxy(proxy: string | undefined): string {
  return proxy === undefined ? '' : ` through the proxy ${new URL(proxy).host}`
}

const repeatReadHint = 'Try again later. If that does not help, tell the operator of the service'

/**
 * Creates the failure of a request that the service may have processed. A read changes nothing, so
 * the user can simply try again. If the cause is a PlantsError, as for a port that needs https, no
 * repetition can show the outcome.
 */
export function createFailureAfterSending(
  { method }: HttpRequest,
  kind: ErrorKind,
  message: string,
  details: Pick<PlantsError, 'status' | 'requestId' | 'hint' | 'cause'>,
): Failure {
  const isOutcomeUnknown = !(details.cause instanceof PlantsError)
  if (method !== 'GET') return { error: new PlantsError(kind, message, details), isOutcomeUnknown }
  const hint = details.hint ?? repeatReadHint
  return { error: new PlantsError('unavailable', message, { ...details, hint }) }
}
