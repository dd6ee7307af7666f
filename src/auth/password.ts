import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isWindows, octal, PlantsError, shellOption, shellWord, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import type { PostgresAddress, PostgresHost } from '../stores/common/address.js'
import { type CredentialContext, savedToken } from './credentials.js'

export interface Password {
  place: string
  of(host: PostgresHost): string | undefined
}

/** As in libpq: that of the address, PGPASSWORD for the store of this run, or the password file. */
export async function findPassword(
  address: PostgresAddress,
  { isOfRun, file, warn }: CredentialContext,
  io: Io,
): Promise<Password | undefined> {
  const { password, hosts, login, href } = address
  if (savedToken(file.saved, login)) {
    const instead = 'Set PGPASSWORD, or write it to ~/.pgpass'
    const fix = `${instead}, and remove it with: plants auth logout${shellOption('store', login)}`
    await warn(`The saved password for ${login} is ignored. ${fix}`) // an earlier version saved it
  }
  const variable = isOfRun ? io.env['PGPASSWORD'] : undefined
  let found: Password | undefined
  if (password !== undefined) found = { place: 'the address', of: () => password }
  else if (variable) found = { place: 'PGPASSWORD', of: () => variable }
  else {
    const passwords = await readPasswordFile(io, warn)
    if (passwords && hosts.some((host) => passwords.find(address, host)))
      found = { place: passwords.path, of: (host) => passwords.find(address, host) }
  }
  for (const host of hosts) {
    const secret = found?.of(host)
    // If the address contains it anyway, a `***` there would reveal which part it is.
    if (secret && !href.includes(secret)) io.secrets.add(secret)
  }
  return found
}

/** Several stores may use the password file, but one warning for a run is enough. */
const warned = new WeakSet<Io>()

/** On Windows, libpq's default files are in one folder. */
export function libpqFile(path: string, nameOnWindows: string, { env }: Io): string {
  return isWindows && env['APPDATA'] ? join(env['APPDATA'], 'postgresql', nameOnWindows) : path
}

/**
 * Reads PGPASSFILE, or libpq's default (https://www.postgresql.org/docs/current/libpq-pgpass.html); undefined if it is
 * missing or unusable. The package pgpass reads the environment itself, and neither skips comments nor knows that a
 * socket in the default directory is `localhost`.
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
