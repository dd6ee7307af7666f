import { createUsageError, ignoreSystemError } from '../errors.js'
import type { Io } from './io.js'

/** Whether a host name or an IP address means this machine. It makes no DNS query. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(hostname)
}

/**
 * Parses a URL. `URL.canParse` is not used, because in Node.js 20, it rejects
 * `https://plänts.example` once V8 has optimized the call.
 *
 * @returns undefined for a text that is no URL
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  return ignoreSystemError(() => new URL(text, base))
}

/**
 * Finds the address of the proxy for a URL. A URL of this machine has no proxy, because `localhost`
 * would be the machine of the proxy.
 *
 * @throws {PlantsError} `usage` if a variable has no address of a proxy
 */
export async function findProxy(url: URL, io: Io): Promise<string | undefined> {
  if (isLoopback(url.hostname)) return undefined
  const proxyAddress = await io.getProxyForUrl(url)
  return proxyAddress === '' ? undefined : parseProxy(replaceAddedScheme(proxyAddress, io), url, io)
}

/**
 * Replaces `https:` by `http:` if proxy-from-env has added it. The address of a proxy without a
 * scheme means http, as for curl, but proxy-from-env adds the scheme of the service to it.
 */
function replaceAddedScheme(proxyAddress: string, { env }: Io): string {
  const isAsWritten = Object.values(env).includes(proxyAddress)
  return isAsWritten ? proxyAddress : proxyAddress.replace(/^https:/, 'http:')
}

function parseProxy(address: string, service: URL, { secrets }: Io): string {
  try {
    const { protocol, username, password, href } = new URL(address)
    decodeURIComponent(username) // This throws for a "%" that is not written as "%25".
    secrets.add(decodeURIComponent(password))
    if (protocol === 'http:' || protocol === 'https:') return href
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof URIError)) throw error
  }
  const name = service.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const hint = `For example: ${name}=http://proxy.example.com:3128`
  throw createUsageError(`${name} or ALL_PROXY is not the address of an http or https proxy`, hint)
}
