import { BlockList, isIP, isIPv6 } from 'node:net'
import { malformed } from './errors.js'
import type { Io } from './io.js'
import { isLoopback, urlOf } from './network.js'

/** A service, and the Unix socket that is used to reach it instead of the network. */
type ProxyTarget = { url: URL; socketPath?: string }

/** The URL of the proxy for a service; undefined for this machine: the loopback of a proxy is a different one. Throws `malformed`. */
export function proxyFor({ url, socketPath }: ProxyTarget, io: Io): string | undefined {
  const name = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const text = variable(name, io)
  // The names that are reserved for loopback (RFC 6761, 6.3) are trusted less with plain HTTP.
  const isThisMachine = socketPath !== undefined || isLoopback(url.hostname) || /(^|\.)localhost\.?$/i.test(url.hostname)
  if (text === '' || isThisMachine || isExcepted(url, variable('NO_PROXY', io))) return undefined
  return parseProxy(name, text)
}

/** The proxies in the environment, without credentials. Throws `malformed` for one that is not a URL. */
export function proxyVariables(io: Io): string[] {
  const proxies = ['HTTPS_PROXY', 'HTTP_PROXY'].flatMap((name) => {
    const text = variable(name, io)
    return text === '' ? [] : [`${name} ${new URL(parseProxy(name, text)).host}`]
  })
  const except = variable('NO_PROXY', io)
  return except === '' ? proxies : [...proxies, `NO_PROXY ${except}`]
}

function parseProxy(name: string, text: string): string {
  const proxy = text.includes('://') ? text : `http://${text}`
  const url = /^https?:\/\/./i.test(proxy) ? urlOf(proxy) : undefined
  if (url && isDecodable(url)) return url.href
  const hint = url ? 'In its user name and password, "%" is written as %25' : `For example: ${name}=http://proxy.example.com:3128`
  throw malformed(`${name} is not the address of an http or https proxy`, hint)
}

function isDecodable({ username, password }: URL): boolean {
  try {
    return decodeURIComponent(username + password) !== undefined
  } catch (error) {
    if (error instanceof URIError) return false
    throw error
  }
}

/** Matches NO_PROXY as curl does: hosts with their subdomains, optionally a port; addresses; networks such as 10.0.0.0/8; "*" for all. */
function isExcepted({ hostname, port, protocol }: URL, noProxy: string): boolean {
  const ownPort = port || (protocol === 'https:' ? '443' : '80')
  const own = plainHost(hostname)
  return noProxy.split(/[,\s]+/).some((entry) => {
    if (entry === '*') return true
    const [, host = '', onlyPort] = isIPv6(entry) ? [entry, entry] : (/^(?:\*?\.)?(.*?)(?::(\d+))?$/.exec(entry) ?? [])
    const name = plainHost(host)
    if (name === '' || (onlyPort !== undefined && onlyPort !== ownPort)) return false
    return own === name || own.endsWith(`.${name}`) || isWithin(own, name)
  })
}

/** A host in lower case, without the brackets of an IPv6 address or a trailing dot. */
function plainHost(host: string): string {
  return host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')
}

/** Whether an address is in a network, or is the same address in another notation. */
function isWithin(address: string, network: string): boolean {
  const [base = '', bits] = network.split('/')
  const family = isIP(address)
  const size = bits === undefined ? (family === 6 ? 128 : 32) : /^\d{1,3}$/.test(bits) ? parseInt(bits, 10) : 999
  if (family === 0 || isIP(base) !== family || size > (family === 6 ? 128 : 32)) return false
  const type = family === 6 ? 'ipv6' : 'ipv4'
  const list = new BlockList()
  list.addSubnet(base, size, type)
  return list.check(address, type)
}

function variable(name: string, { env }: Io): string {
  return env[name.toLowerCase()] || env[name] || ''
}
