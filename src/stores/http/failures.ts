import { textsInWords } from '../../plant/fields.js'
import { isTimeout } from '../../platform/clock.js'
import { type ErrorType, malformed, PlantsError, reasonOf, systemCode } from '../../platform/errors.js'
import { defaultRights, rights } from '../common/store.js'
import type { HttpClient, HttpRequest, HttpResponse, NoResponse } from './http-client.js'
import { errorIn, excerpt } from './plant-request.js'

type Details = ConstructorParameters<typeof PlantsError>[2]

/** What the request expects, or why it is not there. */
export function resultOf<T>(
  client: HttpClient,
  request: HttpRequest<T>,
  response: HttpResponse | NoResponse,
): T | PlantsError {
  if ('cause' in response) return noResponseError(client, request, response)
  const value = response.status === 200 ? request.expected.read(response) : undefined
  return value ?? responseError(client, request, response)
}

/** Whether the service may have processed a request, so that only a repetition can settle that. */
export function isLost({ isOutcomeUnknown, status }: PlantsError): boolean {
  return isOutcomeUnknown && (status === undefined || status >= 500)
}

/** Whether the service rejects this plant, or does not have it. Other errors would concern any plant. */
export function isOfPlant({ type, status = 0 }: PlantsError): boolean {
  return type === 'conflict' || type === 'notFound' || (type === 'rejected' && [400, 413, 422].includes(status))
}

/** @param operation such as "GET /plants/{id}" */
export function unsupportedError(operation: string): PlantsError {
  const message = `This service does not offer this: its openapi.json lists no ${operation}`
  return malformed(message, 'Run the command on the host of the service, or select another store with --store')
}

type Meaning = [type: ErrorType, hint?: string]

const source = 'This message is from NAME'
const redirects = 'Redirects are not followed, because the token is only for this address'
const moved: Meaning = ['unavailable', `${redirects}. If the new address is right, use it with --store`]
const wrongAddress: Meaning = ['rejected', 'Is the address right? It is the base URL: the part before /plants']
const later: Meaning = ['unavailable', 'Nothing was stored. Try again later']

/** by status, or by one of `valuesOf400` */
const meanings: Record<number, Meaning> = {
  ...{ 301: moved, 302: moved, 307: moved, 308: moved },
  ...{ 401: ['unauthorized'], 403: ['unauthorized'] },
  ...{ 404: wrongAddress, 405: wrongAddress },
  409: ['conflict', 'Choose another id; to repeat an earlier create safely, use the same --idempotency-key for both'],
  413: ['rejected', `Shorten the ${textsInWords}`],
  ...{ 429: later, 503: later },
}

/** The values of `error` in a 400 response that mean something. A service may use any others. */
const valuesOf400 = [401, 403, 409, 413]

function meaningOf(status: number, error: number): Meaning {
  const known = meanings[status === 400 && valuesOf400.includes(error) ? error : status]
  return known ?? (status < 400 || status >= 500 ? ['unusable'] : ['rejected', source])
}

function responseError(client: HttpClient, request: HttpRequest<unknown>, response: HttpResponse): PlantsError {
  const { name } = client.address
  const { status, headers } = response
  const { error = status, message } = errorIn(response) ?? {}
  const id = String(headers['request-id'] ?? headers['x-request-id'] ?? '')
  const details = { status, requestId: /^[\x21-\x7e]{1,200}$/.test(id) ? id : undefined }
  if (request.isOfOnePlant && status === 404 && error === 404 && message !== undefined)
    return new PlantsError('notFound', message, details)
  const [type, hint] = meaningOf(status, error)
  const text = message ?? `${name} answered ${status}${contentOf(response, request.expected.what)}`
  const words = type === 'unusable' && message !== undefined ? `${name} failed: ${message}` : text
  if (status >= 500 && type === 'unusable') return lostError(request, type, words, details)
  const retryable = meanings[status] === later
  const seconds = headers['retry-after']?.trim() ?? '' // a date counts as none
  return new PlantsError(type, words, {
    ...details,
    ...(status >= 400 && !retryable && { error }),
    hint: type === 'unauthorized' ? rightsHint(client, response) : hint?.replace('NAME', name),
    retryable,
    retryAfter: /^\d+$/.test(seconds) ? parseFloat(seconds) * 1000 : undefined,
  })
}

/** The outcome of a request that changes nothing is known even without a response. */
function lostError({ method }: HttpRequest<unknown>, type: ErrorType, message: string, details: Details): PlantsError {
  if (method !== 'GET') return new PlantsError(type, message, details)
  return new PlantsError('unavailable', message, { ...details, hint: 'Try again later', retryable: true })
}

function contentOf({ status, headers, body, maxBody }: HttpResponse, expected: string): string {
  if (status >= 300 && status < 400 && headers.location !== undefined)
    return `, and redirects to ${excerpt(headers.location)}`
  if (body.length === 0) return ' with nothing'
  if (body.length > maxBody) return ` with more than ${maxBody / 1_048_576} MiB`
  if (headers['content-encoding'] !== undefined) return ' with a compressed body'
  return `${status === 200 ? ` with no ${expected}` : ''}: ${excerpt(body.toString('utf8', 0, 1000))}`
}

