import { textsInWords } from '../../plant/fields.js'
import { isTimeout } from '../../platform/clock.js'
import { type ErrorType, PlantsError, reasonOf, shellWord, systemCode } from '../../platform/errors.js'
import type { RemoteAddress } from '../common/address.js'
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

export class RequestError extends PlantsError {
  readonly consequence: Consequence
  /** `Retry-After`, in milliseconds */
  readonly retryAfter: number

  constructor(
    consequence: Consequence,
    type: ErrorType,
    message: string,
    { retryAfter = 0, ...details }: ConstructorParameters<typeof PlantsError>[2] & { retryAfter?: number } = {},
  ) {
    super(type, message, details)
    this.consequence = consequence
    this.retryAfter = retryAfter
  }

  get isTransient(): boolean {
    return this.consequence === 'retry' || this.consequence === 'unknown'
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

interface Meaning {
  consequence: Consequence
  type: ErrorType
  hint?: string | ((client: HttpClient, response: HttpResponse) => string)
}

const later: Meaning = { consequence: 'retry', type: 'unavailable', hint: 'Nothing was stored. Try again later' }
const moved: Meaning = {
  consequence: 'fatal',
  type: 'unavailable',
  hint: 'Redirects are not followed, because the token is only for this address. If the new address is right, use it with --store',
}
const unauthorized: Meaning = { consequence: 'fatal', type: 'unauthorized', hint: rightsHint }
const wrongAddress: Meaning = { consequence: 'fatal', type: 'rejected', hint: ({ address }) => addressHint(address) }
const wrongRequest: Meaning = { consequence: 'fatal', type: 'rejected', hint: sourceHint }
const wrongPlant: Meaning = { ...wrongRequest, consequence: 'rejected' }
const tooLarge: Meaning = { ...wrongPlant, hint: `Shorten the ${textsInWords}` }
const conflict: Meaning = {
  consequence: 'rejected',
  type: 'conflict',
  hint: 'Choose another id; to repeat an earlier create safely, use the same --idempotency-key for both',
}
const unusable: Meaning = { consequence: 'fatal', type: 'unusable' }
const failed: Meaning = { consequence: 'unknown', type: 'unusable' }

const byStatus: Record<number, Meaning> = {
  ...{ 301: moved, 302: moved, 307: moved, 308: moved },
  ...{ 401: unauthorized, 403: unauthorized, 404: wrongAddress, 405: wrongAddress },
  ...{ 400: wrongPlant, 409: conflict, 413: tooLarge, 422: wrongPlant },
  ...{ 429: later, 503: later },
}

/** By the `error` of a 400 response. A service may use any other value, which says nothing. */
const byError: Record<number, Meaning> = { 401: unauthorized, 403: unauthorized, 409: conflict, 413: tooLarge }

function meaningOf(status: number, error: number): Meaning {
  const known = (status === 400 && byError[error]) || byStatus[status]
  return known ?? (status < 400 ? unusable : status < 500 ? wrongRequest : failed)
}

function responseError(client: HttpClient, request: HttpRequest<unknown>, response: HttpResponse): RequestError {
  const { status, headers } = response
  const { error = status, message } = errorIn(response) ?? {}
  const requestId = requestIdOf(headers)
  if (request.isOfOnePlant && status === 404 && error === 404 && message !== undefined)
    return new RequestError('rejected', 'notFound', message, { status, requestId })
  const { consequence, type, hint } = meaningOf(status, error)
  const text = messageOf(type, response, client.address.name, request.expected.what)
  if (consequence === 'unknown') return lostError(request, type, text, { status, requestId })
  const seconds = headers['retry-after']?.trim() ?? '' // a date counts as none
  return new RequestError(consequence, type, text, {
    status,
    requestId,
    ...(status >= 400 && consequence !== 'retry' && { error }),
    hint: typeof hint === 'function' ? hint(client, response) : hint,
    retryable: consequence === 'retry',
    retryAfter: /^\d+$/.test(seconds) ? parseFloat(seconds) * 1000 : 0,
  })
}

type Details = ConstructorParameters<typeof RequestError>[3]

/** The outcome of a request that changes nothing is known even without a response. */
function lostError({ method }: HttpRequest<unknown>, type: ErrorType, message: string, details: Details): RequestError {
  if (method !== 'GET') return new RequestError('unknown', type, message, details)
  return new RequestError('retry', 'unavailable', message, { ...details, hint: 'Try again later', retryable: true })
}

function messageOf(type: ErrorType, response: HttpResponse, name: string, expected: string): string {
  const { status, headers, body, maxBody } = response
  const answered = `${name} answered ${status}`
  if (status >= 300 && status < 400 && headers.location !== undefined)
    return `${answered}, and redirects to ${excerpt(headers.location)}`
  const message = errorIn(response)?.message
  if (message !== undefined) return type === 'unusable' ? `${name} failed: ${message}` : message
  if (body.length === 0) return `${answered} with nothing`
  if (body.length > maxBody) return `${answered} with more than ${maxBody / 1_048_576} MiB`
  if (headers['content-encoding'] !== undefined) return `${answered} with a compressed body`
  const text = excerpt(body.toString('utf8', 0, 1000))
  return status === 200 ? `${answered} with no ${expected}: ${text}` : `${answered}: ${text}`
}

function addressHint({ name, url }: RemoteAddress): string {
  const question = 'Is the address right? It is the base URL: the part before /plants'
  return url.pathname.endsWith('/plants')
    ? `${question}. Try: --store ${shellWord(name.replace(/:?\/plants$/, ''))}`
    : question
}

function sourceHint({ address }: HttpClient): string {
  return `This message is from ${address.name}`
}

function rightsHint(client: HttpClient, { headers }: HttpResponse): string {
  // RFC 6750, 3.1
  const challenge = /\binsufficient_scope\b(?:.*\bscope="(?<scope>\w+)")?/.exec(headers['www-authenticate'] ?? '')
  const scope = challenge?.groups?.['scope']
  if (challenge && scope === undefined) return sourceHint(client)
  if (!rights.some((right) => right === scope)) return client.access.tokenHint
  const wanted = [scope, ...defaultRights, ...(client.options.needs ?? [])]
  const allowed = rights.filter((right) => wanted.includes(right))
  return `Ask the operator of the service for these rights: plants tokens create --allow ${allowed.join()}`
}

function requestIdOf(headers: HttpResponse['headers']): string | undefined {
  const id = String(headers['request-id'] ?? headers['x-request-id'] ?? '')
  return /^[\x21-\x7e]{1,200}$/.test(id) ? id : undefined
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
  if (cause instanceof PlantsError && !isSent)
    return new RequestError('fatal', 'unavailable', cause.message, { hint: cause.hint, retryable: true, cause })
  const code = codeOf(cause)
  const proxy = access.proxy === undefined ? undefined : new URL(access.proxy)
  const reason = reasons[code] ?? (proxy && code === '' ? ofProxy : other)
  const text = (reason.text ?? reasonOf(cause)).replace('HOST', socketPath ?? proxy?.hostname ?? url.hostname)
  if (isSent && code.startsWith('HPE_'))
    return lostError(request, 'unusable', `${name} did not answer with HTTP/1.1`, { cause })
  if (isSent)
    return lostError(request, 'unanswered', `${name} received the request, but did not answer: ${text}`, { cause })
  const through = proxy ? ` through the proxy ${proxy.host}` : ''
  const { hint } = proxy && reason.isRetried ? ofProxy : reason
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return new RequestError(
    reason.isRetried ? 'retry' : 'fatal',
    'unavailable',
    `Could not reach ${name}${through}: ${text}`,
    {
      hint: hint.replace('PORT', port),
      retryable: true,
      cause,
    },
  )
}

function codeOf(cause: unknown): string {
  if (cause instanceof AggregateError) return codeOf(cause.errors.at(-1)) // one error for each address of a host
  return systemCode(cause) ?? (isTimeout(cause) ? 'TIMEOUT' : '')
}
