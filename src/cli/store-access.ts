import { version } from '../../package.json'
import { type Credential, type CredentialContext, findToken, noToken } from '../auth/credentials.js'
import { assertNotExposed, exposureOf } from '../auth/exposure.js'
import { findPassword } from '../auth/password.js'
import { type OutputStyle, warnMeanwhile } from '../output/output.js'
import { waitingLine } from '../output/progress.js'
import type { Io } from '../platform/io.js'
import type { Access } from '../stores/common/access.js'
import type { Address, PostgresAddress, RemoteAddress } from '../stores/common/address.js'
import type { Login } from '../stores/common/store.js'
import { takesPassword } from '../stores/registry.js'

export interface AccessSettings extends CredentialContext, OutputStyle {
  isVerbose: boolean
  showsProgress: boolean
  /** for the command of a hint, such as " --store ./garden.db"; empty if it needs no option */
  storeFlag: string
  allowHttp: boolean
  /** absolute path of PEM certificates, and the source of the setting */
  caCert: { path: string; source: string } | undefined
}

/**
 * @param given a token that is not saved yet, or `***` for a preview
 * @throws {PlantsError} `unauthorized` without a token, `malformed` if others could read the token in transit
 */
export async function accessTo(
  address: RemoteAddress,
  settings: AccessSettings,
  io: Io,
  given?: Credential,
): Promise<Access> {
  const { isVerbose, showsProgress, caCert, storeFlag } = settings
  const found = given ?? (await findToken(address, settings, io))
  if (!found) throw noToken(address, storeFlag)
  const tracing = isVerbose ? await import('../output/trace.js') : undefined
  tracing?.trace(io, settings, `* token from ${found.place}`)
  assertNotExposed(address, settings)
  const isProxySet = Object.keys(io.env).some((name) => /^(https?|all)_proxy$/i.test(name))
  const proxy = isProxySet ? await (await import('../platform/proxy-variables.js')).proxyFor(address, io) : undefined
  if (proxy !== undefined) tracing?.trace(io, settings, `* proxy ${new URL(proxy).host}`) // without its password
  let renewal: { token: Promise<string | undefined>; at: number } | undefined
  const renew = () => {
    if (!renewal || io.now() - renewal.at >= 60_000)
      renewal = { token: findToken(address, settings, io).then((newer) => newer?.token), at: io.now() }
    return renewal.token
  }
  const onWait = showsProgress ? waitingLine(io, address.socketPath ?? address.url.host) : undefined
  return {
    token: found.token,
    tokenHint: tokenHint(found, storeFlag),
    renew: found.source === 'command' ? renew : undefined,
    userAgent: `plants/${version}`,
    ca: caCert && (await import('../platform/certificates.js')).readCertificates(caCert.path, caCert.source),
    proxy,
    notify: (text) => {
      void onWait?.(undefined)
      return warnMeanwhile(io, text, settings)
    },
    onWait,
    observer: tracing?.observerOf(settings, io),
  }
}

function tokenHint({ source, place }: Credential, storeFlag: string): string {
  if (source === 'file') return `The token was saved. Save another with: plants auth login${storeFlag}`
  return `The token is from ${place}: set another one there`
}

/** Throws `malformed` for certificates that cannot be used. */
export async function loginTo(address: PostgresAddress, settings: AccessSettings, io: Io): Promise<Login> {
  const found = await findPassword(address, settings, io)
  if (settings.isVerbose) {
    const { trace } = await import('../output/trace.js')
    trace(io, settings, `* password from ${found?.place ?? 'no source'}`)
  }
  const { readLoginCertificates } = await import('../auth/login-certificates.js')
  const elsewhere = `The password is from ${found?.place}: set another one there`
  return {
    password: (host) => found?.of(host),
    passwordHint: found ? elsewhere : 'Set PGPASSWORD, or write the password to ~/.pgpass',
    ...(await readLoginCertificates(address, settings, io)),
  }
}

export async function warnOfExposure(address: Address, { warn }: Pick<AccessSettings, 'warn'>): Promise<void> {
  const exposure = takesPassword(address) ? exposureOf(address) : undefined
  if (exposure !== undefined) await warn(exposure)
}
