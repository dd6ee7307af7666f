/*
 * Requests without a response: what the code of an error means, and what a person can do about it.
 * Only a request that was not sent has certainly changed nothing.
 */
import { describeReason, type ErrorKind, getSystemCode, PlantsError } from '../../errors.js'
import { isTimeout } from '../../platform/runtime.js'
import { isLoopback } from '../../platform/urls.js'
import type { HttpAddress } from '../address.js'
import { formatWithScheme } from './address.js'
import {
  CutResponseError,
  type HttpClient,
  type HttpRequest,
  type NoResponse,
} from './http-client.js'

/**
 * Why a request has no result. If `isOutcomeUnknown`, the service may have processed it, and only a
 * repetition can settle that.
 */
export interface Failure {
  error: PlantsError
  isOutcomeUnknown?: boolean
}

/** Why a service gave no response. */
interface Reason {
  text?: string
  hint?: string
  /** Whether the same request may arrive a moment later. */
  isTransient?: boolean
}

const unreachable: Reason = { hint: 'Check the address and the network', isTransient: true }
const timedOut: Reason = {
  text: 'it timed out',
  hint: 'Check the address and the network, or wait longer with --timeout 2m',
  isTransient: true,
}
const closed: Reason = {
  text: 'the connection was closed',
  hint: 'If the address is right, the service has too many connections: try again later',
  isTransient: true,
}
/** `describePlainAddress` gives the hint. */
const noTls: Reason = { text: 'the TLS handshake failed' }
const noHttp: Reason = {
  text: 'the response is not HTTP',
  hint: 'Check the address: another program may answer at this port',
}
const untrusted: Reason = {
  hint: 'If you trust its issuer, add the certificate of the issuer with --ca-cert FILE',
}

/** The reasons by the code of an error of the system, Node.js or OpenSSL. A proxy's has no code. */
const reasons: Readonly<Record<string, Reason>> = {
  ECONNREFUSED: {
    text: 'the connection was refused',
    hint: 'Check that the service is running. To start one: plants serve',
    isTransient: true,
  },
  ENOTFOUND: { text: 'the host is unknown', hint: 'Check the address for typing errors' },
  TIMEOUT: timedOut,
  ETIMEDOUT: timedOut,
  ECONNRESET: closed,
  EPIPE: closed,
  '': unreachable,
  EAI_AGAIN: unreachable,
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
  HPE_HEADER_OVERFLOW: { ...noHttp, text: 'the response headers are larger than 16 KiB' },
  EPROTO: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
}

export const proxyHint = 'Check HTTPS_PROXY or HTTP_PROXY, or bypass the proxy with NO_PROXY'
const otherReason: Reason = { hint: 'Check the address and the certificate of the service' }

/** Proposes plain HTTP. Beyond this machine, others could read the token, so it needs an option. */
function describePlainAddress(address: HttpAddress): string {
  const plain = formatWithScheme(address, 'http:')
  if (isLoopback(address.url.hostname)) return `Try ${plain}`
  return `Check the port, or in a private network, try ${plain} with --allow-http`
}

/** The codes of the parser of node:http begin with `HPE_`. */
function findReason(code: string): Reason {
  return reasons[code] ?? (code.startsWith('HPE_') ? noHttp : otherReason)
}

export function createNoResponseFailure(
  client: HttpClient,
  request: HttpRequest,
  { cause, isSent }: NoResponse,
): Failure {
  // The error of a port that speaks TLS, or of a proxy, is explained already.
  const explained = cause instanceof PlantsError ? cause : undefined
  const hasChangedNothing = !isSent || request.method === 'GET'
  if (explained && hasChangedNothing) return { error: explained }
  if (!isSent) return { error: createUnreachableError(client, cause) }
  const message = explained?.message ?? describeLoss(client, cause)
  return createLossFailure(request, 'noResponse', message, { cause, hint: explained?.hint })
}

/** Creates the error of a request of which nothing was sent. */
function createUnreachableError({ address, access }: HttpClient, cause: unknown): PlantsError {
  const code = findCode(cause)
  const reason = findReason(code)
  const { text = describeReason(cause), isTransient } = reason
  const message = `Could not reach ${address.name}${describeProxy(access.proxy)}: ${text}`
  const kind = isTransient ? 'unavailable' : 'accessDenied'
  const isOfProxy = access.proxy !== undefined && concernsProxy(code, reason)
  const serviceHint = reason === noTls ? describePlainAddress(address) : reason.hint
  return new PlantsError(kind, message, { hint: isOfProxy ? proxyHint : serviceHint, cause })
}

/** Describes why a request that was sent has no response. */
function describeLoss(client: HttpClient, cause: unknown): string {
  if (cause instanceof CutResponseError)
    return `The response of ${client.address.name} ${cause.message}`
  const { text = describeReason(cause) } = findReason(findCode(cause))
  return `${describeSilence(client)}: ${text}`
}

/** Finds the key of `reasons` for an error. It is empty for an error without a code. */
function findCode(cause: unknown): string {
  return getSystemCode(cause) ?? (isTimeout(cause) ? 'TIMEOUT' : '')
}

/** Whether a failure before the request was sent concerns the proxy, which is contacted first. */
function concernsProxy(code: string, { isTransient = false }: Reason): boolean {
  return isTransient || code === 'ENOTFOUND' || code.startsWith('HPE_')
}

/** A proxy that forwards plain HTTP got the request. Nobody knows whether the service did. */
function describeSilence(client: HttpClient): string {
  const { name } = client.address
  const proxyClause = describeForwarding(client)
  return proxyClause === ''
    ? `${name} received the request, but did not answer`
    : `The request to ${name} was sent${proxyClause}, but not answered`
}

/** Names the proxy, from which a response in plain HTTP without an Error may come. */
export function describeForwarding({ address, access }: HttpClient): string {
  return address.url.protocol === 'http:' ? describeProxy(access.proxy) : ''
}

function describeProxy(proxy: string | undefined): string {
  return proxy === undefined ? '' : ` through the proxy ${new URL(proxy).host}`
}

/**
 * Creates the failure of a request that may have been processed. A read has changed nothing, so it
 * can simply be tried again. If the cause is a PlantsError, as for a port that needs https, no
 * repetition can settle the outcome.
 */
export function createLossFailure(
  { method }: HttpRequest,
  kind: ErrorKind,
  message: string,
  details: Pick<PlantsError, 'status' | 'requestId' | 'hint' | 'cause'>,
): Failure {
  const isOutcomeUnknown = !(details.cause instanceof PlantsError)
  if (method !== 'GET') return { error: new PlantsError(kind, message, details), isOutcomeUnknown }
  const hint = 'Try again later'
  return { error: new PlantsError('unavailable', message, { ...details, hint }) }
}
