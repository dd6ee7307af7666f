import { textsInWords } from '../../plant/fields.js'
import { isTimeout } from '../../platform/clock.js'
import { type ErrorType, PlantsError, reasonOf, shellWord, systemCode } from '../../platform/errors.js'
import type { RemoteAddress } from '../common/address.js'
import { defaultRights, rights } from '../common/store.js'
import type { HttpClient, HttpRequest, HttpResponse, NoResponse } from './http-client.js'
import { errorIn, isJson, readJson } from './plant-request.js'

export interface Failure {
  /**
   * "retry": nothing was stored, and the same request may succeed later. "unknown": the service may have processed the
   * request, and only a repetition can settle that. The others are final. "rejected": the service rejects this plant,
   * with an error of type `conflict` because of its id. "fatal": it would reject any, or does not follow the
   * specification.
   */
  outcome: 'retry' | 'unknown' | 'rejected' | 'fatal'
  error: PlantsError
  /** whether nothing listens at the address */
  isRefused?: boolean
  /** `Retry-After`, in milliseconds */
  retryAfter?: number
}

export type RequestResult<T> = Failure | { outcome: 'done'; value: T }

export function classify<T>(
  client: HttpClient,
  request: HttpRequest<T>,
  response: HttpResponse | NoResponse,
): RequestResult<T> {
  const result =
    'status' in response ? classifyResponse(client, request, response) : classifyNoResponse(client, response)
  if (result.outcome !== 'unknown' || request.method !== 'GET') return result
  // The outcome of a request that changes nothing is known even without a response.
  const { message, status, requestId, cause } = result.error
  const details = { hint: 'Try again later', retryable: true, status, requestId, cause }
  return { outcome: 'retry', error: new PlantsError('unavailable', message, details) }
}

interface Meaning {
  outcome: Failure['outcome']
  type: ErrorType
  hint?: string | ((client: HttpClient, response: HttpResponse) => string)
}

const later: Meaning = { outcome: 'retry', type: 'unavailable', hint: 'Nothing was stored. Try again later' }
const moved: Meaning = {
  outcome: 'fatal',
  type: 'unavailable',
  hint: 'Redirects are not followed, because the token is only for this address. If the new address is right, use it with --store',
}
const unauthorized: Meaning = { outcome: 'fatal', type: 'unauthorized', hint: rightsHint }
const wrongAddress: Meaning = { outcome: 'fatal', type: 'rejected', hint: ({ address }) => addressHint(address) }
const wrongRequest: Meaning = { outcome: 'fatal', type: 'rejected', hint: sourceHint }

const byStatus: Record<number, Meaning> = {
  ...{ 301: moved, 302: moved, 307: moved, 308: moved },
  ...{ 401: unauthorized, 403: unauthorized },
  ...{ 429: later, 503: later },
}

/** by the `error` of other responses from 400 to 499, or their status if they have none */
const byError: Record<number, Meaning> = {
  ...{ 401: unauthorized, 403: unauthorized },
  ...{ 404: wrongAddress, 405: wrongAddress },
  409: {
    outcome: 'rejected',
    type: 'conflict',
    hint: 'Choose another id; to repeat an earlier create safely, use the same --idempotency-key for both',
  },
  413: { outcome: 'rejected', type: 'rejected', hint: `Shorten the ${textsInWords}` },
  415: wrongRequest,
}

function meaningOf(status: number, error: number): Meaning {
  const known = byStatus[status]
  if (known) return known
  if (status >= 500) return { outcome: 'unknown', type: 'unusable' }
  if (status < 400) return { outcome: 'fatal', type: 'unusable' }
  const isOfPlant = status === 400 || status === 413 || status === 422
  return byError[error] ?? { ...wrongRequest, outcome: isOfPlant ? 'rejected' : 'fatal' }
}

function classifyResponse<T>(
  client: HttpClient,
  { expected }: HttpRequest<T>,
  response: HttpResponse,
): RequestResult<T> {
  const { status, headers } = response
  const error = errorIn(response)?.error ?? status
  const { outcome, type, hint } = meaningOf(status, error)
  const isFinal = outcome === 'rejected' || outcome === 'fatal'
  const value = isFinal ? expected.read(response) : undefined
  if (value !== undefined) return { outcome: 'done', value }
  const failure = new PlantsError(type, messageOf(type, response, client.address.name, expected.what), {
    status,
    requestId: requestIdOf(response),
    ...(status >= 400 && isFinal && { error }),
    hint: typeof hint === 'function' ? hint(client, response) : hint,
    retryable: outcome === 'retry',
  })
  const seconds = headers['retry-after']?.trim() ?? '' // a date counts as none
  return { outcome, error: failure, retryAfter: /^\d+$/.test(seconds) ? parseFloat(seconds) * 1000 : 0 }
}

function messageOf(type: ErrorType, response: HttpResponse, name: string, expected: string): string {
  const { status, headers } = response
  if (status >= 300 && status < 400) {
    const target = headers.location?.slice(0, 300)
    return `${name} answered ${status}${target === undefined ? '' : `, and redirects to ${target}`}`
  }
  const message = errorIn(response)?.message
  if (message === undefined) return `${name} answered ${describe(response, status === 200 ? expected : 'Error')}`
  return type === 'unusable' ? `${name} failed: ${message}` : message
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
  const flag = `--allow ${allowed.join()}`
  return `Ask the operator of the service for these rights: plants tokens create ${flag}, or with a token file plants serve ${flag}`
}

