import { X509Certificate } from 'node:crypto'
import { statSync } from 'node:fs'
import { inputError, systemCode } from './errors.js'
import { whyOthersCanWrite } from './files.js'
import { readTextFile } from './text-files.js'

/** Throws `input`, whose hint names `source`: the flag or the setting of the path. */
export function readCertificates(path: string, source?: string): string {
  const origin = source?.startsWith('-') ? ` with ${source}` : `. This one came from ${source}`
  const hint = `Give a file of PEM certificates${source === undefined ? '' : origin}`
  const text = readTextFile(path, hint)
  const certificates = text.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? []
  if (certificates.length === 0) throw inputError(`${path} contains no PEM certificate`, hint)
  try {
    for (const certificate of certificates) new X509Certificate(certificate)
    return text
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    throw inputError(`${path} contains an invalid certificate`, hint, error)
  }
}

/** Throws `input` if others can write the key, or the files do not belong together. `names` are their options. */
export async function readKeyPair(certPath: string, keyPath: string, names: string) {
  const { createSecureContext } = await import('node:tls')
  const files = `Use PEM files for ${names}`
  const stats = statSync(keyPath, { throwIfNoEntry: false })
  const why = stats && whyOthersCanWrite(stats)
  if (why !== undefined)
    throw inputError(
      `The key ${keyPath} ${why}`,
      'Use a key of your own, which only you can change: chmod 600',
    )
  const pair = { cert: readTextFile(certPath, files), key: readTextFile(keyPath, files) }
  try {
    createSecureContext(pair)
    return pair
  } catch (error) {
    const hint = 'Use a certificate and its key in PEM files, the key without a passphrase'
    throw inputError(`${certPath} and ${keyPath} are not a certificate and its key`, hint, error)
  }
}
