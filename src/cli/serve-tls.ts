import { createSecureContext } from 'node:tls'
import { PlantsError } from '../platform/errors.js'
import { readTextFile } from '../platform/text-files.js'
import type { Tls } from '../server/server.js'

/**
 * Reads a certificate and its key, both PEM.
 *
 * @throws {PlantsError} `malformed` when they cannot be read, or do not belong together
 */
export function readTls(certPath: string, keyPath: string): Tls {
  const hint = 'Give PEM files with --tls-cert and --tls-key'
  const tls = { cert: readTextFile(certPath, hint), key: readTextFile(keyPath, hint) }
  try {
    createSecureContext(tls)
    return tls
  } catch (error) {
    const message = `${certPath} and ${keyPath} are not a certificate and its key`
    throw new PlantsError('malformed', message, {
      hint: 'Give two PEM files that belong together, the key without a password',
      cause: error,
    })
  }
}
