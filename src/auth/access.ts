import { version } from '../../package.json'
import { type Credential, findToken, foreseeToken, noToken } from './credentials.js'
import { PlantsError, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { isLoopback } from '../platform/network.js'
import { warnMeanwhile } from '../output/output.js'
import type { Settings } from '../config/preferences.js'
import { strangerAt } from '../platform/socket-owner.js'
import type { Access, RemoteAddress } from '../stores/store.js'

/**
 * What it takes to reach a remote store.
 *
 * @param given a token that is not kept anywhere yet
 * @throws {PlantsError} `unauthorized` without a token, `malformed` where the token would be seen on its way
 */
export async function accessTo(address: RemoteAddress, settings: Settings, io: Io, given?: Credential): Promise<Access> {
  const found = given ?? (await findToken(address, settings, io))
  if (!found) throw noToken(address, settings.storeFlag)
  return accessWith(found, { address, place: given ? 'this login' : placeOf(found, settings) }, settings, io)
}

/**
 * What it would take to reach a remote store, with `***` for the token: no command is started for it, and it may be none.
 *
 * @throws {PlantsError} `malformed` as `accessTo` does
 */
export async function foreseeAccess(address: RemoteAddress, settings: Settings, io: Io): Promise<Foreseen> {
  const source = foreseeToken(address, settings, io)
  const place = source ? placeOf({ source }, settings) : 'nowhere yet'
  const access = await accessWith({ token: '***', source: source ?? 'variable' }, { address, place }, settings, io)
  return { access, source: source ?? 'none' }
}

export interface Foreseen {
  access: Access
  /** where the token would come from */
  source: Credential['source'] | 'none'
}

interface Way {
  address: RemoteAddress
  /** where the token came from, in words */
  place: string
}

async function accessWith(found: Credential, { address, place }: Way, settings: Settings, io: Io): Promise<Access> {
  const trace = settings.isVerbose ? await import('../output/trace.js') : undefined
  trace?.traceToken(place, settings, io)
  refuseOpen(address, settings, io)
  const isProxySet = Object.keys(io.env).some((name) => /^https?_proxy$/i.test(name))
  const proxy = isProxySet ? (await import('../platform/proxy.js')).proxyFor(address, io) : undefined
  if (proxy !== undefined) trace?.traceProxy(proxy, settings, io)
  return {
    token: found.token,
    tokenHint: tokenHints[found.source](settings),
    renew: found.source === 'command' ? renewal(address, settings, io) : undefined,
    userAgent: `plants/${version}`,
    ca: settings.caCert && (await import('../platform/certificates.js')).readCertificates(settings.caCert.path, settings.caCert.source),
    proxy,
    beforeConnect: () => refuseOpen(address, settings, io),
    notify: (text) => warnMeanwhile(io, text, settings),
    observer: trace?.observerOf(settings, io),
  }
}

/** Runs the token command again, at most once a minute. */
function renewal(address: RemoteAddress, settings: Settings, io: Io): () => Promise<string | undefined> {
  let last = -Infinity
  return async () => {
    if (io.now() - last < minute) return undefined
    last = io.now()
    return (await findToken(address, settings, io))?.token
  }
}

const minute = 60_000

const tokenHints: Record<Credential['source'], (settings: Settings) => string> = {
  variable: () => 'It came from PLANTS_TOKEN: give another one there',
  command: ({ storeName }) => `It came from the token command of ${storeName}: renew it there`,
  file: ({ storeFlag }) => `It was saved. Save another with: plants auth login${storeFlag}`,
}

/** Where a token came from, in words. */
function placeOf({ source }: Pick<Credential, 'source'>, { storeName, file }: Settings): string {
  return { variable: 'PLANTS_TOKEN', command: `the token command of ${storeName}`, file: file.path ?? '' }[source]
}

/** Throws `malformed` where the token would be seen on its way, or go to another user of this machine. */
export function refuseOpen(address: RemoteAddress, { storeName, allowHttp }: Settings, io: Io): void {
  if (allowHttp) return
  const always = storeName === undefined ? '' : `, or for good: plants config set stores.${storeName}.allow-http true`
  if (isOpenToAll(address)) {
    const hint = `Use https://, or, where the network is yours alone, add --allow-http${always}`
    throw new PlantsError('malformed', `The token is not sent to ${address.name}: without TLS others could read it`, { hint })
  }
  const stranger = address.socketPath === undefined ? undefined : strangerBefore(address.socketPath, io)
  if (stranger === undefined) return
  const hint = `Keep the socket in a folder that only its service may write. Or, where you trust all users of this machine, add --allow-http${always}`
  throw new PlantsError('malformed', `The token is not sent to ${address.name}: ${stranger}`, { hint })
}

function strangerBefore(path: string, { trusts }: Io): string | undefined {
  try {
    return strangerAt(path, { trusts, writers: 0o022 })
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined // nothing is there, or it may not be seen: to connect fails then, and says why
  }
}

/** Whether a token would go over a network for all to read. */
export function isOpenToAll({ url, socketPath }: RemoteAddress): boolean {
  return url.protocol === 'http:' && socketPath === undefined && !isLoopback(url.hostname)
}
