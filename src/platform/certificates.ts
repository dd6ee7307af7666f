import { X509Certificate } from 'node:crypto'
import { statSync } from 'node:fs'
import { inputError, systemCode } from './errors.js'
import { whyOthersCanWrite } from './files.js'
import { readTextFile } from './text-files.js'

/** Throws `input` for a file without a PEM certificate. */
export function readCertificates(path: string): string {
  const hint = 'Give a file of PEM certificates'
  const text = readTextFile(path, hint)
  try {
    new X509Certificate(text)
    return text
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    throw inputError(`${path} contains no PEM certificate`, hint, error)
  }
}

/** Throws `input` if others can write the key, or the files are no pair. @param names of their options */
export async function readKeyPair(certPath: string, keyPath: string, names: string) {
  const { createSecureContext } = await import('node:tls')
  const hint = `Use PEM files for ${names}, the key without a passphrase`
  const stats = statSync(keyPath, { throwIfNoEntry: false })
  const why = stats && whyOthersCanWrite(stats)
  if (why !== undefined)
    throw inputError(
      `The key ${keyPath} ${why}`,
      'Use a key of your own, which only you can change: chmod 600',
    )
  const pair = { cert: readTextFile(certPath, hint), key: readTextFile(keyPath, hint) }
  try {
    createSecureContext(pair)
    return pair
  } catch (error) {
    throw inputError(`${certPath} and ${keyPath} are not a certificate and its key`, hint, error)
  }
}
