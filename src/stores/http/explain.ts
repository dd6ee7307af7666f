/*
 * Explains requests without a result. One table has the statuses of responses, and one the codes of
 * the errors of requests without a response. They decide the kind, and so the exit code and
 * whether a request is repeated.
 */
import { isUtf8 } from 'node:buffer'
import { type Explanation, errorKinds, getSystemCode, PlantsError } from '../../errors.js'
import { isJsonType } from '../../plant/json.js'
import type { ErrorBody } from '../../plant/plant.js'
import { isTimeout } from '../../platform/runtime.js'
import { parseUrl } from '../../platform/urls.js'
import { describeConnectionFailure, isUnknownIssuer } from '../certificate-errors.js'
import type { HttpRequest, HttpResponse, NoResponse } from './http-client.js'
import { findCompression, parseError, truncateToLine } from './plant-request.js'
import type { Service } from './transport.js'

/**
 * Why a request has no result. If `isOutcomeUnknown`, the service may have processed the request,
 * and only a repetition can show whether it did.
 */
export interface Failure {
  error: PlantsError
  isOutcomeUnknown?: boolean
}

/** A read changes nothing, so its kind and its hint may differ. */
type ResponseExplanation = Explanation & { read?: Partial<Explanation> }

const baseUrlHint =
  'Check the address: it must be the base URL of a Plant Store, the part before /plants'
const proxyHint = 'Check HTTPS_PROXY or HTTP_PROXY, or bypass the proxy with NO_PROXY'

const moved: Explanation = {
  kind: 'accessDenied',
  hint: 'If the new address is right, use it with --store',
}
const missingOperation: Explanation = {
  kind: 'rejected',
  hint: 'The service does not offer this, or the address is not its base URL',
}
const busy: Explanation = { kind: 'unavailable', hint: 'Try again later' }
const missingPlant: Explanation = { kind: 'notFound' }
/** A wrong address can lead to an Error, too: `GET /plants/plants` asks for a plant. */
const rejection: ResponseExplanation = { kind: 'rejected', read: { hint: baseUrlHint } }
const foreignRejection: Explanation = { kind: 'rejected', hint: baseUrlHint }
const serverError: ResponseExplanation = { kind: 'badResponse', read: busy }
const unusable: ResponseExplanation = {
  kind: 'badResponse',
  hint: baseUrlHint,
  read: { kind: 'accessDenied' },
}

const explanationsByStatus: Readonly<Record<number, ResponseExplanation>> = {
  301: moved,
  302: moved,
  307: moved,
  308: moved,
  401: { kind: 'unauthorized' }, // the origin of the token has the hint
  403: { kind: 'forbidden', hint: 'Ask the operator of the service to allow this' },
  404: missingOperation,
  405: missingOperation,
  409: { kind: 'conflict', hint: 'Choose another id' },
  413: { kind: 'rejected', hint: 'Shorten the plant' },
  429: busy,
  // A server answers 501 to a method that it does not know, and so is no Plant Store.
  501: { kind: 'badResponse', hint: baseUrlHint, read: { kind: 'unavailable' } },
  503: busy,
}

const unreachable: Explanation = { kind: 'unavailable', hint: 'Check the address and the network' }
const timedOut: Explanation = { ...unreachable, reason: 'it timed out' }
/** Another program closes a connection at which it gets HTTP, and so do ports that speak TLS. */
const closed: Explanation = {
  kind: 'unavailable',
  reason: 'the connection was closed',
  hint: 'Check the address, its port, and whether it begins with http:// or https://',
}
const noTls: Explanation = {
  kind: 'accessDenied',
  reason: 'the TLS handshake failed',
  hint: 'If the service has no TLS, begin the address with http://',
}
const noHttp: Explanation = {
  kind: 'accessDenied',
  reason: 'the response is not HTTP',
  hint: 'Check the address: another program may answer at this port',
}
/** The issuer of a certificate that is signed by itself is the service. */
const untrusted: Explanation = {
  kind: 'accessDenied',
  hint: 'If you trust its issuer, give --ca-cert a file with the certificate of the issuer',
}

