import { createPrivateKey, X509Certificate } from 'node:crypto'
import { statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { inputError, unlessSystemError } from './errors.js'
import { whyOthersCanWrite } from './files.js'
import { readTextFile } from './text-files.js'

/** Throws `input` for a file without a PEM certificate. */
export function readCertificates(path: string): string {
  const hint = 'Give a file of PEM certificates'
  const text = readTextFile(path, hint)
  if (unlessSystemError(() => new X509Certificate(text))) return text
  throw inputError(`${path} contains no PEM certificate`, hint)
}

/** Throws `input` if others can write the key, or the files are no pair. */
export function readKeyPair(certPath: string, keyPath: string, names: string) {
  const hint = `Use PEM files for ${names}, the key without a passphrase`
  const pair = { cert: readTextFile(certPath, hint), key: readTextFile(keyPath, hint) }
  const why = whyOthersCanWrite(statSync(keyPath))
  if (why !== undefined)
    throw inputError(`The key ${keyPath} ${why}`, 'Use a key that only you can change: chmod 600')
  try {
    createSecureContext(pair)
    // OpenSSL accepts an empty certificate, and the key of another type.
    if (new X509Certificate(pair.cert).checkPrivateKey(createPrivateKey(pair.key))) return pair
    throw new Error('The key is of another certificate')
  } catch (error) {
    throw inputError(`${certPath} and ${keyPath} are not a certificate and its key`, hint, error)
  }
}
