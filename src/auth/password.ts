import { PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import type { PostgresAddress, PostgresHost } from '../stores/store.js'
import { type CredentialContext, savedToken } from './credentials.js'
import { readPasswordFile } from './password-file.js'

/** The password for a database, and where it was found. */
export interface Password {
  source: 'address' | 'variable' | 'file' | 'password-file'
  /** the source in words */
  place: string
  /** of one that was saved with `plants auth login`, in ISO 8601 */
  savedAt?: string | undefined
  of(host: PostgresHost): string | undefined
}

/** What finding a password goes by. */
export interface PasswordContext extends CredentialContext {
  /** prints a warning for a person */
  warn(text: string): Promise<void>
}

/**
 * Finds the password for a database, in libpq's order with the saved one in between: the address, PGPASSWORD if it is the store of this
 * run, the one that was saved for exactly this login, the password file.
 */
export async function findPassword(address: PostgresAddress, context: PasswordContext, io: Io): Promise<Password | undefined> {
  const found = search(address, context, io) ?? (await searchFile(address, context, io))
  for (const host of found ? address.hosts : []) hidePassword(found?.of(host), address, io)
  return found
}

/** Hides a password, unless it is a word that the address shows anyway; then a `***` in its place would tell which. */
export function hidePassword(password: string | undefined, { name }: PostgresAddress, { secrets }: Io): void {
  if (password && !name.includes(password)) secrets.add(password)
}

function search(address: PostgresAddress, context: PasswordContext, io: Io): Password | undefined {
  const { password } = address
  if (password !== undefined) return { source: 'address', place: 'the address', of: () => password }
  const given = context.isOfRun ? io.env['PGPASSWORD'] : undefined
  if (given) return { source: 'variable', place: 'PGPASSWORD', of: () => given }
  const saved = savedToken(context.file.saved, address.login)
  return saved && { source: 'file', place: context.file.path ?? '', savedAt: saved.savedAt, of: () => saved.token }
}

async function searchFile(address: PostgresAddress, context: PasswordContext, io: Io): Promise<Password | undefined> {
  const file = await readPasswordFile(io, async (message) => {
    if (warned.has(io)) return // of the store before
    warned.add(io)
    await context.warn(message)
  })
  if (file === undefined || !address.hosts.some((host) => file.find(address, host))) return undefined
  return { source: 'password-file', place: file.path, of: (host) => file.find(address, host) }
}

/** The runs that were told that the password file is left out. */
const warned = new WeakSet<Io>()

/** The error where a password is asked for and there is none. */
export function noPassword({ name }: PostgresAddress, storeFlag: string): PlantsError {
  return new PlantsError('unauthorized', `There is no password for ${name}`, { hint: `If it takes one: ${howToGive(storeFlag)}` })
}

/** @param storeFlag what a command needs to mean the store */
export function howToGive(storeFlag: string): string {
  return `set PGPASSWORD, write it into ~/.pgpass, or save it with: plants auth login${storeFlag}`
}