/** The key is the code of an error of the system, Node.js, OpenSSL or this program. */
const explanationsByCode: Readonly<Record<string, Explanation>> = {
  '': unreachable, // an error without a code
  EAI_AGAIN: unreachable,
  EHOSTUNREACH: unreachable,
  ENETUNREACH: unreachable,
  ECONNREFUSED: {
    kind: 'unavailable',
    reason: 'the connection was refused',
    hint: 'Check the host and the port, and that the service is running there',
  },
  ENOTFOUND: {
    kind: 'accessDenied',
    reason: 'the host is unknown',
    hint: 'Check its name for typing errors',
  },
  TIMEOUT: timedOut,
  ETIMEDOUT: timedOut,
  ECONNRESET: closed,
  EPIPE: closed,
  HPE_HEADER_OVERFLOW: { ...noHttp, reason: 'the response headers are larger than 16 KiB' },
  TLS_PORT: {
    kind: 'accessDenied',
    reason: 'its port speaks TLS, not plain HTTP',
    hint: 'Begin the address with https://',
  },
  EPROTO: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_TLS_CERT_ALTNAME_INVALID: {
    kind: 'accessDenied',
    hint: 'Use an address with a host that the certificate of the service names',
  },
  CERT_HAS_EXPIRED: {
    kind: 'accessDenied',
    hint: 'Let the operator of the service renew its certificate',
  },
  PROXY_AUTHENTICATION: {
    kind: 'accessDenied',
    hint: 'Write USER:PASSWORD@ before its host in HTTPS_PROXY or HTTP_PROXY',
  },
}
const otherExplanation: Explanation = {
  kind: 'accessDenied',
  hint: 'Check the address and the certificate of the service',
}

/**
 * Returns true for an error that concerns one plant. Other errors concern the service, and so all
 * plants.
 */
export function isPlantFailure({ kind, status = 0 }: Pick<PlantsError, 'kind' | 'status'>) {
  if (kind === 'conflict' || kind === 'notFound') return true
  return kind === 'rejected' && [400, 413, 422].includes(status)
}

/** Explains a response that is not the expected value. */
export function explainResponse(
  service: Service,
  request: HttpRequest,
  response: HttpResponse,
): Failure {
  const { status, headers } = response
  const errorBody = parseError(response)
  const explanation = findExplanation(request, status, errorBody)
  const { kind, hint } = { ...explanation, ...(request.method === 'GET' && explanation.read) }
  const proxyClause = errorBody === undefined ? describeForwardingProxy(service) : ''
  const summary = `${service.address.name} answered ${status}${proxyClause}`
  // A user of several services must know which of them rejects the token, or is busy.
  const start = isPlantFailure({ kind, status }) ? '' : `${summary}: `
  const message = errorBody
    ? start + errorBody.message
    : summary + describeContent(service, request, response)
  // Few servers write a date instead of seconds, which counts as none.
  const { 'retry-after': retryAfter = '' } = headers
  const hasDelay = explanation.kind === 'unavailable' && /^\d+$/.test(retryAfter)
  const retryAfterMs = hasDelay ? Number(retryAfter) * 1000 : undefined
  const tokenHint = kind === 'unauthorized' ? service.access.tokenHint : undefined
  // Only a rejection has the value of the service.
  const isRejection = errorKinds[kind].exitCode < errorKinds.unavailable.exitCode
  const delay = retryAfterMs ? ` (Retry-After: ${retryAfter} s)` : ''
  const error = new PlantsError(kind, message + delay, {
    status,
    requestId: truncateToLine(String(headers['request-id'] ?? '')) || undefined,
    hint: proxyClause === '' ? (hint ?? tokenHint) : proxyHint,
    retryAfterMs,
    ...(isRejection && { error: errorBody?.error ?? status }),
  })
  return { error, isOutcomeUnknown: kind === 'badResponse' && status >= 500 }
}

function findExplanation(
  { path }: HttpRequest,
  status: number,
  errorBody: ErrorBody | undefined,
): ResponseExplanation {
  const value = errorBody?.error ?? status
  // A 409 without an Error may come from a proxy on the way, so nothing says that the id exists.
  if (status === 409 && errorBody === undefined) return foreignRejection
  // On a path without an id, a 404 may say that the service lacks the operation.
  const isAboutId = errorBody !== undefined && path.startsWith('/plants/')
  if (status === 404 && value === 404 && isAboutId) return missingPlant
  const hasOwnExplanation = status === 400 && [401, 403, 409].includes(value)
  const explanation = explanationsByStatus[hasOwnExplanation ? value : status]
  if (explanation) return explanation
  if (status >= 500) return serverError
  if (status < 400) return unusable
  return errorBody === undefined ? foreignRejection : rejection
}

