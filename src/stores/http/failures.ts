/*
 * Explains responses without a result: which kind of error a status and an Error mean, and what a
 * response contains that no Plant Store sends. no-response.ts explains requests without a response.
 */
import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders } from 'node:http'
import { type ErrorKind, PlantsError } from '../../errors.js'
import { isJsonType } from '../../plant/json.js'
import { parseUrl } from '../../platform/urls.js'
import type { HttpAddress } from '../address.js'
import { findAddressHint } from './address.js'
import type { HttpClient, HttpRequest, HttpResponse, NoResponse } from './http-client.js'
import {
  createFailureAfterSending,
  createNoResponseFailure,
  describeForwardingProxy,
  type Failure,
  proxyHint,
} from './no-response.js'
import { findCompression, parseError, readJson, truncateToLine } from './plant-request.js'
import type { ResponseShape } from './response-schemas.js'
import { chooseRightHint } from './right-hint.js'

type Result<T> = { value: T } | Failure

export async function interpretResponse<T>(
  client: HttpClient,
  request: HttpRequest<T>,
  response: HttpResponse | NoResponse,
): Promise<Result<T>> {
  if ('cause' in response) return createNoResponseFailure(client, request, response)
  const value = response.status === 200 ? request.expectedValue.read(response) : undefined
  return value === undefined ? createFailure(client, request, response) : { value }
}

/**
 * Returns true for an error that concerns one plant. Other errors concern the service, and so all
 * plants.
 */
export function isPlantFailure({ kind, status = 0 }: PlantsError): boolean {
  if (kind === 'conflict' || kind === 'notFound') return true
  return kind === 'rejected' && [400, 413, 422].includes(status)
}

/** The key is the status of a response, or the `error` of a response with status 400. */
const kindsByStatus: Readonly<Record<number, ErrorKind>> = {
  301: 'accessDenied',
  302: 'accessDenied',
  307: 'accessDenied',
  308: 'accessDenied',
  401: 'unauthorized',
  403: 'forbidden',
  409: 'conflict',
  429: 'unavailable',
  503: 'unavailable',
}

export const baseUrlHint =
  'Check the address: it must be the base URL of a Plant Store, the part before /plants'

const hintsByKind: Partial<Record<ErrorKind, string>> = {
  accessDenied: 'If the new address is right, use it with --store',
  conflict: 'Choose another id',
  unavailable: 'Nothing was stored. Try again later',
  badResponse: baseUrlHint,
}

const missingOperationHint =
  'Check the address: it must be the base URL, the part before /plants. If it is, the service does not offer this'

const tooLargeHint =
  'Shorten the plant, or let the operator of the service, or of a proxy in front of it, raise the limit'

const unreadableHint =
  'Tell the operator that the service, or a proxy in front of it, must send uncompressed JSON in UTF-8'

/** The content of a response without a result. */
interface FailedResponse {
  /** The `error` of the body; the status if the body is no Error. */
  error: number
  /** The message of the Error; undefined if the body is no Error. */
  serviceMessage: string | undefined
  /** Who answered with which status, such as `http://localhost:4010 answered 500`. */
  summary: string
  details: { status: number; requestId: string | undefined }
}

interface Rejection {
  request: HttpRequest
  response: HttpResponse
  failedResponse: FailedResponse
}

