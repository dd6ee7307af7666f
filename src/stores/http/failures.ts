import { type ErrorKind, PlantsError, reasonOf, systemCode } from '../../platform/errors.js'
import { isTimeout } from '../../platform/runtime.js'
import { wrongAddressHint } from '../common/address.js'
import { defaultRights, rights } from '../common/token-store.js'
import type { HttpClient, HttpRequest, HttpResponse, NoResponse } from './http-client.js'
import { errorIn, excerpt } from './plant-request.js'

/** What is retried, as long as it cannot create a second plant: statuses, and codes of errors before a request is sent. */
export const policy = {
  statuses: [429, 503],
  codes: [
    ...['ECONNREFUSED', 'ENOENT', 'EAI_AGAIN', 'ETIMEDOUT', 'TIMEOUT', 'ECONNRESET', 'EPIPE'],
    ...['EHOSTUNREACH', 'ENETUNREACH'],
    '', // of a proxy
  ],
  base: 100,
  max: 2000,
}

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
export function isOfPlant({ kind, status = 0 }: PlantsError): boolean {
  return (
    kind === 'conflict' ||
    kind === 'notFound' ||
    (kind === 'rejected' && [400, 413, 422].includes(status))
  )
}

type Meaning = [kind: ErrorKind, hint?: string | ((name: string) => string)]

const sourceHint = (name: string) => `This message is from ${name}`
const moved: Meaning = [
  'inaccessible',
  'Redirects are not followed, because the token is only for this address. If the new address is right, use it with --store',
]
const wrongAddress: Meaning = ['rejected', wrongAddressHint]
const later: Meaning = ['unavailable', 'Nothing was stored. Try again later']

/** Each by its status, or by one of `valuesOf400`. */
const meanings: Record<number, Meaning> = {
  ...{ 301: moved, 302: moved, 307: moved, 308: moved },
  ...{ 401: ['unauthorized'], 403: ['forbidden'] },
  ...{ 404: wrongAddress, 405: wrongAddress },
  409: [
    'conflict',
    'Choose another id. To repeat a create safely, use the same --idempotency-key for the same plant',
  ],
  413: ['rejected', 'Shorten the name or tag'],
  ...{ 429: later, 503: later },
}

/** The values of `error` in a 400 response that mean something. A service may use any others. */
const valuesOf400 = [401, 403, 409, 413]

function meaningOf(status: number, error: number, isError: boolean): Meaning {
  // Without an Error, a 409 may be of anything on the way to the service: nothing says that the id exists.
  if (status === 409 && !isError) return ['rejected', sourceHint]
  const known = meanings[status === 400 && valuesOf400.includes(error) ? error : status]
  return known ?? (status < 400 || status >= 500 ? ['unusable'] : ['rejected', sourceHint])
}

function responseError(
  client: HttpClient,
  request: HttpRequest<unknown>,
  response: HttpResponse,
): PlantsError {
  const { name } = client.address
  const { status, headers } = response
  const { error = status, message } = errorIn(response) ?? {}
  const id = String(headers['request-id'] ?? headers['x-request-id'] ?? '')
  const details = { status, requestId: /^[\x21-\x7e]{1,200}$/.test(id) ? id : undefined }
  if (request.isOfOnePlant && status === 404 && error === 404 && message !== undefined)
    return new PlantsError('notFound', message, details)
  const [kind, hint] = meaningOf(status, error, message !== undefined)
  const content =
    message === undefined ? contentOf(response, request.expected.what) : `: ${message}`
  const text =
    message === undefined || kind === 'unusable' ? `${name} answered ${status}${content}` : message
  if (status >= 500 && kind === 'unusable') return lostError(request, kind, text, details)
  const seconds = headers['retry-after']?.trim() ?? '' // a date counts as none
  const hintOf = () => {
    if (kind === 'unauthorized' || kind === 'forbidden') return rightsHint(client, response)
    // Another id, or a key, is for a create alone.
    const known = kind === 'conflict' && request.method !== 'POST' ? sourceHint : hint
    return typeof known === 'function' ? known(name) : known
  }
  return new PlantsError(kind, text, {
    ...details,
    ...(status >= 400 && kind !== 'unavailable' && { error }),
    hint: hintOf(),
    retryAfterMs: /^\d+$/.test(seconds) ? parseFloat(seconds) * 1000 : undefined,
  })
}

