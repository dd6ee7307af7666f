import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isWindows, octal, PlantsError, shellWord, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import type { PostgresAddress, PostgresHost } from '../stores/common/address.js'
import { assertTrusted, type CredentialContext, savedToken } from './credentials.js'

export interface Password {
  source: 'address' | 'variable' | 'file' | 'password-file'
  place: string
  /** for a password saved with `plants auth login`; ISO 8601 */
  savedAt?: string | undefined
  of(host: PostgresHost): string | undefined
}

/** The order is that of libpq, with the password saved for exactly this login before the password file. */
export async function findPassword(
  address: PostgresAddress,
  { isOfRun, file, warn }: CredentialContext,
  io: Io,
): Promise<Password | undefined> {
  const { password, hosts, login } = address
  const variable = isOfRun ? io.env['PGPASSWORD'] : undefined
  const saved = savedToken(file.saved, login)
  let found: Password | undefined
  if (password !== undefined) found = { source: 'address', place: 'the address', of: () => password }
  else if (variable) found = { source: 'variable', place: 'PGPASSWORD', of: () => variable }
  else if (saved) {
    assertTrusted(file, `The saved password for ${login} is not sent`)
    found = { source: 'file', place: file.path ?? '', savedAt: saved.savedAt, of: () => saved.token }
  } else {
    const passwords = await readPasswordFile(io, warn)
    if (passwords && hosts.some((host) => passwords.find(address, host)))
      found = { source: 'password-file', place: passwords.path, of: (host) => passwords.find(address, host) }
  }
  for (const host of hosts) redactPassword(found?.of(host), address, io)
  return found
}

/** Several stores may use the password file, but one warning for a run is enough. */
const warned = new WeakSet<Io>()

/** Skips a password that the address contains anyway: a `***` there would reveal which part it is. */
export function redactPassword(password: string | undefined, { href }: PostgresAddress, { secrets }: Io): void {
  if (password && !href.includes(password)) secrets.add(password)
}

/** On Windows, libpq's default files are in one folder. */
export function libpqFile(path: string, nameOnWindows: string, { env }: Io): string {
  return isWindows && env['APPDATA'] ? join(env['APPDATA'], 'postgresql', nameOnWindows) : path
}

/**
 * Reads PGPASSFILE, or libpq's default (https://www.postgresql.org/docs/current/libpq-pgpass.html); undefined if it is
 * missing or unusable.
 */
export async function readPasswordFile(io: Io, warn: (message: string) => Promise<void>) {
  try {
    const path = io.resolvePath(io.env['PGPASSFILE'] || libpqFile('~/.pgpass', 'pgpass.conf', io))
    const stats = statSync(path)
    const isOpen = !isWindows && (stats.mode & 0o077) !== 0
    const mode = `it is open to others ${octal(stats.mode)}. Fix it with: chmod 600 ${shellWord(path)}`
    if (!stats.isFile() || isOpen) {
      const isNew = !warned.has(io)
      warned.add(io)
      const why = stats.isFile() ? mode : 'it is not a regular file'
      if (isNew) await warn(`The password file ${path} is ignored, because ${why}`)
      return undefined
    }
    const lines = readFileSync(path, 'utf8').split(/\r?\n/)
    return { path, find: (address: UserAndDatabase, host: PostgresHost) => findIn(lines, address, host) }
  } catch (error) {
    const isWithoutHome = error instanceof PlantsError && !io.env['PGPASSFILE']
    if (!isWithoutHome && systemCode(error) === undefined) throw error
    return undefined // as libpq does
  }
}

type UserAndDatabase = Pick<PostgresAddress, 'user' | 'database'>

function findIn(
  lines: string[],
  { user, database }: UserAndDatabase,
  { host, port }: PostgresHost,
): string | undefined {
  const wanted = [host === '/var/run/postgresql' ? 'localhost' : host, String(port), database, user]
  for (const line of lines) {
    if (line.startsWith('#')) continue
    const [, ...fields] =
      /^((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):(.*)$/s.exec(line) ?? []
    const isFor = (text: string, index: number) => fields[index] === '*' || withoutEscapes(fields[index]) === text
    if (fields.length > 0 && wanted.every(isFor)) return withoutEscapes(fields[4]) || undefined
  }
  return undefined
}

/** Like libpq, unescapes any character, not only `:` and `\`. */
function withoutEscapes(text = ''): string {
  return text.replace(/\\(.)/gs, '$1')
}
