import type { Io } from '../io.js'
import { isLoopback } from '../loopback.js'
import type { Settings } from '../settings/preferences.js'
import type { Login, PostgresAddress, PostgresHost } from '../stores/store.js'
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

/** Why a database is not reached as it should be over a network: who stands between can pass for it; nothing for one that is. */
export function exposureOf({ name, hosts, sslmode }: PostgresAddress): string | undefined {
  if (sslmode === 'verify-full' || hosts.every(isLocal)) return undefined
  return `Who stands between could read what is sent to ${name}, or pass for it, unless you add to the address: sslmode=verify-full`
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
