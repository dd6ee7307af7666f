import { isTimeout } from '../../platform/clock.js'
import { PlantsError, systemCode } from '../../platform/errors.js'
import type { HttpClient, HttpRequest, NoResponse } from './client.js'

export interface Failure {
  /**
   * "retry": nothing was stored, and the same request may succeed later. "unknown": the service may have processed the request, and only
   * a repetition can settle that. The others are final: "conflict": another plant has the id. "rejected": the service rejects this plant.
   * "unauthorized": it rejects the token. "incompatible": it does not follow the specification.
   */
  outcome: 'retry' | 'unknown' | 'conflict' | 'rejected' | 'unauthorized' | 'incompatible'
  error: PlantsError
  reason?: 'overload' | 'refused'
  /** `Retry-After`, in milliseconds */
  retryAfter?: number
}

export type RequestResult<T> = Failure | { outcome: 'done'; value: T }

export function classifyFailure(client: HttpClient, { sends }: HttpRequest<unknown>, { cause, isSent }: NoResponse): Failure {
  if (isSent) return { outcome: 'unknown', error: unanswered(client, cause, sends) }
  const error = unreached(client, cause)
  const code = codeOf(cause)
  if (code === 'ENOTFOUND' || isTls(code)) return { outcome: 'incompatible', error } // a retry would fail in the same way
  const isRefused = code === 'ECONNREFUSED' || code === 'ENOENT' // nothing listens at the address
  return { outcome: 'retry', error, ...(isRefused && { reason: 'refused' }) }
}

function unreached({ address: { name, url, socketPath }, access }: HttpClient, cause: unknown): PlantsError {
  if (cause instanceof PlantsError) return new PlantsError('unavailable', cause.message, { hint: cause.hint, retryable: true, cause })
  const proxy = access.proxy === undefined ? undefined : new URL(access.proxy)
  const code = codeOf(cause)
  const tls = isTls(code) ? tlsReason(code, textOf(cause), access.ca !== undefined) : undefined
  const [reason, hint] = reasons[code] ?? tls ?? [textOf(cause), checkAddress]
  const where = socketPath ?? proxy?.hostname ?? url.hostname
  return new PlantsError(
    'unavailable',
    `Could not reach ${name}${proxy ? ` through the proxy ${proxy.host}` : ''}: ${reason.replace('HOST', where)}`,
    {
      hint: proxy && !tls ? 'Check HTTPS_PROXY or HTTP_PROXY, or bypass the proxy with NO_PROXY' : hint,
      retryable: true,
      cause,
    },
  )
}

function unanswered({ address: { name, url } }: HttpClient, cause: unknown, what: string): PlantsError {
  const code = codeOf(cause)
  if (code.startsWith('HPE_')) {
    const guess = url.protocol === 'http:' ? '. If it uses TLS, use https://' : ''
    return new PlantsError('unusable', `${name} did not answer with HTTP/1.1${guess}`, { cause })
  }
  const isReset = code === 'ECONNRESET' && cause instanceof Error && 'syscall' in cause // otherwise Node uses this code for a connection that was closed
  const ending = isReset ? 'the connection was reset' : (endings[code] ?? textOf(cause))
  return new PlantsError('unanswered', `${name} received ${what}, but did not answer: ${ending}`, { cause })
}

type Explained = [reason: string, hint: string]

const checkAddress = 'Check the address and the network'
const noSocket = 'there is no socket at HOST'
const noRoute: Explained = ['there is no route to HOST', checkAddress]
const slow: Explained = ['the connection timed out', `${checkAddress}, or wait longer with --timeout 2m`]

const reasons: Record<string, Explained> = {
  ECONNREFUSED: ['the connection was refused', 'Is it running? Try: plants serve'],
  ENOENT: [noSocket, 'Is it running? Try: plants serve --socket PATH'],
  ENOTDIR: [noSocket, 'Use the path of the socket of a running service'],
  ENOTSOCK: [noSocket, 'Use the path of the socket of a running service'],
  EACCES: ['permission denied for HOST', 'Change the permissions of the socket'],
  ENOTFOUND: ['the host HOST is unknown', 'Check the address for typing errors'],
  EAI_AGAIN: ['the host HOST could not be resolved', 'Check the network'],
  EHOSTUNREACH: noRoute,
  ENETUNREACH: noRoute,
  EADDRNOTAVAIL: noRoute,
  ETIMEDOUT: slow,
  TIMEOUT: slow,
  ECONNRESET: ['the connection was reset', 'Is this the right port? Try http:// instead of https://, or the other way round'],
}

const endings: Record<string, string> = {
  ECONNRESET: 'the connection was closed',
  EPIPE: 'the connection was closed',
  TIMEOUT: 'the request timed out',
}

function isTls(code: string): boolean {
  return /CERT|SSL|TLS|EPROTO|SIGNATURE|ISSUER|INVALID_|PATH_LENGTH|CRL|HOSTNAME/.test(code)
}

function tlsReason(code: string, text: string, hasOwnTrust: boolean): Explained {
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return ['TLS failed: its certificate is for another name', 'Check the address']
  if (/EXPIRED|NOT_YET_VALID/.test(code))
    return ['TLS failed: its certificate has expired or is not yet valid', 'Check the clock, or ask its operator']
  if (/SELF_SIGNED|VERIFY|ISSUER/.test(code)) {
    return hasOwnTrust
      ? ['TLS failed: its certificate is not signed by a certificate given with --ca-cert', 'Use the one that signed it']
      : ['TLS failed: its certificate is not trusted (unknown issuer)', 'If you trust the issuer, give its certificate with --ca-cert FILE']
  }
  if (/wrong version number|packet length too long|http request/.test(text))
    return ['TLS failed: the server does not use TLS', 'Try http:// for a service on this machine']
  const reason = /SSL routines:[^:]*:([^:]+)/.exec(text)?.[1] ?? text
  return [`TLS failed: ${reason}`, 'Does it speak TLS at all? Try http:// for a service on this machine']
}

function codeOf(cause: unknown): string {
  if (cause instanceof AggregateError) return codeOf(cause.errors.at(-1)) // one error for each address of a host
  return systemCode(cause) ?? (isTimeout(cause) ? 'TIMEOUT' : '')
}

function textOf(cause: unknown): string {
  return cause instanceof Error ? (cause.message.split('\n', 1)[0] ?? '') : String(cause)
}
