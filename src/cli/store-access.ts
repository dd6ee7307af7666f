import { version } from '../../package.json'
import { type Credential, type CredentialContext, findToken, noToken } from '../auth/credentials.js'
import { assertNotExposed, exposureOf } from '../auth/exposure.js'
import { findPassword, type Password, redactPassword } from '../auth/password.js'
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
  let renewedAt = -Infinity
  const renew = async () => {
    if (io.now() - renewedAt < 60_000) return undefined
    renewedAt = io.now()
    return (await findToken(address, settings, io))?.token
  }
  const onWait = showsProgress ? waitingLine(io, address.socketPath ?? address.url.host) : undefined
  return {
    token: found.token,
    tokenHint: hintOf('token', found, storeFlag),
    renew: found.source === 'command' ? renew : undefined,
    userAgent: `plants/${version}`,
    ca: caCert && (await import('../platform/certificates.js')).readCertificates(caCert.path, caCert.source),
    proxy,
    beforeConnect: () => assertNotExposed(address, settings),
    notify: (text) => {
      void onWait?.(undefined)
      return warnMeanwhile(io, text, settings)
    },
    onWait,
    observer: tracing?.observerOf(settings, io),
  }
}

function hintOf(noun: 'token' | 'password', { source, place }: Credential | Password, storeFlag: string): string {
  if (source === 'file') return `The ${noun} was saved. Save another with: plants auth login${storeFlag}`
  return `The ${noun} is from ${place}: set another one there`
}

/**
 * @param given a password that is not saved yet
 * @throws {PlantsError} `malformed` for certificates that cannot be used
 */
export async function loginTo(
  address: PostgresAddress,
  settings: AccessSettings,
  io: Io,
  given?: string,
): Promise<Login> {
  const { isVerbose, storeFlag } = settings
  redactPassword(given, address, io)
  const found = given === undefined ? await findPassword(address, settings, io) : undefined
  if (isVerbose) {
    const { trace } = await import('../output/trace.js')
    trace(io, settings, `* password from ${given === undefined ? (found?.place ?? 'no source') : 'this login'}`)
  }
  const { readLoginCertificates } = await import('../auth/login-certificates.js')
  const unset = `Set PGPASSWORD, or save the password with: plants auth login${storeFlag}`
  return {
    password: (host) => given ?? found?.of(host),
    passwordHint: found ? hintOf('password', found, storeFlag) : unset,
    ...(await readLoginCertificates(address, settings, io)),
  }
}

export async function warnOfExposure(address: Address, { warn }: Pick<AccessSettings, 'warn'>): Promise<void> {
  const exposure = takesPassword(address) ? exposureOf(address) : undefined
  if (exposure !== undefined) await warn(exposure)
}
