import { readFileSync, type Stats, statSync } from 'node:fs'
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

/** libpq's password file, as far as it can be used. */
export interface PasswordFile {
  path: string
  /** the password of the first line that fits */
  find(address: Pick<PostgresAddress, 'user' | 'database'>, host: PostgresHost): string | undefined
}

/**
 * Reads the password file: PGPASSFILE, or ~/.pgpass; undefined when there is none.
 *
 * @param complain told when it is left out, because others could read it
 * @see https://www.postgresql.org/docs/current/libpq-pgpass.html
 */
export async function readPasswordFile(io: Io, complain: (message: string) => Promise<void>): Promise<PasswordFile | undefined> {
  const path = placeOf(io)
  const stats = path === undefined ? undefined : lookAt(path)
  if (path === undefined || stats === undefined) return undefined
  const trouble = troubleWith(stats, path)
  if (trouble !== undefined) await complain(`The password file ${path} ${trouble}`)
  const lines = trouble === undefined ? linesOf(path) : undefined
  return lines && { path, find: (address, host) => findIn(lines, address, host) }
}

function placeOf({ env, resolvePath }: Io): string | undefined {
  try {
    return resolvePath(env['PGPASSFILE'] || '~/.pgpass')
  } catch (error) {
    if (!(error instanceof PlantsError) || env['PGPASSFILE']) throw error
    return undefined // without a home there is none in it
  }
}

function lookAt(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}

function troubleWith(stats: Stats, path: string): string | undefined {
  if (!stats.isFile()) return 'is left out, because it is no file'
  if (process.platform === 'win32' || (stats.mode & 0o077) === 0) return undefined
  return `is left out, because it is open to others (mode ${(stats.mode & 0o777).toString(8)}). Fix it with: chmod 600 ${shellWord(path)}`
}

/** The fields of each line. libpq leaves out a file that it cannot read, and a line that begins with `#`. */
function linesOf(path: string): string[][] | undefined {
  try {
    const lines = readFileSync(path, 'utf8').split(/\r?\n/)
    return lines.filter((line) => !line.startsWith('#')).map(fieldsOf)
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}

/** host, port, database, user, password; each as it is written, but for the password, in which nothing need be escaped. */
function fieldsOf(line: string): string[] {
  const [, ...fields] = /^((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):(.*)$/s.exec(line) ?? []
  return fields
}

function findIn(
  lines: string[][],
  { user, database }: Pick<PostgresAddress, 'user' | 'database'>,
  { host, port }: PostgresHost,
): string | undefined {
  const wanted = [host === '/var/run/postgresql' ? 'localhost' : host, String(port), database, user]
  const line = lines.find((fields) => fields.length > 0 && wanted.every((text, index) => fits(fields[index] ?? '', text)))
  return line && (withoutEscapes(line[4] ?? '') || undefined)
}

function fits(field: string, text: string): boolean {
  return field === '*' || withoutEscapes(field) === text
}

/** `\:` and `\\`, and as libpq has it any other character behind a backslash. */
function withoutEscapes(text: string): string {
  return text.replace(/\\(.)/gs, '$1')
}