/** The outcome of a request that changes nothing is known even without a response. */
function lostError(
  { method }: HttpRequest<unknown>,
  kind: ErrorKind,
  message: string,
  details: Details,
): PlantsError {
  if (method !== 'GET') return new PlantsError(kind, message, details)
  return new PlantsError('unavailable', message, { ...details, hint: 'Try again later' })
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
  const missing = rights.find((right) =>
    response.headers['www-authenticate']?.includes(`scope="${right}"`),
  )
  if (missing === undefined) return sourceHint(address.name)
  const wanted = [missing, ...defaultRights, ...(options.needs ?? [])]
  const list = rights.filter((right) => wanted.includes(right)).join()
  return `Ask the operator of the service for these rights: plants tokens create --allow ${list}`
}

type Reason = readonly [hint: string | ((port: string) => string), text?: string]

const slow: Reason = [
  'Check the address and the network, or wait longer with --timeout 2m',
  'it timed out',
]
const closed = [
  'Is this the right port? Try http:// instead of https://, or the other way round',
  'the connection was closed',
] as const
const noTls = ['Try http:// for a service on this machine', 'the TLS handshake failed'] as const
const untrusted: Reason = [
  'If you trust its issuer, give the certificate of the issuer with --ca-cert FILE',
]

/** By the code of an error of the system, of Node or of OpenSSL. By default, the text is Node's own. */
const reasons: Record<string, Reason> = {
  ECONNREFUSED: [
    (port) => `Is it running? Try: plants serve --port ${port}`,
    'the connection was refused',
  ],
  ENOENT: ['Is it running? Try: plants serve --socket PATH', 'there is no such socket'],
  EACCES: ['Ask its owner to add you to the group of the socket', 'permission denied'],
  ENOTFOUND: ['Check the address for typing errors', 'the host is unknown'],
  EAI_AGAIN: ['Check the network', 'the host could not be resolved'],
  ...{ ETIMEDOUT: slow, TIMEOUT: slow, ECONNRESET: closed, EPIPE: closed },
  ...{ EPROTO: noTls, ERR_SSL_WRONG_VERSION_NUMBER: noTls },
  ...{ DEPTH_ZERO_SELF_SIGNED_CERT: untrusted, SELF_SIGNED_CERT_IN_CHAIN: untrusted },
  ...{ UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted, UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted },
  ERR_TLS_CERT_ALTNAME_INVALID: ['Check the address'],
}
const ofNetwork = 'Check the address and the network'
const ofTls = 'Check the address, the runtime, and the certificate of the service'
const ofProxy = 'Check HTTPS_PROXY or HTTP_PROXY, or bypass the proxy with NO_PROXY'

function noResponseError(
  { address, access }: HttpClient,
  request: HttpRequest<unknown>,
  { cause, isSent }: NoResponse,
): PlantsError {
  const { name, url } = address
  const code = codeOf(cause)
  const proxy = access.proxy === undefined ? undefined : new URL(access.proxy)
  const isTransient = policy.codes.includes(code)
  const [hint = isTransient ? ofNetwork : ofTls, reason = reasonOf(cause)] = reasons[code] ?? []
  if (isSent) {
    const isHttp = !code.startsWith('HPE_')
    const what = isHttp
      ? `received the request, but did not answer: ${reason}`
      : 'did not answer with HTTP/1.1'
    return lostError(request, isHttp ? 'unanswered' : 'unusable', `${name} ${what}`, { cause })
  }
  if (cause instanceof PlantsError) return cause
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  const message = `Could not reach ${name}${proxy ? ` through the proxy ${proxy.host}` : ''}: ${reason}`
  const advice =
    proxy && (isTransient || code === 'ENOTFOUND')
      ? ofProxy
      : typeof hint === 'function'
        ? hint(port)
        : hint
  return new PlantsError(isTransient ? 'unavailable' : 'inaccessible', message, {
    hint: advice,
    cause,
  })
}

function codeOf(cause: unknown): string {
  if (cause instanceof AggregateError) return codeOf(cause.errors.at(-1)) // one error for each address of a host
  return systemCode(cause) ?? (isTimeout(cause) ? 'TIMEOUT' : '')
}
