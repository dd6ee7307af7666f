import { version } from '../../package.json'
import {
  assertNotExposed,
  type Credential,
  type CredentialContext,
  findToken,
  noToken,
} from '../auth/credentials.js'
import { exposureOf, findPassword, readLoginCertificates } from '../auth/database-login.js'
import { parseText } from '../config/option-values.js'
import type { EffectiveSettings } from '../config/resolve.js'
import type { Reporter } from '../output/reporter.js'
import type { Io } from '../platform/io.js'
import { proxyFor } from '../platform/urls.js'
import {
  type Address,
  type HttpAddress,
  type PostgresAddress,
  passwordFile,
} from '../stores/common/address.js'
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
  assertNotExposed(address, settings.value('allow-http') ?? false)
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
  const ca = certificatesOf(settings, io)
  return {
    token: found.token,
    tokenHint:
      found.source === 'file'
        ? `The token was saved. Save another with: plants auth login${storeFlag}`
        : `The token is from ${found.place}: set another one there`,
    renew: found.source === 'command' ? renewalOf(address, credentials, io) : undefined,
    userAgent: `plants/${version}`,
    ca: ca && (await import('../platform/certificates.js')).readCertificates(ca.path),
    proxy,
    notify: (text) => reporter.warnMeanwhile(text),
    trace: reporter.isVerbose ? (line) => reporter.log(line) : undefined,
  }
}

/** Runs the token command again, at most once a minute. */
function renewalOf(address: HttpAddress, credentials: CredentialContext, io: Io): Access['renew'] {
  let renewal: { token: Promise<string | undefined>; at: number } | undefined
  return () => {
    const isRecent = renewal !== undefined && io.now() - renewal.at < 60_000
    if (renewal && isRecent) return renewal.token
    const token = findToken(address, credentials, io).then((newer) => newer?.token)
    renewal = { token, at: io.now() }
    return token
  }
}

/** The absolute path of the setting `ca-cert`, and the source of it. */
function certificatesOf(
  settings: EffectiveSettings,
  io: Io,
): { path: string; source: string } | undefined {
  const { value, place } = settings.source('ca-cert')
  if (value === undefined) return undefined
  return { path: io.resolvePath(parseText(place, value)), source: place }
}

/** Throws `usage` for certificates that cannot be used. */
export async function loginTo(address: PostgresAddress, context: AccessContext): Promise<Login> {
  const { settings, reporter, io } = context
  const found = findPassword(address, io, (line) => reporter.log(line))
  reporter.log(`* password from ${found?.place ?? 'no source'}`)
  return {
    password: (host) => found?.of(host),
    passwordHint: found
      ? `The password is from ${found.place}: set another one there`
      : `Set PGPASSWORD, or write the password to ${passwordFile}`,
    ...(await readLoginCertificates(address, certificatesOf(settings, io))),
  }
}

export async function warnOfExposure(address: Address, reporter: Reporter): Promise<void> {
  const exposure = address.scheme === 'postgres' ? exposureOf(address) : undefined
  if (exposure !== undefined) await reporter.warn(exposure)
}
