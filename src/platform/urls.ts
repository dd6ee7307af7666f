import { ignoreSystemError, usageError } from '../errors.js'
import type { Io } from './io.js'

/** Whether a host is this machine by its name. No name is looked up. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(hostname)
}

/**
 * Returns undefined for a text that is no URL. `URL.canParse` is not used, because in Node.js 20 it
 * rejects `https://plänts.example` once V8 has optimized it.
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  return ignoreSystemError(() => new URL(text, base))
}

/**
 * Returns the address of the proxy for a URL. It is undefined for this machine, because `localhost`
 * means another machine to a proxy.
 *
 * @throws {PlantsError} `usage` if a variable has no address of a proxy
 */
export async function findProxy(url: URL, io: Io): Promise<string | undefined> {
  if (isLoopback(url.hostname)) return undefined
  const answer = await io.getProxyForUrl(url)
  return answer === '' ? undefined : parseProxy(replaceAddedScheme(answer, io), url, io)
}

/**
 * A proxy address without a scheme means plain http, as it does for curl. proxy-from-env puts the
 * scheme of the service before such an address, so `https:` is replaced where nobody wrote it.
 */
function replaceAddedScheme(answer: string, { env }: Io): string {
  const isAsWritten = Object.values(env).includes(answer)
  return isAsWritten ? answer : answer.replace(/^https:/, 'http:')
}

function parseProxy(address: string, service: URL, { secrets }: Io): string {
  try {
    const { protocol, username, password, href } = new URL(address)
    decodeURIComponent(username) // throws for a "%" that is not written as "%25"
    secrets.add(decodeURIComponent(password))
    if (protocol === 'http:' || protocol === 'https:') return href
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof URIError)) throw error
  }
  const name = service.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const hint = `For example: ${name}=http://proxy.example.com:3128`
  throw usageError(`${name} or ALL_PROXY is not the address of an http or https proxy`, hint)
}
