import { createPrivateKey, X509Certificate } from 'node:crypto'
import { statSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { inputError } from '../errors.js'
import { whyOthersCanWrite } from './files.js'
import { readTextFile } from './text-files.js'

/** Throws `input` for a file without a PEM certificate. */
export function readCertificates(path: string): string {
  const hint = 'Give a file of PEM certificates'
  const text = readTextFile(path, hint)
  try {
    new X509Certificate(text)
  } catch (error) {
    throw inputError(`${path} contains no PEM certificate`, hint, error)
  }
  return text
}

/** Throws `input` if others can write the key, or the files are no pair. */
export function readKeyPair(certPath: string, keyPath: string, optionNames: string) {
  const hint = `Use PEM files for ${optionNames}, the key without a passphrase`
  const pair = { cert: readTextFile(certPath, hint), key: readTextFile(keyPath, hint) }
  const why = whyOthersCanWrite(statSync(keyPath))
  if (why !== undefined)
    throw inputError(`The key ${keyPath} ${why}`, 'Use a key that only you can change: chmod 600')
  let cause: unknown
  try {
    createSecureContext(pair)
    // OpenSSL accepts an empty certificate, and the key of another type.
    if (new X509Certificate(pair.cert).checkPrivateKey(createPrivateKey(pair.key))) return pair
  } catch (error) {
    cause = error
  }
  throw inputError(`${certPath} and ${keyPath} are not a certificate and its key`, hint, cause)
}
