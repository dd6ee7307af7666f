import { version } from '../../package.json'
import { type Credential, findToken, findTokenSource, noToken } from '../auth/credentials.js'
import { exposureOf, refuseExposed } from '../auth/exposure.js'
import { findPassword, hidePassword, howToGive, type Password } from '../auth/password.js'
import { waitingLine, warn, warnMeanwhile } from '../output/output.js'
import type { Io } from '../platform/io.js'
import type { Address, PostgresAddress, RemoteAddress } from '../stores/address.js'
import type { Access } from '../stores/http/types.js'
import { takesPassword } from '../stores/registry.js'
import type { Login } from '../stores/store.js'
import type { Preferences, Settings } from './settings.js'

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
export async function previewAccess(address: RemoteAddress, settings: Settings, io: Io): Promise<PreviewedAccess> {
  const source = findTokenSource(address, settings, io)
  const place = source ? placeOf({ source }, settings) : 'nowhere yet'
  const access = await accessWith({ token: '***', source: source ?? 'variable' }, { address, place }, settings, io)
  return { access, source: source ?? 'none' }
}

export interface PreviewedAccess {
  access: Access
  /** where the token would come from */
  source: Credential['source'] | 'none'
}

interface TokenPlace {
  address: RemoteAddress
  /** where the token came from, in words */
  place: string
}

async function accessWith(found: Credential, { address, place }: TokenPlace, settings: Settings, io: Io): Promise<Access> {
  const trace = settings.isVerbose ? await import('../output/trace.js') : undefined
  trace?.traceToken(place, settings, io)
  refuseExposed(address, settings, io)
  const isProxySet = Object.keys(io.env).some((name) => /^https?_proxy$/i.test(name))
  const proxy = isProxySet ? (await import('../platform/proxy.js')).proxyFor(address, io) : undefined
  if (proxy !== undefined) trace?.traceProxy(proxy, settings, io)
  const isShown = io.stderr.isTerminal && settings.errors === 'text' && !settings.isVerbose
  const onWait = isShown ? waitingLine(io, address.socketPath ?? address.url.host) : undefined
  return {
    token: found.token,
    tokenHint: tokenHints[found.source](settings),
    renew: found.source === 'command' ? renewal(address, settings, io) : undefined,
    userAgent: `plants/${version}`,
    ca: settings.caCert && (await import('../platform/certificates.js')).readCertificates(settings.caCert.path, settings.caCert.source),
    proxy,
    beforeConnect: () => refuseExposed(address, settings, io),
    notify: (text) => {
      onWait?.(undefined)
      return warnMeanwhile(io, text, settings)
    },
    onWait,
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

/**
 * What it takes to log in to a database.
 *
 * @param given a password that is not kept anywhere yet
 * @throws {PlantsError} `malformed` for certificates that cannot be used
 */
export async function loginTo(address: PostgresAddress, settings: Settings, io: Io, given?: string): Promise<Login> {
  if (given !== undefined) hidePassword(given, address, io)
  const found = given === undefined ? await findPassword(address, settings, io) : undefined
  if (settings.isVerbose) {
    const { tracePassword } = await import('../output/trace.js')
    tracePassword(given === undefined ? (found?.place ?? 'nowhere') : 'this login', settings, io)
  }
  const { readLoginCertificates } = await import('../auth/login-certificates.js')
  return {
    password: (host) => given ?? found?.of(host),
    trusts: io.trusts,
    passwordHint: hintOf(found, settings),
    ...(await readLoginCertificates(address, settings, io)),
  }
}

function hintOf(found: Password | undefined, { storeFlag }: Settings): string {
  if (found === undefined) return `If it takes a password: ${howToGive(storeFlag)}`
  if (found.source === 'file') return `The password was saved. Save another with: plants auth login${storeFlag}`
  return `The password came from ${found.place}: give another one there`
}

/** Says so of a store that somebody has just saved or chosen. */
export async function warnOfExposure(address: Address, settings: Preferences, io: Io): Promise<void> {
  const exposure = takesPassword(address) ? exposureOf(address) : undefined
  if (exposure !== undefined) await warn(io, exposure, settings)
}
