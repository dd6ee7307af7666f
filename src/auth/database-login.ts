import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isWindows, unlessSystemError, usageError } from '../platform/errors.js'
import { octal } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { shellWord } from '../platform/shell.js'
import { isLoopback } from '../platform/urls.js'
import type { PostgresAddress, PostgresHost } from '../stores/common/address.js'
import type { Login } from '../stores/postgres/options.js'

export interface FoundPassword {
  place: string
  /** A password file may have one for each host. */
  of(host: PostgresHost): string | undefined
}

/**
 * As libpq, takes the password of the address, else PGPASSWORD, else the password file. The package pgpass ignores the file
 * while the process has PGPASSWORD, and reads `./.pgpass` without a home directory.
 *
 * @param log says why a password file is ignored
 */
export function findPassword(
  address: PostgresAddress,
  io: Io,
  log: (line: string) => void,
): FoundPassword | undefined {
  const found = givenPassword(address, io) ?? filedPassword(address, io, log)
  for (const host of address.hosts) {
    const secret = found?.of(host)
    // If the address contains it anyway, a `***` there would reveal which part it is.
    if (secret && !address.href.includes(secret)) io.secrets.add(secret)
  }
  return found
}

function givenPassword({ password }: PostgresAddress, { env }: Io): FoundPassword | undefined {
  if (password !== undefined) return { place: 'the address', of: () => password }
  const variable = env['PGPASSWORD']
  return variable ? { place: 'PGPASSWORD', of: () => variable } : undefined
}

function filedPassword(
  address: PostgresAddress,
  io: Io,
  log: (line: string) => void,
): FoundPassword | undefined {
  const path = passwordFilePath(io)
  const stats = unlessSystemError(() => statSync(path))
  if (!stats?.isFile()) return undefined
  if (!isWindows && (stats.mode & 0o077) !== 0) {
    const fix = `Fix it with: chmod 600 ${shellWord(path)}`
    log(`* password file ${path} ignored: it is open to others ${octal(stats.mode)}. ${fix}`)
    return undefined
  }
  const text = unlessSystemError(() => readFileSync(path, 'utf8')) ?? ''
  const of = (host: PostgresHost) => passwordIn(text, address, host)
  return address.hosts.some((host) => of(host)) ? { place: path, of } : undefined
}

function passwordFilePath({ env, resolvePath }: Io): string {
  const { PGPASSFILE, APPDATA } = env
  if (PGPASSFILE) return resolvePath(PGPASSFILE)
  return isWindows && APPDATA
    ? join(APPDATA, 'postgresql', 'pgpass.conf')
    : resolvePath('~/.pgpass')
}

/** A text in which a backslash stands before each `:` and `\\`. */
const field = String.raw`(?:\\.|[^\\:])*`
const entry = RegExp(
  `^(?<host>${field}):(?<port>${field}):(?<database>${field}):(?<user>${field}):(?<password>.*)$`,
  's',
)

/** The first password for a user at a host in the text of a file (https://www.postgresql.org/docs/current/libpq-pgpass.html). */
export function passwordIn(
  text: string,
  { user, database }: Pick<PostgresAddress, 'user' | 'database'>,
  { host, port }: PostgresHost,
): string | undefined {
  const isUsualSocket = host === '/var/run/postgresql'
  const wanted = { host: isUsualSocket ? 'localhost' : host, port: String(port), database, user }
  const unescaped = (part = '') => part.replace(/\\(?<character>.)/gs, '$<character>')
  for (const line of text.split(/\r?\n/)) {
    const found = line.startsWith('#') ? undefined : entry.exec(line)?.groups
    const isFor = Object.entries(wanted).every(
      ([name, value]) => found?.[name] === '*' || unescaped(found?.[name]) === value,
    )
    if (found && isFor) return unescaped(found['password']) || undefined
  }
  return undefined
}

type Certificates = Pick<Login, 'ca' | 'cert' | 'key'>

/**
 * Reads the certificates for a database (https://www.postgresql.org/docs/current/libpq-ssl.html). Throws `usage` for
 * `verify-ca` without a root certificate, and `input` for unusable files.
 */
export async function readLoginCertificates(
  { hosts, name, sslmode, sslrootcert, sslcert, sslkey }: PostgresAddress,
  caCert: { path: string; source: string } | undefined,
): Promise<Certificates> {
  const none: Certificates = { ca: undefined, cert: undefined, key: undefined }
  if (sslmode === 'disable' || hosts.every(isSocket)) return none
  const ofSetting = sslmode === 'prefer' ? undefined : caCert
  const root =
    sslrootcert === undefined ? ofSetting : { path: sslrootcert, source: `sslrootcert of ${name}` }
  if (root === undefined && sslmode === 'verify-ca')
    throw usageError(
      `${name} has no root certificate to verify the server with`,
      'Set sslrootcert or --ca-cert, or use sslmode=verify-full, which trusts the certificates of the system',
    )
  if ((sslcert === undefined) !== (sslkey === undefined))
    throw usageError(`${name} has only one of sslcert and sslkey`, 'Give both')
  const { readCertificates, readKeyPair } = await import('../platform/certificates.js')
  const isFile = root !== undefined && root.path !== 'system'
  const ca = isFile ? readCertificates(root.path) : undefined
  if (sslcert === undefined || sslkey === undefined) return { ...none, ca }
  return { ca, ...(await readKeyPair(sslcert, sslkey, 'sslcert and sslkey')) }
}

export function exposureOf({ name, hosts, sslmode }: PostgresAddress): string | undefined {
  if (sslmode === 'verify-full' || hosts.every((host) => isSocket(host) || isLoopback(host.host)))
    return undefined
  return `The connection to ${name} is not safe from an attacker on the network, who could read it or impersonate the server. Set sslmode=verify-full in its address`
}

function isSocket({ host }: PostgresHost): boolean {
  return host.startsWith('/')
}
