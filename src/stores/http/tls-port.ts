/*
 * Plain http that was sent to a port that speaks TLS, as with `http://` in place of `https://`.
 *
 * Servers tell it in three ways. Caddy and nginx answer 400, in text or HTML; others send an alert
 * of TLS (RFC 8446, 6.2). Both are answers to a request that was not understood, so nothing was
 * stored. What uses OpenSSL closes the connection without a byte, as a service does that fails
 * after it has stored a plant; what a port that speaks TLS has done then is unknown.
 */

import { once } from 'node:events'
import { isIP } from 'node:net'
import { PlantsError, systemCode } from '../../errors.js'
import { within } from '../../platform/runtime.js'
import type { HttpAddress } from '../address.js'
import { formatWithScheme } from './address.js'

/** Longer than a handshake takes on any network that is in use. */
const handshakeTimeoutMs = 1000

export function createTlsPortError(address: HttpAddress, cause: unknown): PlantsError {
  const message = `The port of ${address.name} speaks TLS, not plain HTTP`
  const hint = `Try ${formatWithScheme(address, 'https:')}`
  return new PlantsError('accessDenied', message, { hint, cause })
}

/** Whether Node's HTTP parser failed because of an alert: a record of type 21, of version 3.x. */
export function isTlsAlert(error: unknown): boolean {
  if (!(error instanceof Error) || !('rawPacket' in error)) return false
  const { rawPacket } = error
  return rawPacket instanceof Uint8Array && rawPacket[0] === 0x15 && rawPacket[1] === 0x03
}

/** Whether a port speaks TLS. Nothing but a hello is sent. */
export async function speaksTls(
  { hostname, port }: Pick<URL, 'hostname' | 'port'>,
  signal: AbortSignal,
): Promise<boolean> {
  const { connect } = await import('node:tls')
  const servername = isIP(hostname) ? '' : hostname
  const options = { host: hostname, port: Number(port || 80), servername }
  const socket = connect({ ...options, rejectUnauthorized: false })
  try {
    await within(handshakeTimeoutMs, [signal], (soon) =>
      once(socket, 'secureConnect', { signal: soon }),
    )
    return true
  } catch (error) {
    // An alert is a record of TLS, too: it may ask for another version, or for a certificate.
    return /^ERR_SSL_.*ALERT/.test(systemCode(error) ?? '')
  } finally {
    socket.destroy()
  }
}
