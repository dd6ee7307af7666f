/*
 * Finds the credentials, certificates and proxy of the store, and logs where they come from. The
 * stores themselves know neither settings nor options.
 */
import type { SecureContext } from 'node:tls'
import { version } from '../../package.json'
import {
  assertNotExposed,
  type Credential,
  createNoTokenError,
  findToken,
} from '../auth/credentials.js'
import { findPassword, readLoginCertificates } from '../auth/database-login.js'
import type { EffectiveSettings } from '../config/resolve.js'
import type { Reporter } from '../output/reporter.js'
import type { Io } from '../platform/io.js'
import { findProxy } from '../platform/urls.js'
import { type Address, type PostgresAddress, setPasswordHint } from '../stores/address.js'
import type { Login, ServiceAccess, TokenTarget } from '../stores/credentials.js'
import { findKind } from '../stores/kinds.js'
import type { SettingsContext } from './context.js'

type AccessContext = Pick<SettingsContext, 'settings' | 'reporter' | 'io' | 'storeFlag'>

/**
 * Finds what a client of a service needs: its token, its proxy and the certificates to trust.
 *
 * @param newToken a token that is not saved yet, which `auth login` checks
 * @throws {PlantsError} `unauthorized` without a token, or what `assertNotExposed` throws
 */
export async function findAccess(
  target: TokenTarget,
  context: AccessContext,
  newToken?: Credential,
): Promise<ServiceAccess> {
  const { settings, reporter, storeFlag, io } = context
  const credential = newToken ?? (await findToken(target, settings, io))
  if (!credential) throw createNoTokenError(target, storeFlag)
  reporter.log(`* token from ${credential.origin}`)
  assertNotExposed(target, settings)
  const isProxySet = Object.keys(io.env).some((name) => /^(https?|all)_proxy$/i.test(name))
  const proxy = isProxySet ? await findProxy(target.url, io) : undefined
  if (proxy !== undefined) reporter.log(`* proxy ${new URL(proxy).host}`) // `host` leaves out its password.
  const caPath = findCertificatesPath(settings, io)
  return {
    token: credential.token,
    tokenHint:
      credential.source === 'file'
        ? `Save another token with: plants auth login${storeFlag}`
        : `The token comes from ${credential.origin}: change it there`,
    renew: credential.source === 'command' ? createRenewal(target, context) : undefined,
    userAgent: `plants/${version}`,
    ca: caPath && (await import('../platform/certificates.js')).readCertificates(caPath),
    createSystemContext: caPath === undefined ? () => loadSystemContext(io) : undefined,
    proxy,
    notify: (text) => reporter.warnMeanwhile(text),
    trace: reporter.isVerbose ? (line) => reporter.log(line) : undefined,
  }
}

/**
 * Creates a function that runs the token command again, at most once a minute. When a token
 * expires, a service rejects many requests in flight, and each of them asks for a new token.
 */
function createRenewal(
  target: TokenTarget,
  { settings, io }: AccessContext,
): ServiceAccess['renew'] {
  let renewal: { token: Promise<string | undefined>; startedAtMs: number } | undefined
  return () => {
    if (renewal && io.now() - renewal.startedAtMs < 60_000) return renewal.token
    const token = findToken(target, settings, io).then((credential) => credential?.token)
    renewal = { token, startedAtMs: io.now() }
    return token
  }
}

function findCertificatesPath(settings: EffectiveSettings, io: Io): string | undefined {
  const path = settings.getValue('ca-cert')
  return path === undefined ? undefined : io.resolvePath(path)
}

async function loadSystemContext(
  io: Io,
  pair?: Pick<Login, 'cert' | 'key'>,
): Promise<SecureContext | undefined> {
  const { createSystemContext } = await import('../platform/certificates.js')
  return createSystemContext(io.env, pair)
}

/** Finds what a client of a database needs: its password and its certificates. */
export async function findLogin(
  address: PostgresAddress,
  { settings, reporter, io }: AccessContext,
): Promise<Login> {
  const password = findPassword(address, io, (line) => reporter.log(line))
  reporter.log(`* password from ${password?.origin ?? 'no source'}`)
  const certificates = await readLoginCertificates(address, findCertificatesPath(settings, io))
  // Only verify-full also trusts the certificates of the system: verify-ca does not compare the
  // name of the server, so that a certificate of any server would do.
  const trustsSystem = address.sslmode === 'verify-full' && certificates.ca === undefined
  return {
    findPassword: (host) => password?.findForHost(host),
    passwordHint: password
      ? `Correct the password, which comes from ${password.origin}, or the user in the address`
      : setPasswordHint,
    ...certificates,
    createSystemContext: trustsSystem ? () => loadSystemContext(io, certificates) : undefined,
  }
}

/** Warns if others on the network could read or change the requests to a store. */
export async function warnOfExposure(address: Address, reporter: Reporter): Promise<void> {
  const risk = await findKind(address).findNetworkRisk?.(address)
  if (risk !== undefined) await reporter.warn(risk)
}
