import { existsSync, statSync } from 'node:fs'
import { isWindows, malformed, octal, PlantsError, shellWord } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import type { PostgresAddress } from '../stores/common/address.js'
import type { Login } from '../stores/common/store.js'
import { libpqFile } from './password.js'

/**
 * Reads the certificates for a database: those of its address, else of `--ca-cert`, else of libpq's default files, if
 * they exist (https://www.postgresql.org/docs/current/libpq-ssl.html). Throws `malformed` for unusable files, for a key
 * that other users can read, and for `verify-ca` without a root certificate.
 */
export async function readLoginCertificates(
  address: PostgresAddress,
  { caCert }: { caCert: { path: string; source: string } | undefined },
  io: Io,
): Promise<Pick<Login, 'ca' | 'cert' | 'key'>> {
  const { hosts, name, sslmode, sslrootcert } = address
  if (sslmode === 'disable' || hosts.every(({ host }) => host.startsWith('/')))
    return { ca: undefined, cert: undefined, key: undefined }
  const given = sslmode.startsWith('verify') || sslmode === 'require' ? caCert : undefined
  const root = sslrootcert ?? given?.path ?? defaultFile('root.crt', io)
  if (root === undefined && sslmode === 'verify-ca') {
    const message = `${name} has no root certificate to verify the server with, and ~/.postgresql/root.crt does not exist`
    const instead = 'sslmode=verify-full, which trusts the certificates of the system'
    throw malformed(message, `Set sslrootcert or --ca-cert, or use ${instead}`)
  }
  const source = sslrootcert ? `sslrootcert of ${name}` : given?.source
  const own = await ownCertificate(address, io)
  if (root === undefined || root === 'system') return { ca: undefined, ...own }
  const { readCertificates } = await import('../platform/certificates.js')
  return { ca: readCertificates(root, source), ...own }
}

async function ownCertificate({ sslcert, sslkey, name }: PostgresAddress, io: Io) {
  const certPath = sslcert ?? defaultFile('postgresql.crt', io)
  const keyPath = sslkey ?? defaultFile('postgresql.key', io)
  if (certPath === undefined && sslkey === undefined) return { cert: undefined, key: undefined }
  if (certPath === undefined || keyPath === undefined) {
    const [is, lacks] = certPath === undefined ? ['key', 'sslcert'] : ['certificate', 'sslkey']
    throw malformed(`${name} has a client ${is}, but no ${lacks}`, 'Give both sslcert and sslkey')
  }
  const { readKeyPair } = await import('../platform/certificates.js')
  const pair = await readKeyPair(certPath, keyPath, 'sslcert and sslkey')
  // The rule of libpq: 0600 or stricter; 0640 for a key that root owns, which a group may read.
  const { uid, mode } = statSync(keyPath)
  const open = `The key ${keyPath} is open to others ${octal(mode)}`
  if (!isWindows && (mode & (uid === 0 ? 0o037 : 0o077)) !== 0)
    throw malformed(open, `Fix it with: chmod 600 ${shellWord(keyPath)}`)
  return pair
}

function defaultFile(file: string, io: Io): string | undefined {
  try {
    const path = io.resolvePath(libpqFile(`~/.postgresql/${file}`, file, io))
    return existsSync(path) ? path : undefined
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    return undefined // this user has no home directory
  }
}
