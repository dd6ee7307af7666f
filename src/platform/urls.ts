import { unlessSystemError, usageError } from './errors.js'
import type { Io } from './io.js'

/** Whether this is `localhost` or a loopback address. Looks up no names. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/i.test(hostname)
}

/** In Node 20, an optimised `URL.canParse` also rejects `https://plänts.example`. */
export function urlOf(text: string, base?: string): URL | undefined {
  return unlessSystemError(() => new URL(text, base))
}

type ProxyTarget = { url: URL; socketPath?: string }

/** Undefined for this machine: the loopback of a proxy is a different one. Throws `usage`. */
export async function proxyFor(
  { url, socketPath }: ProxyTarget,
  io: Io,
): Promise<string | undefined> {
  // The names that are reserved for loopback (RFC 6761, 6.3) are trusted less with plain HTTP.
  const isThisMachine =
    socketPath !== undefined ||
    isLoopback(url.hostname) ||
    /(^|\.)localhost\.?$/i.test(url.hostname)
  if (isThisMachine || !(await io.isProxied(url))) return undefined
  const name = [url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY', 'ALL_PROXY'].find(
    (each) => variable(each, io),
  )
  return name && parseProxy(name, variable(name, io))
}

function parseProxy(name: string, text: string): string {
  const proxy = text.includes('://') ? text : `http://${text}`
  const url = /^https?:\/\/./i.test(proxy) ? urlOf(proxy) : undefined
  if (url && isDecodable(url)) return url.href
  const hint = url
    ? 'In its user name and password, "%" is written as %25'
    : `For example: ${name}=http://proxy.example.com:3128`
  throw usageError(`${name} is not the address of an http or https proxy`, hint)
}

function isDecodable({ username, password }: URL): boolean {
  try {
    return decodeURIComponent(username + password) !== undefined
  } catch (error) {
    if (error instanceof URIError) return false
    throw error
  }
}

function variable(name: string, { env }: Io): string {
  return env[name.toLowerCase()] || env[name] || ''
}