async function createFailure(
  client: HttpClient,
  request: HttpRequest,
  response: HttpResponse,
): Promise<Failure> {
  const { status, headers } = response
  const { error = status, message: serviceMessage } = parseError(response) ?? {}
  const requestId = truncateToLine(String(headers['request-id'] ?? '')) || undefined
  const proxyClause = serviceMessage === undefined ? describeForwardingProxy(client) : ''
  const summary = `${client.address.name} answered ${status}${proxyClause}`
  const failedResponse: FailedResponse = {
    error,
    serviceMessage,
    summary,
    details: { status, requestId },
  }
  if (isMissingPlant(request, failedResponse))
    return { error: new PlantsError('notFound', serviceMessage ?? summary, failedResponse.details) }
  const kind = findKind(failedResponse)
  const message =
    describeServiceMessage(kind, failedResponse) ??
    summary + (await describeContent(client, request, response))
  if (kind === 'badResponse' && status >= 500)
    return createFailureAfterSending(
      request,
      kind,
      serviceMessage === undefined ? message : `${summary}: ${serviceMessage}`,
      { ...failedResponse.details, hint: chooseServerErrorHint(client, status) },
    )
  // A read changes nothing, so its outcome cannot be unknown.
  const isRead = kind === 'badResponse' && request.method === 'GET'
  const rejectedKind = isRead ? 'accessDenied' : kind
  const retryAfterMs = parseRetryAfter(headers)
  const rejection = new PlantsError(rejectedKind, message + describeDelay(retryAfterMs), {
    ...failedResponse.details,
    ...(status >= 400 && kind !== 'unavailable' && { error }),
    hint: chooseHint(client, kind, { request, response, failedResponse }),
    retryAfterMs,
  })
  return { error: rejection }
}

/**
 * Returns true for a 404 that says that a plant is missing. On a path without an id, a 404 may say
 * that the service lacks the operation.
 */
function isMissingPlant({ path }: HttpRequest, { error, serviceMessage, details }: FailedResponse) {
  const isNotFound = details.status === 404 && error === 404
  return isNotFound && serviceMessage !== undefined && path.startsWith('/plants/')
}

function findKind({ error, serviceMessage, details: { status } }: FailedResponse): ErrorKind {
  // A 409 without an Error may come from a proxy on the way, so nothing says that the id exists.
  if (status === 409 && serviceMessage === undefined) return 'rejected'
  const isSpecific = status === 400 && [401, 403, 409].includes(error)
  const isRejection = status >= 400 && status < 500
  return kindsByStatus[isSpecific ? error : status] ?? (isRejection ? 'rejected' : 'badResponse')
}

/** A server answers 501 to a method that it does not know, and so is no Plant Store. */
function chooseServerErrorHint({ address }: HttpClient, status: number): string | undefined {
  return status === 501 ? (findAddressHint(address) ?? hintsByKind.badResponse) : undefined
}

function chooseHint(
  client: HttpClient,
  kind: ErrorKind,
  { request, response, failedResponse }: Rejection,
): string | undefined {
  const { address, access } = client
  if (isUnreadable(response)) return unreadableHint
  if (kind === 'unauthorized') return access.tokenHint
  const mayBeOfProxy =
    failedResponse.serviceMessage === undefined && describeForwardingProxy(client) !== ''
  if (kind === 'forbidden') return mayBeOfProxy ? proxyHint : chooseRightHint(request, response)
  return chooseRequestHint(address, kind, { request, response, failedResponse })
}

/** Chooses the hint for a response that is neither about the token nor about its rights. */
function chooseRequestHint(
  address: HttpAddress,
  kind: ErrorKind,
  { request: { method }, response: { status }, failedResponse }: Rejection,
): string {
  const addressHint = findAddressHint(address)
  if (status === 404 || status === 405) return addressHint ?? missingOperationHint
  // At `/plants/plants`, `plants serve` looks for a plant with the id `plants`.
  const mayBeAddress = kind === 'badResponse' || method === 'GET'
  if (mayBeAddress && addressHint !== undefined) return addressHint
  // A read stores nothing, so there is nothing to say about that.
  if (kind === 'unavailable' && method === 'GET') return 'Try again later'
  if (kind === 'rejected' && failedResponse.serviceMessage === undefined)
    return status === 413 && method !== 'GET' ? tooLargeHint : baseUrlHint
  return hintsByKind[kind] ?? `This message is from ${address.name}`
}

/**
 * Returns the message of the service. Unless the message concerns one plant, it begins with the
 * address of the service: a user of several services must know which service rejects the token, or
 * is busy.
 */
