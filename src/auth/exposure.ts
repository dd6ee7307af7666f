import { malformed } from '../platform/errors.js'
import { isLoopback } from '../platform/network.js'
import type { PostgresAddress, PostgresHost, RemoteAddress } from '../stores/common/address.js'

type ExposureSettings = { storeName: string | undefined; allowHttp: boolean }

/** Throws `malformed` when the token could be read in transit. */
export function assertNotExposed(address: RemoteAddress, { storeName, allowHttp }: ExposureSettings): void {
  if (allowHttp || !isOpenToAll(address)) return
  const always = storeName === undefined ? '' : `, or for good: plants stores set ${storeName} --allow-http`
  const hint = `Use https://, or on a network that only you use, add --allow-http${always}`
  throw malformed(`The token is not sent to ${address.name}: without TLS others could read it`, hint)
}

export function isOpenToAll({ url, socketPath }: RemoteAddress): boolean {
  return url.protocol === 'http:' && socketPath === undefined && !isLoopback(url.hostname)
}

export function exposureOf({ name, hosts, sslmode }: PostgresAddress): string | undefined {
  if (sslmode === 'verify-full' || hosts.every(isLocal)) return undefined
  return `The connection to ${name} is not safe from an attacker on the network, who could read it or impersonate the server. Set sslmode=verify-full in its address`
}

function isLocal({ host }: PostgresHost): boolean {
  return host.startsWith('/') || isLoopback(host)
}
