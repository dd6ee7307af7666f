import { textsInWords } from '../../plant/fields.js'
import { isTimeout } from '../../platform/clock.js'
import { type ErrorType, PlantsError, reasonOf, systemCode } from '../../platform/errors.js'
import { defaultRights, rights } from '../common/store.js'
import type { HttpClient, HttpRequest, HttpResponse, NoResponse } from './http-client.js'
import { errorIn, excerpt } from './plant-request.js'

/**
 * What a request that failed means:
 *
 * - `retry`: nothing was stored, and the same request may succeed later.
 * - `unknown`: the service may have processed it, and only a repetition can settle that.
 * - `rejected`: the service rejects this plant, or does not have it.
 * - `fatal`: it would reject any plant, or does not follow the specification.
 */
type Consequence = 'retry' | 'unknown' | 'rejected' | 'fatal'

type Details = ConstructorParameters<typeof PlantsError>[2] & {
  /** `Retry-After`, in milliseconds */
  retryAfter?: number
}

export class RequestError extends PlantsError {
  readonly consequence: Consequence
  readonly retryAfter: number

  constructor(consequence: Consequence, type: ErrorType, message: string, { retryAfter = 0, ...details }: Details) {
    super(type, message, { retryable: consequence === 'retry', ...details })
    this.consequence = consequence
    this.retryAfter = retryAfter
  }
}

/** @throws {RequestError} unless it is what the request expects */
export function expectedValue<T>(client: HttpClient, request: HttpRequest<T>, response: HttpResponse | NoResponse): T {
  if ('cause' in response) throw noResponseError(client, request, response)
  const value = response.status === 200 ? request.expected.read(response) : undefined
  if (value === undefined) throw responseError(client, request, response)
  return value
}

/** @param operation such as "GET /plants/{id}" */
export function unsupportedError(operation: string): RequestError {
  const message = `This service does not offer this: its openapi.json lists no ${operation}`
  const hint = 'Run the command on the host of the service, or select another store with --store'
  return new RequestError('fatal', 'malformed', message, { hint })
}

type Meaning = [consequence: Consequence, type: ErrorType, hint?: string]

const source = 'This message is from NAME'
const otherId = 'Choose another id; to repeat an earlier create safely, use the same --idempotency-key for both'
const redirects = 'Redirects are not followed, because the token is only for this address'
const moved: Meaning = ['fatal', 'unavailable', `${redirects}. If the new address is right, use it with --store`]
const unauthorized: Meaning = ['fatal', 'unauthorized']
const question = 'Is the address right? It is the base URL: the part before /plants'
const wrongAddress: Meaning = ['fatal', 'rejected', question]
const wrongPlant: Meaning = ['rejected', 'rejected', source]
const later: Meaning = ['retry', 'unavailable', 'Nothing was stored. Try again later']

/** by status, or by one of `valuesOf400` */
const meanings: Record<number, Meaning> = {
  ...{ 301: moved, 302: moved, 307: moved, 308: moved },
  ...{ 401: unauthorized, 403: unauthorized },
  ...{ 404: wrongAddress, 405: wrongAddress },
  ...{ 400: wrongPlant, 422: wrongPlant },
  409: ['rejected', 'conflict', otherId],
  413: ['rejected', 'rejected', `Shorten the ${textsInWords}`],
  ...{ 429: later, 503: later },
}

/** The values of `error` in a 400 response that mean something. A service may use any others. */
const valuesOf400 = [401, 403, 409, 413]

function meaningOf(status: number, error: number): Meaning {
  const known = meanings[status === 400 && valuesOf400.includes(error) ? error : status]
  if (known) return known
  if (status < 400) return ['fatal', 'unusable']
  return status < 500 ? ['fatal', 'rejected', source] : ['unknown', 'unusable']
}

function responseError(client: HttpClient, request: HttpRequest<unknown>, response: HttpResponse): RequestError {
  const { name } = client.address
  const { status, headers } = response
  const { error = status, message } = errorIn(response) ?? {}
  const id = String(headers['request-id'] ?? headers['x-request-id'] ?? '')
  const details = { status, requestId: /^[\x21-\x7e]{1,200}$/.test(id) ? id : undefined }
  if (request.isOfOnePlant && status === 404 && error === 404 && message !== undefined)
    return new RequestError('rejected', 'notFound', message, details)
  const [consequence, type, hint] = meaningOf(status, error)
  const text = message ?? `${name} answered ${status}${contentOf(response, request.expected.what)}`
  const words = type === 'unusable' && message !== undefined ? `${name} failed: ${message}` : text
  if (consequence === 'unknown') return lostError(request, type, words, details)
  const seconds = headers['retry-after']?.trim() ?? '' // a date counts as none
  return new RequestError(consequence, type, words, {
    ...details,
    ...(status >= 400 && consequence !== 'retry' && { error }),
    hint: type === 'unauthorized' ? rightsHint(client, response) : hint?.replace('NAME', name),
    retryAfter: /^\d+$/.test(seconds) ? parseFloat(seconds) * 1000 : 0,
  })
}

/** The outcome of a request that changes nothing is known even without a response. */
function lostError({ method }: HttpRequest<unknown>, type: ErrorType, message: string, details: Details): RequestError {
  if (method !== 'GET') return new RequestError('unknown', type, message, details)
  return new RequestError('retry', 'unavailable', message, { ...details, hint: 'Try again later' })
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
): RequestError {
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
  const details = { cause, retryable: true }
  if (cause instanceof PlantsError)
    return new RequestError('fatal', 'unavailable', cause.message, { ...details, hint: cause.hint })
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  const { hint } = proxy && reason.isRetried ? ofProxy : reason
  const message = `Could not reach ${name}${proxy ? ` through the proxy ${proxy.host}` : ''}: ${text}`
  const consequence = reason.isRetried ? 'retry' : 'fatal'
  return new RequestError(consequence, 'unavailable', message, { ...details, hint: hint.replace('PORT', port) })
}

function codeOf(cause: unknown): string {
  if (cause instanceof AggregateError) return codeOf(cause.errors.at(-1)) // one error for each address of a host
  return systemCode(cause) ?? (isTimeout(cause) ? 'TIMEOUT' : '')
}
