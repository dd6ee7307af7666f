import { version } from '../package.json'
import { type Credential, findToken, noToken } from './credentials.js'
import { PlantsError } from './errors.js'
import type { Io } from './io.js'
import { isLoopback } from './loopback.js'
import { warnMeanwhile } from './output.js'
import type { Settings } from './settings.js'
import type { Access, RemoteAddress } from './stores/store.js'

/**
 * What it takes to reach a remote store.
 *
 * @param given a token that is not kept anywhere yet
 * @throws {PlantsError} `unauthorized` without a token, `malformed` where the token would be seen on its way
 */
export async function accessTo(address: RemoteAddress, settings: Settings, io: Io, given?: Credential): Promise<Access> {
  const found = given ?? (await findToken(address, settings, io))
  if (!found) throw noToken(address, settings.storeFlag)
  const trace = settings.isVerbose ? await import('./trace.js') : undefined
  trace?.traceToken(given ? 'this login' : placeOf(found, settings), settings, io)
  if (isOpenToAll(address) && !settings.allowHttp) throw openToAll(address, settings)
  const proxy = proxyFor(address, io)
  if (proxy !== undefined) trace?.traceProxy(proxy, settings, io)
  return {
    token: found.token,
    tokenHint: tokenHints[found.source](settings),
    userAgent: `plants/${version}`,
    ca: settings.caCert && (await import('./certificates.js')).readCertificates(settings.caCert.path, settings.caCert.source),
    proxy,
    notify: (text) => warnMeanwhile(io, text, settings),
    observer: trace?.observerOf(settings, io),
  }
}

const tokenHints: Record<Credential['source'], (settings: Settings) => string> = {
  variable: () => 'It came from PLANTS_TOKEN: give another one there',
  command: ({ storeName }) => `It came from the token command of ${storeName}: renew it there`,
  file: ({ storeFlag }) => `It was saved. Save another with: plants auth login${storeFlag}`,
}

/** Where a token came from, in words. */
export function placeOf({ source }: Pick<Credential, 'source'>, { storeName, file }: Settings): string {
  return { variable: 'PLANTS_TOKEN', command: `the token command of ${storeName}`, file: file.path ?? '' }[source]
}

function openToAll({ name }: RemoteAddress, { storeName }: Settings): PlantsError {
  const always = storeName === undefined ? '' : `, or for good: plants config set stores.${storeName}.allow-http true`
  const hint = `Use https://, or, where the network is yours alone, add --allow-http${always}`
  return new PlantsError('malformed', `The token is not sent to ${name}: without TLS others could read it`, { hint })
}

/** A proxy is not asked about this machine: its own loopback is another one. */
function proxyFor({ url, socketPath }: RemoteAddress, io: Io): string | undefined {
  const name = url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const text = variable(name, io)
  if (text === '' || socketPath !== undefined || isLoopback(url.hostname) || isExcepted(url, variable('NO_PROXY', io))) return undefined
  return parseProxy(name, text)
}

function parseProxy(name: string, text: string): string {
  const proxy = text.includes('://') ? text : `http://${text}`
  if (/^https?:\/\/./i.test(proxy) && URL.canParse(proxy)) return new URL(proxy).href
  throw new PlantsError('malformed', `${name} is not the address of an http or https proxy`, {
    hint: `For example: ${name}=http://proxy.example.com:3128`,
  })
}

/** The proxies that the environment names, without a password. Throws `malformed` for one that is no address. */
export function proxyVariables(io: Io): string[] {
  const proxies = ['HTTPS_PROXY', 'HTTP_PROXY'].flatMap((name) => {
    const text = variable(name, io)
    return text === '' ? [] : [`${name} ${new URL(parseProxy(name, text)).host}`]
  })
  const except = variable('NO_PROXY', io)
  return except === '' ? proxies : [...proxies, `NO_PROXY ${except}`]
}

/** NO_PROXY as curl and undici read it: hosts and what is below them, perhaps with a port; "*" is all. */
function isExcepted({ hostname, port, protocol }: URL, noProxy: string): boolean {
  const ownPort = port || (protocol === 'https:' ? '443' : '80')
  return noProxy.split(/[,\s]+/).some((entry) => {
    const [, host = '', onlyPort] = /^(?:\*?\.)?(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
    if (entry === '*') return true
    return host !== '' && (onlyPort === undefined || onlyPort === ownPort) && (hostname === host || hostname.endsWith(`.${host}`))
  })
}

function variable(name: string, { env }: Io): string {
  return env[name.toLowerCase()] || env[name] || ''
}

/** Whether a token would go over a network for all to read. */
export function isOpenToAll({ url, socketPath }: RemoteAddress): boolean {
  return url.protocol === 'http:' && socketPath === undefined && !isLoopback(url.hostname)
}