function describe(response: HttpResponse, expected: string): string {
  const { status, headers, body, maxBody } = response
  if (body.length > maxBody) return `${status} with more than ${maxBody / 1_048_576} MiB`
  if (body.length === 0) return `${status} with nothing`
  if (headers['content-encoding'] !== undefined) return `${status} with a compressed body`
  if (readJson(response) !== undefined) return `${status} with JSON that is no ${expected}`
  return `${status} with ${isJson(response) ? 'invalid JSON' : (headers['content-type']?.slice(0, 80) ?? 'no JSON')}`
}

function requestIdOf({ headers }: HttpResponse): string | undefined {
  const id = String(headers['request-id'] ?? headers['x-request-id'] ?? '')
  return /^[\x21-\x7e]{1,200}$/.test(id) ? id : undefined
}

function classifyNoResponse(client: HttpClient, { cause, isSent }: NoResponse): Failure {
  const code = codeOf(cause)
  if (isSent) return { outcome: 'unknown', error: unansweredError(client.address, code, cause) }
  const error = unreachedError(client, code, cause)
  const isFinal = isTls(code) || code === 'ENOTFOUND' || code === 'EACCES'
  return { outcome: isFinal ? 'fatal' : 'retry', error, isRefused: code === 'ECONNREFUSED' || code === 'ENOENT' }
}

function unansweredError({ name }: RemoteAddress, code: string, cause: unknown): PlantsError {
  if (code.startsWith('HPE_')) return new PlantsError('unusable', `${name} did not answer with HTTP/1.1`, { cause })
  // Node also uses ECONNRESET for a connection that was closed, but then without a system call.
  const isReset = code === 'ECONNRESET' && cause instanceof Error && 'syscall' in cause
  const ending = isReset ? 'the connection was reset' : (endings[code] ?? reasonOf(cause))
  return new PlantsError('unanswered', `${name} received the request, but did not answer: ${ending}`, { cause })
}

function unreachedError({ address, access }: HttpClient, code: string, cause: unknown): PlantsError {
  const text = reasonOf(cause)
  if (cause instanceof PlantsError)
    return new PlantsError('unavailable', text, { hint: cause.hint, retryable: true, cause })
  const { name, url, socketPath } = address
  const proxy = access.proxy === undefined ? undefined : new URL(access.proxy)
  const tls = isTls(code) ? tlsReason(code, text, access.ca) : undefined
  const [reason, hint] = tls ?? reasons[code] ?? [text, checkAddress]
  const through = proxy ? ` through the proxy ${proxy.host}` : ''
  const where = socketPath ?? proxy?.hostname ?? url.hostname
  return new PlantsError('unavailable', `Could not reach ${name}${through}: ${reason.replace('HOST', where)}`, {
    hint:
      proxy && !tls
        ? 'Check HTTPS_PROXY or HTTP_PROXY, or bypass the proxy with NO_PROXY'
        : hint.replace('PORT', url.port || (url.protocol === 'https:' ? '443' : '80')),
    retryable: true,
    cause,
  })
}

function isTls(code: string): boolean {
  return /CERT|SSL|TLS|EPROTO|SIGNATURE|ISSUER|INVALID_|PATH_LENGTH|CRL|HOSTNAME/.test(code)
}

type Explained = [reason: string, hint: string]

const checkAddress = 'Check the address and the network'
const slow: Explained = ['the connection timed out', `${checkAddress}, or wait longer with --timeout 2m`]

const reasons: Record<string, Explained> = {
  ECONNREFUSED: ['the connection was refused', 'Is it running? Try: plants serve --port PORT'],
  ENOENT: ['there is no socket at HOST', 'Is it running? Try: plants serve --socket PATH'],
  EACCES: ['permission denied for HOST', 'Ask its owner to add you to the group of the socket'],
  ENOTFOUND: ['the host HOST is unknown', 'Check the address for typing errors'],
  EAI_AGAIN: ['the host HOST could not be resolved', 'Check the network'],
  ETIMEDOUT: slow,
  TIMEOUT: slow,
  ECONNRESET: [
    'the connection was reset',
    'Is this the right port? Try http:// instead of https://, or the other way round',
  ],
}

const endings: Record<string, string> = {
  ECONNRESET: 'the connection was closed',
  EPIPE: 'the connection was closed',
  TIMEOUT: 'the request timed out',
}

const untrusted: Explained = [
  'TLS failed: its certificate is not trusted (unknown issuer)',
  'If you trust the issuer, give its certificate with --ca-cert FILE',
]
const notSigned: Explained = [
  'TLS failed: its certificate is not signed by a certificate given with --ca-cert',
  'Use the one that signed it',
]

function tlsReason(code: string, text: string, ca: string | undefined): Explained {
  if (code.includes('ALTNAME')) return ['TLS failed: its certificate is for another name', 'Check the address']
  if (/SELF_SIGNED|VERIFY|ISSUER/.test(code)) return ca === undefined ? untrusted : notSigned
  if (/wrong version number|packet length too long|http request/.test(text))
    return ['TLS failed: the server does not use TLS', 'Try http:// for a service on this machine']
  const reason = /SSL routines:[^:]*:(?<reason>[^:]+)/.exec(text)?.groups?.['reason'] ?? text
  return [`TLS failed: ${reason}`, 'Check the address, the clock, and the certificate of the service']
}

function codeOf(cause: unknown): string {
  if (cause instanceof AggregateError) return codeOf(cause.errors.at(-1)) // one error for each address of a host
  return systemCode(cause) ?? (isTimeout(cause) ? 'TIMEOUT' : '')
}
