import type { IncomingHttpHeaders } from 'node:http'
import { isJsonType } from '../../plant/exact-json.js'
import { type ErrorKind, PlantsError, reasonOf, systemCode } from '../../platform/errors.js'
import { isTimeout } from '../../platform/runtime.js'
import { urlOf } from '../../platform/urls.js'
import type { HttpClient, HttpRequest, HttpResponse, NoResponse } from './http-client.js'
import { errorIn, excerpt } from './plant-request.js'

/** Why a request has no result. After `maybe-done`, only a repetition can settle it. */
interface Failure {
  effect: 'not-sent' | 'refused' | 'maybe-done'
  error: PlantsError
}

export type Result<T> = { value: T } | Failure

export function resultOf<T>(
  client: HttpClient,
  request: HttpRequest<T>,
  response: HttpResponse | NoResponse,
): Result<T> {
  if ('cause' in response) return withoutResponse(client, request, response)
  const value = response.status === 200 ? request.expected.read(response) : undefined
  return value === undefined ? failureOf(client, request, response) : { value }
}

/** Whether the service rejects this plant, or does not have it. Other errors concern any plant. */
export function isOfPlant({ kind, status = 0 }: PlantsError): boolean {
  if (kind === 'conflict' || kind === 'notFound') return true
  return kind === 'rejected' && [400, 413, 422].includes(status)
}

interface Meaning {
  kind: ErrorKind
  hint?: string
}

const moved: Meaning = {
  kind: 'inaccessible',
  hint: 'Redirects are not followed. If the new address is right, use it with --store',
}
const notOffered: Meaning = {
  kind: 'rejected',
  hint: 'This service does not offer this, or the address is wrong: it is the base URL, the part before /plants',
}
const exists: Meaning = {
  kind: 'conflict',
  hint: 'Choose another id. To repeat a create safely, use the same --idempotency-key for the same plant',
}
const forbidden: Meaning = {
  kind: 'forbidden',
  hint: 'Ask the operator of the service who may do this',
}
const foreign: Meaning = {
  kind: 'unusable',
  hint: 'Is it a Plant Store? The address is the base URL, the part before /plants',
}
const later: Meaning = { kind: 'unavailable', hint: 'Nothing was stored. Try again later' }

/** By the status, or by the `error` of a 400 response. A service may use others. */
const meanings: Readonly<Record<number, Meaning>> = {
  ...{ 301: moved, 302: moved, 307: moved, 308: moved },
  ...{
    401: { kind: 'unauthorized' },
    403: forbidden,
    404: notOffered,
    405: notOffered,
  },
  ...{ 409: exists, 413: { kind: 'rejected', hint: 'Shorten the name or tag' } },
  ...{ 429: later, 503: later },
}

function meaningOf(status: number, error: number, isError: boolean): Meaning {
  // Without an Error, a 409 may be of anything on the way to the service: nothing says that the id exists.
  if (status === 409 && !isError) return { kind: 'rejected' }
  const isTold = status === 400 && [401, 403, 409, 413].includes(error)
  const isRefusal = status >= 400 && status < 500
  return meanings[isTold ? error : status] ?? (isRefusal ? { kind: 'rejected' } : foreign)
}

function failureOf(client: HttpClient, request: HttpRequest, response: HttpResponse): Failure {
  const { name } = client.address
  const { status, headers } = response
  const { error = status, message } = errorIn(response) ?? {}
  const text = message ?? `${name} answered ${status}${contentOf(client, request, response)}`
  const requestId = excerpt(String(headers['request-id'] ?? '')) || undefined
  const details = { status, requestId }
  const isError = message !== undefined
  const isOfOnePlant = request.path.startsWith('/plants/')
  if (isOfOnePlant && status === 404 && error === 404 && isError)
    return { effect: 'refused', error: new PlantsError('notFound', text, details) }
  const { kind, hint = `This message is from ${name}` } = meaningOf(status, error, isError)
  if (kind === 'unusable' && status >= 500) {
    const told = isError ? `${name} answered ${status}: ${message}` : text
    return lost(request, kind, told, details)
  }
  const retryAfterMs = delayIn(headers)
  const asked = retryAfterMs ? ` (Retry-After: ${Math.ceil(retryAfterMs / 1000)} s)` : ''
  const isRead = request.method === 'GET' // which leaves nothing open
  const refusal = new PlantsError(
    kind === 'unusable' && isRead ? 'inaccessible' : kind,
    text + asked,
    {
      ...details,
      ...(status >= 400 && kind !== 'unavailable' && { error }),
      hint: kind === 'unauthorized' ? client.access.tokenHint : hint,
      retryAfterMs,
    },
  )
  return { effect: 'refused', error: refusal }
}

