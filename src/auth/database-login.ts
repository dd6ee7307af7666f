import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isWindows, PlantsError, systemCode, usageError } from '../platform/errors.js'
import { octal } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { shellOption, shellWord } from '../platform/shell.js'
import { isLoopback } from '../platform/urls.js'
import type { PostgresAddress, PostgresHost } from '../stores/common/address.js'
import { passwordFile } from '../stores/common/address.js'
import type { Login } from '../stores/postgres/postgres-options.js'
import { type CredentialContext, savedToken } from './credentials.js'

interface Password {
  place: string
  of(host: PostgresHost): string | undefined
}

/** As libpq, takes the password of the address, else PGPASSWORD for the store of this run, else the password file. */
export async function findPassword(
  address: PostgresAddress,
  { isOfRun, file, warn }: CredentialContext,
  io: Io,
): Promise<Password | undefined> {
  const { password, hosts, login, href } = address
  if (savedToken(file.saved, login)) {
    const instead = `Set PGPASSWORD, or write it to ${passwordFile}`
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

/** Undefined for a user without a home directory. On Windows, libpq's default files are in one folder. */
function libpqFile(
  path: string,
  nameOnWindows: string,
  { env, resolvePath }: Io,
): string | undefined {
  if (isWindows && env['APPDATA']) return join(env['APPDATA'], 'postgresql', nameOnWindows)
  try {
    return resolvePath(path)
  } catch (error) {
    if (error instanceof PlantsError) return undefined
    throw error
  }
}

/**
 * Reads PGPASSFILE, or libpq's default (https://www.postgresql.org/docs/current/libpq-pgpass.html); undefined if it is
 * missing or unusable. The package pgpass ignores the file while PGPASSWORD is set, which may be for another store, and
 * reads `./.pgpass` without a home directory.
 */
export async function readPasswordFile(io: Io, warn: (message: string) => Promise<void>) {
  const { PGPASSFILE } = io.env
  const path = PGPASSFILE ? io.resolvePath(PGPASSFILE) : libpqFile('~/.pgpass', 'pgpass.conf', io)
  if (path === undefined) return undefined
  try {
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
    return {
      path,
      find: (address: UserAndDatabase, host: PostgresHost) => findIn(lines, address, host),
    }
  } catch (error) {
    if (systemCode(error) === undefined) throw error
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
      /^((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):((?:\\.|[^\\:])*):(.*)$/s.exec(
        line,
      ) ?? []
    const isFor = (text: string, index: number) =>
      fields[index] === '*' || withoutEscapes(fields[index]) === text
    if (fields.length > 0 && wanted.every(isFor)) return withoutEscapes(fields[4]) || undefined
  }
  return undefined
}

/** Like libpq, unescapes any character, not only `:` and `\`. */
function withoutEscapes(text = ''): string {
  return text.replace(/\\(.)/gs, '$1')
}

/**
 * Reads the certificates for a database (https://www.postgresql.org/docs/current/libpq-ssl.html). Throws `usage`
 * for unusable files, and for `verify-ca` without a root certificate.
 */
export async function readLoginCertificates(
  { hosts, name, sslmode, sslrootcert, sslcert, sslkey }: PostgresAddress,
  caCert: { path: string; source: string } | undefined,
  io: Io,
): Promise<Pick<Login, 'ca' | 'cert' | 'key'>> {
  const files: Pick<Login, 'ca' | 'cert' | 'key'> = {
    ca: undefined,
    cert: undefined,
    key: undefined,
  }
  if (sslmode === 'disable' || hosts.every(isSocket)) return files
  const given = sslmode.startsWith('verify') || sslmode === 'require' ? caCert : undefined
  const usual = libpqFile('~/.postgresql/root.crt', 'root.crt', io)
  const root = sslrootcert ?? given?.path ?? (usual && existsSync(usual) ? usual : undefined)
  if (root === undefined && sslmode === 'verify-ca') {
    const message = `${name} has no root certificate to verify the server with, and ~/.postgresql/root.crt does not exist`
    const instead = 'sslmode=verify-full, which trusts the certificates of the system'
    throw usageError(message, `Set sslrootcert or --ca-cert, or use ${instead}`)
  }
  if ((sslcert === undefined) !== (sslkey === undefined)) {
    const [is, lacks] = sslcert === undefined ? ['key', 'sslcert'] : ['certificate', 'sslkey']
    throw usageError(`${name} has a client ${is}, but no ${lacks}`, 'Give both sslcert and sslkey')
  }
  const { readCertificates, readKeyPair } = await import('../platform/certificates.js')
  if (root !== undefined && root !== 'system')
    files.ca = readCertificates(root, sslrootcert ? `sslrootcert of ${name}` : given?.source)
  if (sslcert === undefined || sslkey === undefined) return files
  const pair = await readKeyPair(sslcert, sslkey, 'sslcert and sslkey')
  // The rule of libpq: 0600 or stricter; 0640 for a key that root owns, which a group may read.
  const { uid, mode } = statSync(sslkey)
  if (!isWindows && (mode & (uid === 0 ? 0o037 : 0o077)) !== 0)
    throw usageError(
      `The key ${sslkey} is open to others ${octal(mode)}`,
      `Fix it with: chmod 600 ${shellWord(sslkey)}`,
    )
  return { ...files, ...pair }
}

export function exposureOf({ name, hosts, sslmode }: PostgresAddress): string | undefined {
  if (sslmode === 'verify-full' || hosts.every((host) => isSocket(host) || isLoopback(host.host)))
    return undefined
  return `The connection to ${name} is not safe from an attacker on the network, who could read it or impersonate the server. Set sslmode=verify-full in its address`
}

function isSocket({ host }: PostgresHost): boolean {
  return host.startsWith('/')
}
