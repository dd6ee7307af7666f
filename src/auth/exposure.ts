import { malformed, unlessSystemError } from '../platform/errors.js'
import { untrustedReason } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { isLoopback } from '../platform/network.js'
import type { PostgresAddress, PostgresHost, RemoteAddress } from '../stores/common/address.js'

type ExposureSettings = { storeName: string | undefined; allowHttp: boolean }

/** Throws `malformed` when the token could be read in transit, or would be sent to another user of this machine. */
export function assertNotExposed(
  address: RemoteAddress,
  { storeName, allowHttp }: ExposureSettings,
  { trusts }: Io,
): void {
  if (allowHttp) return
  let why = isOpenToAll(address) ? 'without TLS others could read it' : undefined
  let instead = 'Use https://, or on a network that only you use,'
  if (address.socketPath !== undefined) {
    instead =
      'Move the socket to a directory that only the service can write to, or if you trust all users of this machine,'
    const path = address.socketPath
    // connecting reports a socket that cannot be accessed
    why = unlessSystemError(() => untrustedReason(path, { trusts, writers: 0o022 }))
  }
  if (why === undefined) return
  const always = storeName === undefined ? '' : `, or for good: plants config set stores.${storeName}.allow-http true`
  throw malformed(`The token is not sent to ${address.name}: ${why}`, `${instead} add --allow-http${always}`)
}

export function isOpenToAll({ url, socketPath }: RemoteAddress): boolean {
  return url.protocol === 'http:' && socketPath === undefined && !isLoopback(url.hostname)
}

export const exposureHint = 'Set sslmode=verify-full in its address'

export function exposureOf({ name, hosts, sslmode }: PostgresAddress): string | undefined {
  if (sslmode === 'verify-full' || hosts.every(isLocal)) return undefined
  return `The connection to ${name} is not safe from an attacker on the network, who could read it or impersonate the server. ${exposureHint}`
}

export function isLocal({ host }: PostgresHost): boolean {
  return host.startsWith('/') || isLoopback(host)
}