/** Of RFC 6750, 3.1: the token is accepted, but has other rights. */
export function lacksRight({ headers }: HttpResponse): boolean {
  return /\binsufficient_scope\b/.test(headers['www-authenticate'] ?? '')
}

function rightsHint({ access, address, options }: HttpClient, response: HttpResponse): string {
  if (!lacksRight(response)) return access.tokenHint
  const missing = rights.find((right) => response.headers['www-authenticate']?.includes(`scope="${right}"`))
  if (missing === undefined) return source.replace('NAME', address.name)
  const wanted = [missing, ...defaultRights, ...(options.needs ?? [])]
  const allowed = rights.filter((right) => wanted.includes(right))
  return `Ask the operator of the service for these rights: plants tokens create --allow ${allowed.join()}`
}

interface Reason {
  /** by default, Node's own; HOST is the host or the socket */
  text?: string
  /** PORT is the port */
  hint: string
  /** because it may pass */
  isRetried?: true
}

const checkAddress = 'Check the address and the network'
const refused = 'Is it running? Try: plants serve'
const closed: Reason = {
  text: 'the connection was closed',
  hint: 'Is this the right port? Try http:// instead of https://, or the other way round',
  isRetried: true,
}
const slow: Reason = {
  text: 'it timed out',
  hint: `${checkAddress}, or wait longer with --timeout 2m`,
  isRetried: true,
}
const network: Reason = { hint: checkAddress, isRetried: true }
const noTls: Reason = { text: 'the TLS handshake failed', hint: 'Try http:// for a service on this machine' }
const untrusted: Reason = { hint: 'If you trust its issuer, give the certificate of the issuer with --ca-cert FILE' }

/** by the code of an error of the system, of Node or of OpenSSL */
const reasons: Record<string, Reason> = {
  ECONNREFUSED: { text: 'the connection was refused', hint: `${refused} --port PORT`, isRetried: true },
  ENOENT: { text: 'there is no socket at HOST', hint: `${refused} --socket PATH`, isRetried: true },
  EACCES: { text: 'permission denied for HOST', hint: 'Ask its owner to add you to the group of the socket' },
  ENOTFOUND: { text: 'the host HOST is unknown', hint: 'Check the address for typing errors' },
  EAI_AGAIN: { text: 'the host HOST could not be resolved', hint: 'Check the network', isRetried: true },
  ...{ ETIMEDOUT: slow, TIMEOUT: slow, ECONNRESET: closed, EPIPE: closed },
  ...{ EHOSTUNREACH: network, ENETUNREACH: network, EHOSTDOWN: network, ENETDOWN: network },
  ...{ EPROTO: noTls, ERR_SSL_WRONG_VERSION_NUMBER: noTls },
  ...{ DEPTH_ZERO_SELF_SIGNED_CERT: untrusted, SELF_SIGNED_CERT_IN_CHAIN: untrusted },
  ...{ UNABLE_TO_GET_ISSUER_CERT: untrusted, UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted },
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID: { hint: 'Check the address' },
}
const other: Reason = { hint: 'Check the address, the clock, and the certificate of the service' }
/** of an error without a code */
const ofProxy: Reason = { hint: 'Check HTTPS_PROXY or HTTP_PROXY, or bypass the proxy with NO_PROXY', isRetried: true }

function noResponseError(
  { address, access }: HttpClient,
  request: HttpRequest<unknown>,
  { cause, isSent }: NoResponse,
): PlantsError {
  const { name, url, socketPath } = address
  const code = codeOf(cause)
  const proxy = access.proxy === undefined ? undefined : new URL(access.proxy)
  const reason = reasons[code] ?? (proxy && code === '' ? ofProxy : other)
  const text = reason.text?.replace('HOST', socketPath ?? proxy?.hostname ?? url.hostname) ?? reasonOf(cause)
  if (isSent) {
    if (code.startsWith('HPE_'))
      return lostError(request, 'unusable', `${name} did not answer with HTTP/1.1`, { cause })
    return lostError(request, 'unanswered', `${name} received the request, but did not answer: ${text}`, { cause })
  }
  if (cause instanceof PlantsError) return new PlantsError('unavailable', cause.message, { hint: cause.hint, cause })
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  const { hint } = proxy && reason.isRetried ? ofProxy : reason
  const message = `Could not reach ${name}${proxy ? ` through the proxy ${proxy.host}` : ''}: ${text}`
  return new PlantsError('unavailable', message, {
    hint: hint.replace('PORT', port),
    retryable: reason.isRetried === true,
    cause,
  })
}

function codeOf(cause: unknown): string {
  if (cause instanceof AggregateError) return codeOf(cause.errors.at(-1)) // one error for each address of a host
  return systemCode(cause) ?? (isTimeout(cause) ? 'TIMEOUT' : '')
}
