import { networkInterfaces } from 'node:os'

/** Addresses of this machine that are not loopback, if it has any: in a URL, and as a server takes them. */
const outside = Object.values(networkInterfaces())
  .flatMap((addresses) => addresses ?? [])
  .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
export const ipv4 = outside.find(({ family }) => family === 'IPv4')?.address
export const ipv6 = outside.find(({ family }) => family === 'IPv6')?.address
/** Whether ::1 is one. */
export const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === '::1'),
)
