import { readFileSync } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { PlantsError, systemCode } from '../errors.js'
import type { Tls } from './server.js'

/**
 * Reads a certificate and its key, both PEM.
 *
 * @throws {PlantsError} `malformed` when they cannot be read, or do not belong together
 */
export function readTls(certPath: string, keyPath: string): Tls {
  const tls = { cert: read(certPath), key: read(keyPath) }
  try {
    createSecureContext(tls)
    return tls
  } catch (error) {
    const message = `${certPath} and ${keyPath} are not a certificate and its key`
    throw new PlantsError('malformed', message, { hint: 'Give PEM files, the key without a password', cause: error })
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = systemCode(error)
    if (code === undefined) throw error
    const message = `Could not read ${path}: ${code === 'ENOENT' ? 'there is no such file' : code}`
    throw new PlantsError('malformed', message, { hint: 'Give PEM files with --tls-cert and --tls-key', cause: error })
  }
}
