/*
 * Recognizes a port that speaks TLS, after a request in plain HTTP: somebody has written `http://`
 * instead of `https://`.
 *
 * Servers react in three ways. Caddy and nginx answer 400, in text or HTML. Others send a TLS alert
 * (RFC 8446, 6.2). Both show that the request was not understood, so nothing was stored. Servers
 * with OpenSSL close the connection without a byte. A service that fails after it has stored a
 * plant does the same, so then the outcome is unknown.
 */

import { once } from 'node:events'
import { isIP } from 'node:net'
import { getSystemCode, PlantsError } from '../../errors.js'
import { runWithin } from '../../platform/runtime.js'
import type { HttpAddress } from '../address.js'
import { formatWithScheme } from './address.js'

/** A handshake takes less time than this on any usual network. */
const handshakeTimeoutMs = 1000

export function createTlsPortError(address: HttpAddress, cause: unknown): PlantsError {
  const message = `The port of ${address.name} speaks TLS, not plain HTTP`
  const hint = `Try ${formatWithScheme(address, 'https:')}`
  return new PlantsError('accessDenied', message, { hint, cause })
}

/**
 * Returns true if the parser of node:http failed at a TLS alert, which is a record of type 21 and
 * version 3.x.
 */
export function isTlsAlert(error: unknown): boolean {
  if (!(error instanceof Error) || !('rawPacket' in error)) return false
  const { rawPacket } = error
  return rawPacket instanceof Uint8Array && rawPacket[0] === 0x15 && rawPacket[1] === 0x03
}

/** Finds out whether a port speaks TLS by a handshake, without sending any data. */
export async function speaksTls(
  { hostname, port }: Pick<URL, 'hostname' | 'port'>,
  signal: AbortSignal,
): Promise<boolean> {
  const { connect } = await import('node:tls')
  const servername = isIP(hostname) ? '' : hostname
  const options = { host: hostname, port: Number(port || 80), servername }
  const socket = connect({ ...options, rejectUnauthorized: false })
  try {
    await runWithin(handshakeTimeoutMs, [signal], (soon) =>
      once(socket, 'secureConnect', { signal: soon }),
    )
    return true
  } catch (error) {
    // An alert is a record of TLS, too: it may ask for another version, or for a certificate.
    return /^ERR_SSL_.*ALERT/.test(getSystemCode(error) ?? '')
  } finally {
    socket.destroy()
  }
}
