import { unlessSystemError, usageError } from '../errors.js'
import type { Io } from './io.js'

/** Looks up no names. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(hostname)
}

/** In Node 20, an optimised `URL.canParse` also rejects `https://plänts.example`. */
export function urlOf(text: string, base?: string): URL | undefined {
  return unlessSystemError(() => new URL(text, base))
}

/** Undefined for this machine: the loopback of a proxy is a different one. Throws `usage`. */
export async function proxyFor({ url }: { url: URL }, io: Io): Promise<string | undefined> {
  if (isLoopback(url.hostname) || !(await io.isProxied(url))) return undefined
  for (const name of [url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY', 'ALL_PROXY']) {
    const text = io.env[name.toLowerCase()] || io.env[name]
    if (text) return parseProxy(name, text, io)
  }
  return undefined
}

function parseProxy(name: string, text: string, { secrets }: Io): string {
  try {
    const { protocol, username, password, href } = new URL(
      text.includes('://') ? text : `http://${text}`,
    )
    decodeURIComponent(username) // throws for a "%" that is not written as %25
    secrets.add(decodeURIComponent(password))
    if (protocol === 'http:' || protocol === 'https:') return href
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof URIError)) throw error
  }
  const hint = `For example: ${name}=http://proxy.example.com:3128`
  throw usageError(`${name} is not the address of an http or https proxy`, hint)
}