/** Explains why a request has no response. Only one that was not sent has changed nothing. */
export function explainNoResponse(
  service: Service,
  { method }: HttpRequest,
  { cause, isSent }: NoResponse,
): Failure {
  const { address, access } = service
  const mayHaveChanged = isSent && method !== 'GET'
  // A signal has ended the request, so no repetition can show the outcome.
  if (cause instanceof PlantsError) {
    const { message } = cause
    const error = mayHaveChanged ? new PlantsError('noResponse', message, { cause }) : cause
    return { error }
  }
  const code = findCode(cause)
  const other = code.startsWith('HPE_') ? noHttp : otherExplanation
  const explanation = isUnknownIssuer(cause) ? untrusted : (explanationsByCode[code] ?? other)
  const { kind, reason = describeConnectionFailure(cause), hint } = explanation
  // A port that answers plain HTTP with a TLS alert has not understood the request.
  if (!isSent || code === 'TLS_PORT') {
    const message = `Could not reach ${address.name}${describeProxy(access.proxy)}: ${reason}`
    const isOfProxy = access.proxy !== undefined && kind === 'unavailable'
    const unreachedHint = isOfProxy ? proxyHint : hint
    return { error: new PlantsError(kind, message, { hint: unreachedHint, cause }) }
  }
  const message = `${address.name} did not answer${describeForwardingProxy(service)}: ${reason}`
  const error = mayHaveChanged
    ? new PlantsError('noResponse', message, { cause })
    : new PlantsError('unavailable', message, { hint, cause })
  return { error, isOutcomeUnknown: mayHaveChanged }
}

/** The key of `explanationsByCode` for an error. */
function findCode(cause: unknown): string {
  if (isTlsAlert(cause)) return 'TLS_PORT'
  return getSystemCode(cause) ?? (isTimeout(cause) ? 'TIMEOUT' : '')
}

/**
 * Returns true if the parser of node:http failed at a TLS alert, which is a record of type 21 and
 * version 3.x (RFC 8446, 5.1).
 */
function isTlsAlert(error: unknown): boolean {
  if (!(error instanceof Error) || !('rawPacket' in error)) return false
  const { rawPacket } = error
  return rawPacket instanceof Uint8Array && rawPacket[0] === 0x15 && rawPacket[1] === 0x03
}

/**
 * Names the proxy that forwards requests in plain HTTP. A response without an Error may come from
 * this proxy.
 */
function describeForwardingProxy({ address, access }: Service): string {
  return address.url.protocol === 'http:' ? describeProxy(access.proxy) : ''
}

function describeProxy(proxy: string | undefined): string {
  return proxy === undefined ? '' : ` through the proxy ${new URL(proxy).host}`
}

/** Describes the content of a response that is neither the expected value nor an Error. */
function describeContent(
  { address }: Service,
  { expectedValue }: HttpRequest,
  response: HttpResponse,
): string {
  const { status, headers, body, exceededBytes } = response
  const target =
    headers.location === undefined ? undefined : parseUrl(headers.location, address.url.href)
  // The user information and the query of the new address may be secrets.
  if (target && status >= 300 && status < 400)
    return `, and redirects to ${truncateToLine(target.origin + target.pathname)}`
  if (body.length === 0) return ' with nothing'
  if (exceededBytes !== undefined) return ` with more than ${exceededBytes / 1_048_576} MiB`
  const compression = findCompression(headers)
  if (compression !== undefined) return ` with a compressed body (${truncateToLine(compression)})`
  const type = headers['content-type'] ?? 'no Content-Type'
  // The text of a web page is for a browser.
  if (/^(?:text\/html|application\/xhtml\+xml)\b/i.test(type)) return ' with a web page'
  const text = truncateToLine(body.toString('utf8', 0, 1000))
  if (status !== 200) return `: ${text}`
  if (!isJsonType(type))
    return ` with ${truncateToLine(type.replace(/;.*/, ''))}, not application/json: ${text}`
  return isUtf8(body)
    ? ` with no ${expectedValue.noun}: ${text}`
    : ` with a body that is not UTF-8: ${text}`
}
