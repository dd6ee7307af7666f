import type { Io } from '../platform/io.js'
import { isLoopback } from '../platform/network.js'
import { warn } from '../output/output.js'
import type { Preferences, Settings } from '../config/preferences.js'
import type { Address, Login, PostgresAddress, PostgresHost } from '../stores/store.js'
import { readLoginCertificates } from './login-certificates.js'
import { findPassword, hidePassword, howToGive, type Password } from './password.js'

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
  return {
    password: (host) => given ?? found?.of(host),
    trusts: io.trusts,
    passwordHint: hintOf(found, settings),
    ...(await readLoginCertificates(address, settings, io)),
  }
}

/** What ends that a database is not safe from an attacker on the network. */
export const exposureHint = 'Set sslmode=verify-full in its address'

/** Why a database is not safe from an attacker on the network; nothing for one that is. */
export function exposureOf({ name, hosts, sslmode }: PostgresAddress): string | undefined {
  if (sslmode === 'verify-full' || hosts.every(isLocal)) return undefined
  return `The connection to ${name} is not safe from an attacker on the network, who could read it or impersonate the server. ${exposureHint}`
}

/** Says so of a store that somebody has just saved or chosen. */
export async function warnOfExposure(address: Address, settings: Preferences, io: Io): Promise<void> {
  const exposure = address.kind === 'postgres' ? exposureOf(address) : undefined
  if (exposure !== undefined) await warn(io, exposure, settings)
}

/** Whether a database is on this machine, where there is no network in between. */
export function isLocal({ host }: PostgresHost): boolean {
  return host.startsWith('/') || isLoopback(host)
}

function hintOf(found: Password | undefined, { storeFlag }: Settings): string {
  if (found === undefined) return `If it takes a password: ${howToGive(storeFlag)}`
  if (found.source === 'file') return `The password was saved. Save another with: plants auth login${storeFlag}`
  return `The password came from ${found.place}: give another one there`
}
