import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isWindows, unlessSystemError, usageError } from '../errors.js'
import { formatMode } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { quoteWord } from '../platform/shell.js'
import { isSocket, type PostgresAddress, type PostgresHost } from '../stores/address.js'
import type { Login } from '../stores/credentials.js'

interface PasswordSource {
  origin: string
  /** Returns the password for a host. A password file may have another one for each. */
  findFor(host: PostgresHost): string | undefined
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
  const found = findGivenPassword(address, io) ?? readPasswordFile(address, io, log)
  for (const host of address.hosts) {
    const secret = found?.findFor(host)
    // If the address contains it anyway, a `***` there would reveal which part it is.
    if (secret && !address.href.includes(secret)) io.secrets.add(secret)
  }
  return found
}

function findGivenPassword({ password }: PostgresAddress, { env }: Io): PasswordSource | undefined {
  if (password !== undefined) return { origin: 'the address', findFor: () => password }
  const variable = env['PGPASSWORD']
  return variable ? { origin: 'PGPASSWORD', findFor: () => variable } : undefined
}

function readPasswordFile(
  address: PostgresAddress,
  { env: { PGPASSFILE, APPDATA }, resolvePath }: Io,
  log: (line: string) => void,
): PasswordSource | undefined {
  const ofWindows = isWindows && APPDATA && join(APPDATA, 'postgresql', 'pgpass.conf')
  const path = resolvePath(PGPASSFILE || ofWindows || '~/.pgpass')
  const stats = unlessSystemError(() => statSync(path))
  if (!stats?.isFile()) return undefined
  if (!isWindows && (stats.mode & 0o077) !== 0) {
    const why = `other users can access it ${formatMode(stats.mode)}`
    log(`* password file ${path} ignored: ${why}. Fix it with: chmod 600 ${quoteWord(path)}`)
    return undefined
  }
  const text = unlessSystemError(() => readFileSync(path, 'utf8')) ?? ''
  const findFor = (host: PostgresHost) => parsePasswordFile(text, address, host)
  return address.hosts.some(findFor) ? { origin: path, findFor } : undefined
}

/** The format is that of https://www.postgresql.org/docs/current/libpq-pgpass.html. */
export function parsePasswordFile(
  text: string,
  { user, database }: Pick<PostgresAddress, 'user' | 'database'>,
  { host, port }: PostgresHost,
): string | undefined {
  const name = host === '/var/run/postgresql' ? 'localhost' : host // the default folder of sockets
  const wanted = [name, String(port), database, user]
  const removeEscapes = (field = '') => field.replace(/\\(.)/gs, '$1')
  for (const line of text.split(/\r?\n/)) {
    const fields = line.split(unescapedColon)
    const isFor = wanted.every(
      (value, at) => fields[at] === '*' || removeEscapes(fields[at]) === value,
    )
    if (!isFor || fields.length < 5 || line.startsWith('#')) continue
    return removeEscapes(fields.slice(4).join(':')) || undefined
  }
  return undefined
}

const unescapedColon = /(?<=(?<!\\)(?:\\\\)*):/

/**
 * @throws {PlantsError} `usage` for `verify-ca` without a root certificate, and `input` for files
 *   that cannot be used
 */
export async function readLoginCertificates(
  { hosts, name, sslmode, sslrootcert, sslcert, sslkey }: PostgresAddress,
  caPath: string | undefined,
): Promise<Pick<Login, 'ca' | 'cert' | 'key'>> {
  const none = { ca: undefined, cert: undefined, key: undefined }
  if (sslmode === 'disable' || hosts.every(isSocket)) return none
  const root = sslrootcert ?? (sslmode === 'prefer' ? undefined : caPath)
  if (root === undefined && sslmode === 'verify-ca')
    throw usageError(
      `sslmode=verify-ca needs a root certificate to verify ${name}`,
      'Set sslrootcert or --ca-cert, or use sslmode=verify-full, which also trusts the certificates of the system',
    )
  if ((sslcert === undefined) !== (sslkey === undefined))
    throw usageError(`${name} has sslcert or sslkey, but not both`, 'Set both')
  const { readCertificates, readKeyPair } = await import('../platform/certificates.js')
  const ca = root === undefined || root === 'system' ? undefined : readCertificates(root)
  if (sslcert === undefined || sslkey === undefined) return { ...none, ca }
  return { ca, ...readKeyPair(sslcert, sslkey, 'sslcert and sslkey') }
}
