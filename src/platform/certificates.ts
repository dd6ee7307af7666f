import { X509Certificate } from 'node:crypto'
import { PlantsError, systemCode } from './errors.js'
import { readTextFile } from './text-files.js'

/**
 * Reads PEM certificates.
 *
 * @param path absolute
 * @param source where it was named, if that was not just now
 * @throws {PlantsError} `malformed`
 */
export function readCertificates(path: string, source?: string): string {
  const hint = `Give a file of PEM certificates${source === undefined ? '' : source.startsWith('-') ? ` with ${source}` : `. This one came from ${source}`}`
  const text = readTextFile(path, hint)
  const certificates = text.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? []
  if (certificates.length === 0) throw new PlantsError('malformed', `${path} holds no PEM certificate`, { hint })
  try {
    for (const certificate of certificates) new X509Certificate(certificate)
    return text
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    throw new PlantsError('malformed', `${path} holds a certificate that is broken`, { hint, cause: error })
  }
}