function describeServiceMessage(
  kind: ErrorKind,
  { serviceMessage, summary, details: { status } }: FailedResponse,
): string | undefined {
  const concernsPlant = kind === 'conflict' || [400, 409, 413, 422].includes(status)
  const isAboutToken = kind === 'unauthorized' || kind === 'forbidden'
  return serviceMessage !== undefined && (isAboutToken || !concernsPlant)
    ? `${summary}: ${serviceMessage}`
    : serviceMessage
}

function isUnreadable({ status, headers, body }: HttpResponse): boolean {
  if (status !== 200 || !isJsonType(headers['content-type'] ?? '')) return false
  return findCompression(headers) !== undefined || !isUtf8(body)
}

function describeDelay(retryAfterMs: number | undefined): string {
  return retryAfterMs ? ` (Retry-After: ${Math.ceil(retryAfterMs / 1000)} s)` : ''
}

/**
 * Parses Retry-After: seconds, or a date by the clock of the service, which its header Date shows
 * (RFC 9110, 10.2.3).
 */
function parseRetryAfter({
  date = '',
  'retry-after': text = '',
}: IncomingHttpHeaders): number | undefined {
  if (/^\d+$/.test(text)) return Number(text) * 1000
  const delayMs = Date.parse(text) - (Date.parse(date) || Date.now())
  return delayMs > 0 ? delayMs : undefined
}

async function describeContent(
  { address }: HttpClient,
  { expectedValue }: HttpRequest,
  response: HttpResponse,
): Promise<string> {
  const { status, headers, body, isTruncated } = response
  const target =
    headers.location === undefined ? undefined : parseUrl(headers.location, address.url.href)
  // The user information and the query of the new address may be secrets.
  if (target && status >= 300 && status < 400)
    return `, and redirects to ${truncateToLine(target.origin + target.pathname)}`
  if (body.length === 0) return ' with nothing'
  if (isTruncated) return ' with more than 16 MiB'
  const compression = findCompression(headers)
  if (compression !== undefined)
    return ` with a body that is compressed (${truncateToLine(compression)}), which the request did not allow`
  if (isWebPage(response)) return describeWebPage(response)
  const text = truncateToLine(body.toString('utf8', 0, 1000))
  if (status === 200) return `${await explainResult(expectedValue, response)}: ${text}`
  const explanation = status < 400 ? '' : await explainShape('error', response)
  return explanation === '' ? `: ${text}` : ` with no Error${explanation}: ${text}`
}

/** Explains why a response with the status 200 is not the expected value. */
async function explainResult(
  { noun, shape }: HttpRequest['expectedValue'],
  response: HttpResponse,
): Promise<string> {
  const type = response.headers['content-type'] ?? 'no Content-Type'
  if (!isJsonType(type))
    return ` with ${truncateToLine(type.replace(/;.*/, ''))}, not application/json`
  if (!isUtf8(response.body)) return ' with a body that is not UTF-8'
  return ` with no ${noun}${await explainShape(shape, response)}`
}

/** The text of a web page is for a browser, and its markup hides it. */
function isWebPage({ headers }: HttpResponse): boolean {
  return /^(?:text\/html|application\/xhtml\+xml)\b/i.test(headers['content-type'] ?? '')
}

/** The header `Server` says which program has answered, such as the proxy before the service. */
function describeWebPage({ status, headers }: HttpResponse): string {
  const server = truncateToLine(String(headers['server'] ?? ''))
  const serverClause = server === '' ? '' : ` of ${server}`
  if (status !== 200) return ` with a web page${serverClause}`
  return ` with text/html${serverClause}, not application/json`
}

/**
 * Explains in brackets why JSON does not have the shape. Returns an empty string for a body without
 * JSON.
 */
async function explainShape(
  shape: ResponseShape | undefined,
  response: HttpResponse,
): Promise<string> {
  const body = shape && readJson(response, shape)
  if (shape === undefined || body === undefined) return ''
  const { explainResponse } = await import('./explain-response.js')
  const explanation = explainResponse(shape, body)
  return explanation === undefined ? '' : ` (${truncateToLine(explanation)})`
}
