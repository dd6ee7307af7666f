import { readFileSync, statSync } from 'node:fs'
import { PlantsError, shellWord, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import type { PostgresAddress, PostgresHost } from '../stores/address.js'
import { type CredentialContext, savedToken } from './credentials.js'

/** The password for a database, and where it was found. */
export interface Password {
  source: 'address' | 'variable' | 'file' | 'password-file'
  /** the source in words */
  place: string
  /** of one that was saved with `plants auth login`, in ISO 8601 */
  savedAt?: string | undefined
  of(host: PostgresHost): string | undefined
}

/**
 * Finds the password for a database, in libpq's order with the saved one in between: the address, PGPASSWORD if it is the store of this
 * run, the one that was saved for exactly this login, the password file.
 */
export async function findPassword(address: PostgresAddress, context: CredentialContext, io: Io): Promise<Password | undefined> {
  const found = lookUp(address, context, io) ?? (await lookUpInFile(address, context, io))
  for (const host of found ? address.hosts : []) redactPassword(found?.of(host), address, io)
  return found
}

/** Keeps a password from being printed, unless it is a word that the address shows anyway: a `***` in its place would say which. */
export function redactPassword(password: string | undefined, { name }: PostgresAddress, { secrets }: Io): void {
  if (password && !name.includes(password)) secrets.add(password)
}

function lookUp(address: PostgresAddress, context: CredentialContext, io: Io): Password | undefined {
  const { password } = address
  if (password !== undefined) return { source: 'address', place: 'the address', of: () => password }
  const given = context.isOfRun ? io.env['PGPASSWORD'] : undefined
  if (given) return { source: 'variable', place: 'PGPASSWORD', of: () => given }
  const saved = savedToken(context.file.saved, address.login)
  return saved && { source: 'file', place: context.file.path ?? '', savedAt: saved.savedAt, of: () => saved.token }
}

async function lookUpInFile(address: PostgresAddress, context: CredentialContext, io: Io): Promise<Password | undefined> {
  const file = await readPasswordFile(io, async (message) => {
    if (warned.has(io)) return
    warned.add(io)
    await context.warn(message)
  })
  if (file === undefined || !address.hosts.some((host) => file.find(address, host))) return undefined
  return { source: 'password-file', place: file.path, of: (host) => file.find(address, host) }
}

/** The runs that have warned of the password file, which several stores may need. */
const warned = new WeakSet<Io>()

/** The error where a password is asked for and there is none. */
export function noPassword({ name }: PostgresAddress, storeFlag: string): PlantsError {
  return new PlantsError('unauthorized', `There is no password for ${name}`, { hint: `If it takes one: ${howToGive(storeFlag)}` })
}

/** @param storeFlag what a command needs to mean the store */
export function howToGive(storeFlag: string): string {
  return `set PGPASSWORD, write it into ~/.pgpass, or save it with: plants auth login${storeFlag}`
}

interface PasswordFile {
  path: string
  /** the password of the first line that matches */
  find(address: Pick<PostgresAddress, 'user' | 'database'>, host: PostgresHost): string | undefined
}

/**
 * Reads the password file: PGPASSFILE, or ~/.pgpass; undefined when there is none, or none that can be read.
 *
 * @param warn called with why the file is ignored, because others could read it
 * @see https://www.postgresql.org/docs/current/libpq-pgpass.html
 */
export async function readPasswordFile(io: Io, warn: (message: string) => Promise<void>): Promise<PasswordFile | undefined> {
  const path = passwordFilePath(io)
  if (path === undefined) return undefined
  try {
    const stats = statSync(path)
    const isOpen = process.platform !== 'win32' && (stats.mode & 0o077) !== 0
    const mode = `it is open to others (mode ${(stats.mode & 0o777).toString(8)}). Fix it with: chmod 600 ${shellWord(path)}`
    if (!stats.isFile() || isOpen) {
      await warn(`The password file ${path} is ignored, because ${stats.isFile() ? mode : 'it is no file'}`)
      return undefined
    }
    const lines = readFileSync(path, 'utf8').split(/\r?\n/)
    return { path, find: (address, host) => findIn(lines, address, host) }
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined // as libpq does
  }
}

function passwordFilePath({ env, resolvePath }: Io): string | undefined {
  try {
    return resolvePath(env['PGPASSFILE'] || '~/.pgpass')
  } catch (error) {
    if (!(error instanceof PlantsError) || env['PGPASSFILE']) throw error
    return undefined // without a home there is none in it
  }
}

/** Lines are `host:port:database:user:password`; one that begins with `#` is a comment. */
function findIn(
  lines: string[],
  { user, database }: Pick<PostgresAddress, 'user' | 'database'>,
  { host, port }: PostgresHost,
): string | undefined {
  const wanted = [host === '/var/run/postgresql' ? 'localhost' : host, String(port), database, user]
  for (const line of lines) {
    if (line.startsWith('#')) continue
    const [, ...fields] = /^((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):(.*)$/s.exec(line) ?? []
    if (fields.length > 0 && wanted.every((text, index) => fields[index] === '*' || withoutEscapes(fields[index]) === text))
      return withoutEscapes(fields[4]) || undefined
  }
  return undefined
}

/** Removes the backslash in front of `:` and `\`, and as libpq does it, of any other character. */
function withoutEscapes(text = ''): string {
  return text.replace(/\\(.)/gs, '$1')
}