/** Seconds or a date (RFC 9110, 10.2.3), which is of the clock of the service. */
function delayIn({ date = '', 'retry-after': text = '' }: IncomingHttpHeaders): number | undefined {
  if (/^\d+$/.test(text)) return Number(text) * 1000
  const delayMs = Date.parse(text) - (Date.parse(date) || Date.now())
  return delayMs > 0 ? delayMs : undefined
}

/** A request that only reads leaves nothing open. */
function lost(
  { method }: HttpRequest,
  kind: ErrorKind,
  message: string,
  details: Pick<PlantsError, 'status' | 'requestId' | 'cause'>,
): Failure {
  if (method !== 'GET')
    return { effect: 'maybe-done', error: new PlantsError(kind, message, details) }
  const hint = 'Try again later'
  return { effect: 'refused', error: new PlantsError('unavailable', message, { ...details, hint }) }
}

function contentOf(
  { address }: HttpClient,
  { expected }: HttpRequest,
  { status, headers, body, isCut }: HttpResponse,
): string {
  const target =
    headers.location === undefined ? undefined : urlOf(headers.location, address.url.href)
  // User information and query may hold secrets.
  if (target && status >= 300 && status < 400)
    return `, and redirects to ${excerpt(target.origin + target.pathname)}`
  if (body.length === 0) return ' with nothing'
  if (isCut) return ' with more than 16 MiB'
  const text = body.toString('utf8', 0, 1000)
  if (status !== 200) return `: ${excerpt(text)}`
  const type = headers['content-type'] ?? ''
  if (isJsonType(type)) return ` with no ${expected.what}: ${excerpt(text)}`
  const [mediaType] = type.split(';')
  return ` with ${excerpt(`${mediaType || 'no Content-Type'}, not application/json: ${text}`)}`
}

interface Reason {
  /** By default, that of Node. */
  text?: string
  hint?: string
  /** Whether the same request may reach the service a moment later. */
  isTransient?: boolean
}

const slow: Reason = {
  text: 'it timed out',
  hint: 'Check the address and the network, or wait longer with --timeout 2m',
  isTransient: true,
}
const closed: Reason = {
  text: 'the connection was closed',
  hint: 'Is this the right port, and http or https?',
  isTransient: true,
}
const noTls: Reason = {
  text: 'the TLS handshake failed',
  hint: 'Try http:// for a service on this machine',
}
const untrusted: Reason = {
  hint: 'If you trust its issuer, give the certificate of the issuer with --ca-cert FILE',
}
const unreachable: Reason = { hint: 'Check the address and the network', isTransient: true }

/** By the code of an error of the system, of Node or of OpenSSL; that of a proxy has none. */
const reasons: Readonly<Record<string, Reason>> = {
  ECONNREFUSED: {
    text: 'the connection was refused',
    hint: 'Is it running? Try: plants serve',
    isTransient: true,
  },
  ENOTFOUND: { text: 'the host is unknown', hint: 'Check the address for typing errors' },
  ...{ ETIMEDOUT: slow, TIMEOUT: slow, ECONNRESET: closed, EPIPE: closed },
  ...{ EAI_AGAIN: unreachable, EHOSTUNREACH: unreachable, ENETUNREACH: unreachable },
  '': unreachable,
  ...{ EPROTO: noTls, ERR_SSL_WRONG_VERSION_NUMBER: noTls },
  ...{ DEPTH_ZERO_SELF_SIGNED_CERT: untrusted, SELF_SIGNED_CERT_IN_CHAIN: untrusted },
  ...{ UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted, UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted },
}

const proxyHint = 'Check HTTPS_PROXY or HTTP_PROXY, or bypass the proxy with NO_PROXY'
const otherHint = 'Check the address and the certificate of the service'

function withoutResponse(
  { address, access }: HttpClient,
  request: HttpRequest,
  { cause, isSent }: NoResponse,
): Failure {
  const code = codeOf(cause)
  const { text = reasonOf(cause), hint = otherHint, isTransient = false } = reasons[code] ?? {}
  if (isSent && code.startsWith('HPE_'))
    return lost(request, 'unusable', `${address.name} did not answer with HTTP/1.1`, { cause })
  if (isSent) {
    const message = `${address.name} received the request, but did not answer: ${text}`
    return lost(request, 'unanswered', message, { cause })
  }
  if (cause instanceof PlantsError) return { effect: 'not-sent', error: cause }
  const way = access.proxy ? ` through the proxy ${new URL(access.proxy).host}` : ''
  const message = `Could not reach ${address.name}${way}: ${text}`
  const details = { hint: isTransient && access.proxy ? proxyHint : hint, cause }
  const kind = isTransient ? 'unavailable' : 'inaccessible'
  return { effect: 'not-sent', error: new PlantsError(kind, message, details) }
}

function codeOf(cause: unknown): string {
  return systemCode(cause) ?? (isTimeout(cause) ? 'TIMEOUT' : '')
}
