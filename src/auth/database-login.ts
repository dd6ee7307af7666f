/*
 * Finds the password and the certificates for a PostgreSQL database, where `psql` finds them.
 */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createUsageError, ignoreSystemError, isWindows } from '../errors.js'
import { formatMode } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { quoteWord } from '../platform/shell.js'
import {
  addPassword,
  isSocket,
  type PostgresAddress,
  type PostgresHost,
} from '../stores/address.js'
import type { Login } from '../stores/credentials.js'

interface PasswordSource {
  /** Where the password comes from, for people: `the address`, or the path of a file. */
  origin: string
  /** Returns the password for a host. A password file may have a different one for each host. */
  findForHost(host: PostgresHost): string | undefined
}

/**
 * Finds the password as libpq does: in the address, or else in PGPASSWORD, or else in the password
 * file. The package pgpass is not used, because it ignores the file while the process has
 * PGPASSWORD, and reads `./.pgpass` where there is no home directory.
 *
 * @param log receives a line that says why a password file is ignored
 */
export function findPassword(
  address: PostgresAddress,
  io: Io,
  log: (line: string) => void,
): PasswordSource | undefined {
  const source = findExplicitPassword(address, io) ?? readPasswordFile(address, io, log)
  for (const host of address.hosts) {
    addPassword([source?.findForHost(host)], address.href, io.secrets)
  }
  return source
}

function findExplicitPassword(
  { password }: PostgresAddress,
  { env }: Io,
): PasswordSource | undefined {
  if (password !== undefined) return { origin: 'the address', findForHost: () => password }
  const secret = env['PGPASSWORD']
  return secret ? { origin: 'PGPASSWORD', findForHost: () => secret } : undefined
}

/** Returns undefined if the file has no password for any of the hosts. */
function readPasswordFile(
  address: PostgresAddress,
  { env: { PGPASSFILE, APPDATA }, resolvePath }: Io,
  log: (line: string) => void,
): PasswordSource | undefined {
  const windowsPath = isWindows && APPDATA && join(APPDATA, 'postgresql', 'pgpass.conf')
  const path = resolvePath(PGPASSFILE || windowsPath || '~/.pgpass')
  const stats = ignoreSystemError(() => statSync(path))
  if (!stats?.isFile()) return undefined
  if (!isWindows && (stats.mode & 0o077) !== 0) {
    const reason = `other users can access it ${formatMode(stats.mode)}`
    log(`* password file ${path} ignored: ${reason}. Fix it with: chmod 600 ${quoteWord(path)}`)
    return undefined
  }
  const content = ignoreSystemError(() => readFileSync(path, 'utf8')) ?? ''
  const findForHost = (host: PostgresHost) => parsePasswordFile(content, address, host)
  return address.hosts.some(findForHost) ? { origin: path, findForHost } : undefined
}

/**
 * Finds the password in the content of a password file. Its lines have the form
 * `db.example.com:5432:plants:ann:secret`, and the first line that matches the login counts. `*`
 * matches everything, and `\:` is a colon.
 * https://www.postgresql.org/docs/current/libpq-pgpass.html describes the format.
 */
export function parsePasswordFile(
  content: string,
  { user, database }: Pick<PostgresAddress, 'user' | 'database'>,
  { host, port }: PostgresHost,
): string | undefined {
  // libpq calls the server at its default folder of sockets localhost, too.
  const name = host === '/var/run/postgresql' ? 'localhost' : host
  const addressFields = [name, String(port), database, user]
  const removeEscapes = (field = '') => field.replace(/\\(.)/gs, '$1')
  for (const line of content.split(/\r?\n/)) {
    const fields = line.split(unescapedColon)
    const isMatch = addressFields.every(
      (value, column) => fields[column] === '*' || removeEscapes(fields[column]) === value,
    )
    if (!isMatch || fields.length < 5 || line.startsWith('#')) continue
    // A password may contain colons that are not escaped.
    return removeEscapes(fields.slice(4).join(':')) || undefined
  }
  return undefined
}

/**
 * Matches a colon that ends a field: in `a\:b`, the colon is escaped and belongs to the field. In
 * `a\\:b`, the backslash is escaped, so the field is `a\` and ends there.
 */
const unescapedColon = /(?<=(?<!\\)(?:\\\\)*):/

/**
 * Reads the certificates that a login needs. Without TLS, it needs none. The server is verified
 * with the certificates of `sslrootcert`, or else with those of --ca-cert. `sslmode=prefer`
 * verifies no server, so --ca-cert, which may be set for other stores, is not read for it.
 *
 * @throws {PlantsError} `usage` for `verify-ca` without a root certificate, and `input` for files
 *   that cannot be used
 */
export async function readLoginCertificates(
  { hosts, name, sslmode, sslrootcert, sslcert, sslkey }: PostgresAddress,
  caPath: string | undefined,
): Promise<Pick<Login, 'ca' | 'cert' | 'key'>> {
  const noCertificates = { ca: undefined, cert: undefined, key: undefined }
  if (sslmode === 'disable' || hosts.every(isSocket)) return noCertificates
  const root = sslrootcert ?? (sslmode === 'prefer' ? undefined : caPath)
  if (root === undefined && sslmode === 'verify-ca')
    throw createUsageError(
      `sslmode=verify-ca needs a root certificate to verify ${name}`,
      'Set sslrootcert in the address to a file with the root certificate',
    )
  if ((sslcert === undefined) !== (sslkey === undefined))
    throw createUsageError(`${name} has sslcert or sslkey, but not both`, 'Set both')
  const { readCertificates, readKeyPair } = await import('../platform/certificates.js')
  const ca = root === undefined || root === 'system' ? undefined : readCertificates(root)
  if (sslcert === undefined || sslkey === undefined) return { ...noCertificates, ca }
  return { ca, ...readKeyPair(sslcert, sslkey) }
}
