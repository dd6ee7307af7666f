import { version } from '../../package.json'
import {
  assertNotExposed,
  type Credential,
  type CredentialContext,
  findToken,
  hasToken,
  noToken,
} from '../auth/credentials.js'
import { exposureOf, findPassword, readLoginCertificates } from '../auth/database-login.js'
import { parseText } from '../config/option-values.js'
import type { EffectiveSettings } from '../config/resolve.js'
import type { Reporter } from '../output/reporter.js'
import type { Io } from '../platform/io.js'
import { proxyFor } from '../platform/urls.js'
import type { Address, HttpAddress, PostgresAddress } from '../stores/common/address.js'
import { passwordFile } from '../stores/common/address.js'
import type { Access } from '../stores/http/http-options.js'
import type { Login } from '../stores/postgres/options.js'

/** A part of `CommandContext`. */
interface AccessContext {
  settings: EffectiveSettings
  reporter: Reporter
  io: Io
  /** In milliseconds. */
  timeout: number
  storeFlag: string
}

export function credentialContext({ settings, timeout }: AccessContext): CredentialContext {
  const { storeName, file } = settings
  return { storeName, timeoutMs: timeout, file, tokenCommand: settings.value('token-command') }
}

/** Throws `usage` when others could read the token in transit. */
export function assertSafe(address: HttpAddress, settings: EffectiveSettings): void {
  assertNotExposed(address, settings.storeName, settings.value('allow-http') ?? false)
}

/**
 * @param given a token that is not saved yet
 * @throws {PlantsError} `unauthorized` without a token, `usage` if others could read the token in transit
 */
export async function accessTo(
  address: HttpAddress,
  context: AccessContext,
  given?: Credential,
): Promise<Access> {
  const { settings, reporter, storeFlag, io } = context
  const credentials = credentialContext(context)
  const found = given ?? (await findToken(address, credentials, io))
  if (!found) throw noToken(address, storeFlag)
  reporter.log(`* token from ${found.place}`)
  assertSafe(address, settings)
  const isProxySet = Object.keys(io.env).some((name) => /^(https?|all)_proxy$/i.test(name))
  const proxy = isProxySet ? await proxyFor(address, io) : undefined
  if (proxy !== undefined) reporter.log(`* proxy ${new URL(proxy).host}`) // without its password
  let renewal: { token: Promise<string | undefined>; at: number } | undefined
  const renew = () => {
    if (!renewal || io.now() - renewal.at >= 60_000)
      renewal = {
        token: findToken(address, credentials, io).then((newer) => newer?.token),
        at: io.now(),
      }
    return renewal.token
  }
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
    notify: (text) => reporter.warnMeanwhile(text),
    trace: reporter.isVerbose ? (line) => reporter.log(line) : undefined,
  }
}

/** Throws what `accessTo` does, without running a token command. */
export async function assertAccess(address: HttpAddress, context: AccessContext): Promise<void> {
  const { settings, storeFlag, io } = context
  if (!hasToken(address, credentialContext(context), io)) throw noToken(address, storeFlag)
  assertSafe(address, settings)
  await authoritiesOf(settings, io)
}

/** PEM certificates, if the setting `ca-cert` names them. */
async function authoritiesOf(settings: EffectiveSettings, io: Io): Promise<string | undefined> {
  const ca = certificatesOf(settings, io)
  return ca && (await import('../platform/certificates.js')).readCertificates(ca.path)
}

/** The absolute path of the setting `ca-cert`, and the source of it. */
function certificatesOf(
  settings: EffectiveSettings,
  io: Io,
): { path: string; source: string } | undefined {
  const { value, place } = settings.source('ca-cert')
  return value === undefined
    ? undefined
    : { path: io.resolvePath(parseText(place, value)), source: place }
}

/** Throws `usage` for certificates that cannot be used. */
export async function loginTo(address: PostgresAddress, context: AccessContext): Promise<Login> {
  const { settings, reporter, io } = context
  const found = findPassword(address, io, (line) => reporter.log(line))
  reporter.log(`* password from ${found?.place ?? 'no source'}`)
  const elsewhere = `The password is from ${found?.place}: set another one there`
  return {
    password: (host) => found?.of(host),
    passwordHint: found ? elsewhere : `Set PGPASSWORD, or write the password to ${passwordFile}`,
    ...(await readLoginCertificates(address, certificatesOf(settings, io))),
  }
}

export async function warnOfExposure(address: Address, reporter: Reporter): Promise<void> {
  const exposure = address.scheme === 'postgres' ? exposureOf(address) : undefined
  if (exposure !== undefined) await reporter.warn(exposure)
}
