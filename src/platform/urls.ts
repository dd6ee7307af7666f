import { unlessSystemError, usageError } from '../errors.js'
import type { Io } from './io.js'

/** Looks up no names. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(hostname)
}

/** In Node 20, an optimised `URL.canParse` also rejects `https://plänts.example`. */
export function parseUrl(text: string, base?: string): URL | undefined {
  return unlessSystemError(() => new URL(text, base))
}

/** Undefined for this machine: the loopback of a proxy is a different one. Throws `usage`. */
export async function findProxy(url: URL, io: Io): Promise<string | undefined> {
  if (isLoopback(url.hostname)) return undefined
  const answer = await io.getProxyForUrl(url)
  return answer === '' ? undefined : parseProxy(withPlainScheme(answer, io), url, io)
}

/**
 * An address without a scheme is that of a proxy that speaks plain http, as for curl, also where it
 * leads to services over https: there, proxy-from-env puts the scheme of the service before it.
 */
function withPlainScheme(answer: string, { env }: Io): string {
  const isAsWritten = Object.values(env).includes(answer)
  return isAsWritten ? answer : answer.replace(/^https:/, 'http:')
}

function parseProxy(address: string, service: URL, { secrets }: Io): string {
  try {
    const { protocol, username, password, href } = new URL(address)
    decodeURIComponent(username) // throws for a "%" that is not written as %25
    secrets.add(decodeURIComponent(password))
    if (protocol === 'http:' || protocol === 'https:') return href
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof URIError)) throw error
  }
  const name = service.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const hint = `For example: ${name}=http://proxy.example.com:3128`
  throw usageError(`${name} or ALL_PROXY is not the address of an http or https proxy`, hint)
}
