import { version } from '../../package.json'
import {
  assertNotExposed,
  type Credential,
  type CredentialContext,
  findToken,
  locateToken,
  noToken,
} from '../auth/credentials.js'
import { exposureOf, findPassword, readLoginCertificates } from '../auth/database-login.js'
import { warnMeanwhile } from '../output/output.js'
import { waitingLine } from '../output/progress.js'
import type { Io } from '../platform/io.js'
import { parseText } from '../platform/values.js'
import type { Address, HttpAddress, PostgresAddress } from '../stores/common/address.js'
import type { Access, Login } from '../stores/common/store.js'
import { takesPassword } from '../stores/registry.js'
import type { Preferences, Settings } from './settings.js'

export function credentialContext(settings: Preferences): CredentialContext {
  const { storeName, isOfRun, timeout, warn, file } = settings
  return { storeName, isOfRun, timeout, warn, file, tokenCommand: settings.value('token-command') }
}

/** Throws `malformed` when others could read the token in transit. */
export function assertSafe(address: HttpAddress, settings: Preferences): void {
  assertNotExposed(address, settings.storeName, settings.value('allow-http') ?? false)
}

/**
 * @param given a token that is not saved yet
 * @throws {PlantsError} `unauthorized` without a token, `malformed` if others could read the token in transit
 */
export async function accessTo(address: HttpAddress, settings: Settings, io: Io, given?: Credential): Promise<Access> {
  const { isVerbose, showsProgress, storeFlag } = settings
  const context = credentialContext(settings)
  const found = given ?? (await findToken(address, context, io))
  if (!found) throw noToken(address, storeFlag)
  const tracing = isVerbose ? await import('../output/trace.js') : undefined
  tracing?.trace(io, settings, `* token from ${found.place}`)
  assertSafe(address, settings)
  const isProxySet = Object.keys(io.env).some((name) => /^(https?|all)_proxy$/i.test(name))
  const proxy = isProxySet ? await (await import('../platform/proxy-variables.js')).proxyFor(address, io) : undefined
  if (proxy !== undefined) tracing?.trace(io, settings, `* proxy ${new URL(proxy).host}`) // without its password
  let renewal: { token: Promise<string | undefined>; at: number } | undefined
  const renew = () => {
    if (!renewal || io.now() - renewal.at >= 60_000)
      renewal = { token: findToken(address, context, io).then((newer) => newer?.token), at: io.now() }
    return renewal.token
  }
  const onWait = showsProgress ? waitingLine(io, address.socketPath ?? address.url.host) : undefined
  const isSaved = found.source === 'file'
  return {
    token: found.token,
    tokenHint: isSaved
      ? `The token was saved. Save another with: plants auth login${storeFlag}`
      : `The token is from ${found.place}: set another one there`,
    renew: found.source === 'command' ? renew : undefined,
    userAgent: `plants/${version}`,
    ca: await authoritiesOf(settings, io),
    proxy,
    notify: (text) => {
      void onWait?.(undefined)
      return warnMeanwhile(io, text, settings)
    },
    onWait,
    observer: tracing?.observerOf(settings, io),
  }
}

/** Throws what `accessTo` does, without running a token command. */
export async function assertAccess(address: HttpAddress, settings: Settings, io: Io): Promise<void> {
  if (!locateToken(address, credentialContext(settings), io)) throw noToken(address, settings.storeFlag)
  assertSafe(address, settings)
  await authoritiesOf(settings, io)
}

/** PEM certificates, if the setting `ca-cert` names them. */
async function authoritiesOf(settings: Preferences, io: Io): Promise<string | undefined> {
  const ca = certificatesOf(settings, io)
  return ca && (await import('../platform/certificates.js')).readCertificates(ca.path, ca.source)
}

/** The absolute path of the setting `ca-cert`, and the source of it. */
function certificatesOf({ source }: Preferences, io: Io): { path: string; source: string } | undefined {
  const { value, place } = source('ca-cert')
  return value === undefined ? undefined : { path: io.resolvePath(parseText(place, value)), source: place }
}

/** Throws `malformed` for certificates that cannot be used. */
export async function loginTo(address: PostgresAddress, settings: Settings, io: Io): Promise<Login> {
  const found = await findPassword(address, credentialContext(settings), io)
  if (settings.isVerbose) {
    const { trace } = await import('../output/trace.js')
    trace(io, settings, `* password from ${found?.place ?? 'no source'}`)
  }
  const elsewhere = `The password is from ${found?.place}: set another one there`
  return {
    password: (host) => found?.of(host),
    passwordHint: found ? elsewhere : 'Set PGPASSWORD, or write the password to ~/.pgpass',
    ...(await readLoginCertificates(address, certificatesOf(settings, io), io)),
  }
}

export async function warnOfExposure(address: Address, { warn }: Pick<Preferences, 'warn'>): Promise<void> {
  const exposure = takesPassword(address) ? exposureOf(address) : undefined
  if (exposure !== undefined) await warn(exposure)
}
