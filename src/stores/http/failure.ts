import { isTimeout } from '../../platform/clock.js'
import { PlantsError, systemCode } from '../../platform/errors.js'
import type { Access } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'

/**
 * The error for a service that could not be reached: names the step that failed before anything was sent.
 *
 * @param access with the proxy in use, if any, and the certificates that are trusted instead of the system's
 */
export function unreached(
  { name, url, socketPath }: RemoteAddress,
  { proxy, ca }: Pick<Access, 'proxy' | 'ca'>,
  cause: unknown,
): PlantsError {
  if (cause instanceof PlantsError) return new PlantsError('unavailable', cause.message, { hint: cause.hint, retryable: true, cause })
  const via = proxy === undefined ? '' : ` through the proxy ${new URL(proxy).host}`
  const code = codeOf(cause)
  const [reason, hint] =
    reasons[code] ?? (isTls(code) ? tlsReason(cause, ca !== undefined) : [textOf(cause), 'Check the address and the network'])
  const where = socketPath ?? (proxy === undefined ? url.hostname : new URL(proxy).hostname)
  return new PlantsError('unavailable', `Could not reach ${name}${via}: ${reason.replace('HOST', where)}`, {
    hint: proxy === undefined || isTls(code) ? hint : 'Check HTTPS_PROXY or HTTP_PROXY, or bypass the proxy with NO_PROXY',
    retryable: true,
    cause,
  })
}

/**
 * The error for a request that was sent, but got no response.
 *
 * @param what the name of what was sent, for the message
 */
export function unanswered({ name, url }: RemoteAddress, cause: unknown, what = 'the plant'): PlantsError {
  const code = codeOf(cause)
  if (code.startsWith('HPE_')) {
    const guess = url.protocol === 'http:' ? '. If it uses TLS, use https://' : ''
    return new PlantsError('unusable', `${name} did not answer with HTTP/1.1${guess}`, { cause })
  }
  const isReset = code === 'ECONNRESET' && cause instanceof Error && 'syscall' in cause // otherwise Node uses this code for a connection that was closed
  const ending = isReset ? 'the connection was reset' : (endings[code] ?? textOf(cause))
  return new PlantsError('unanswered', `${name} received ${what}, but did not answer: ${ending}`, { cause })
}

/** Whether a retry would fail in the same way: the host name is unknown, or TLS fails. */
export function isFinal(cause: unknown): boolean {
  const code = codeOf(cause)
  return code === 'ENOTFOUND' || isTls(code)
}

/** Whether nothing listens at the address. */
export function isRefused(cause: unknown): boolean {
  return ['ECONNREFUSED', 'ENOENT'].includes(codeOf(cause))
}

type Reason = [reason: string, hint: string]

const notRunning: Reason = ['the connection was refused', 'Is it running? Try: plants serve']
const noRoute: Reason = ['there is no route to HOST', 'Check the address and the network']
const slow: Reason = ['the connection timed out', 'Check the address and the network, or wait longer with --timeout 2m']

const reasons: Record<string, Reason> = {
  ECONNREFUSED: notRunning,
  ENOENT: ['there is no socket at HOST', 'Is it running? Try: plants serve --socket PATH'],
  ENOTDIR: ['there is no socket at HOST', 'Use the path of the socket of a running service'],
  ENOTSOCK: ['there is no socket at HOST', 'Use the path of the socket of a running service'],
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

function tlsReason(cause: unknown, hasOwnTrust: boolean): Reason {
  const code = codeOf(cause)
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return ['TLS failed: its certificate is for another name', 'Check the address']
  if (/EXPIRED|NOT_YET_VALID/.test(code))
    return ['TLS failed: its certificate has expired or is not yet valid', 'Check the clock, or ask its operator']
  if (/SELF_SIGNED|VERIFY|ISSUER/.test(code) && hasOwnTrust) {
    return ['TLS failed: its certificate is not signed by a certificate given with --ca-cert', 'Use the one that signed it']
  }
  if (/SELF_SIGNED|VERIFY|ISSUER/.test(code)) {
    return [
      'TLS failed: its certificate is not trusted (unknown issuer)',
      'If you trust the issuer, give its certificate with --ca-cert FILE',
    ]
  }
  if (/wrong version number|packet length too long|http request/.test(textOf(cause))) {
    return ['TLS failed: the server does not use TLS', 'Try http:// for a service on this machine']
  }
  return [
    `TLS failed: ${/SSL routines:[^:]*:([^:]+)/.exec(textOf(cause))?.[1] ?? textOf(cause)}`,
    'Does it speak TLS at all? Try http:// for a service on this machine',
  ]
}

function codeOf(cause: unknown): string {
  if (cause instanceof AggregateError) return codeOf(cause.errors.at(-1)) // one error for each address of a host
  return systemCode(cause) ?? (isTimeout(cause) ? 'TIMEOUT' : '')
}

function textOf(cause: unknown): string {
  return cause instanceof Error ? (cause.message.split('\n', 1)[0] ?? '') : String(cause)
}
