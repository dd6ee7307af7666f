import { createPrivateKey, X509Certificate } from 'node:crypto'
import { statSync } from 'node:fs'
import * as tls from 'node:tls'
import { createInputError, ignoreSystemError } from '../errors.js'
import { explainWriteAccess, readSmallFile } from './files.js'
import type { Io } from './io.js'
import { readTextFile } from './text-files.js'

/**
 * Reads a file of trusted certificates.
 *
 * @throws {PlantsError} `input` for a file without a PEM certificate
 */
export function readCertificates(path: string): string {
  const hint = 'Give a file that contains PEM certificates'
  const text = readTextFile(path, hint)
  try {
    new X509Certificate(text)
  } catch (error) {
    throw createInputError(`${path} contains no PEM certificate`, hint, error)
  }
  return text
}

/**
 * Reads the certificate and the key of a server.
 *
 * @throws {PlantsError} `input` if others can write the key, or the files are no pair
 */
export function readKeyPair(certPath: string, keyPath: string) {
  const hint = 'Give a certificate in PEM, and its key in PEM without a passphrase'
  const pair = { cert: readTextFile(certPath, hint), key: readTextFile(keyPath, hint) }
  const reason = explainWriteAccess(statSync(keyPath))
  if (reason !== undefined)
    throw createInputError(
      `The key ${keyPath} ${reason}`,
      'Make sure that only you can change the key: chmod 600',
    )
  let cause: unknown
  try {
    tls.createSecureContext(pair)
    // OpenSSL accepts an empty certificate, and the key of another type.
    if (new X509Certificate(pair.cert).checkPrivateKey(createPrivateKey(pair.key))) return pair
  } catch (error) {
    cause = error
  }
  throw createInputError(
    `${certPath} and ${keyPath} are not a certificate and the key for it`,
    hint,
    cause,
  )
}

/**
 * Builds a TLS context that trusts the certificates of Node.js and of the system. From 22.15 on,
 * Node.js lists the certificates of the system. For an older Node.js on Linux, they are read from
 * the file that OpenSSL and curl read.
 *
 * This takes about 50 ms, so it is called only after a handshake with the certificates of Node.js
 * has failed.
 *
 * @param pair the certificate of the client and its key in PEM, if it has one
 * @returns undefined if no certificates of the system are found
 */
export function createSystemContext(
  env: Io['env'],
  pair?: { cert: string | undefined; key: string | undefined },
): tls.SecureContext | undefined {
  const system = listCertificates?.('system') ?? readBundles(getSystemBundles(env))
  if (system.length === 0) return undefined
  const ownCertificates = listCertificates?.('default') ?? [
    ...tls.rootCertificates,
    ...readBundles([env['NODE_EXTRA_CA_CERTS']]),
  ]
  return tls.createSecureContext({ ...pair, ca: [...new Set([...ownCertificates, ...system])] })
}

/** The types of Node.js 20 lack this function. */
const { getCACertificates: listCertificates } = tls as {
  getCACertificates?: (type: 'default' | 'system') => string[]
}

/**
 * Lists the files that may have the certificates of the system. The first path is that of Debian,
 * Alpine and SUSE, and the second one is that of Fedora and Red Hat.
 */
function getSystemBundles({ SSL_CERT_FILE }: Io['env']): string[] {
  if (process.platform !== 'linux') return []
  if (SSL_CERT_FILE) return [SSL_CERT_FILE]
  return ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt']
}

/** Returns the certificates of the first file that can be read. */
function readBundles(paths: (string | undefined)[]): string[] {
  for (const path of paths) {
    const text = path && ignoreSystemError(() => readSmallFile(path).bytes.toString('latin1'))
    if (text) return text.match(pemCertificate) ?? []
  }
  return []
}

const pemCertificate = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g
