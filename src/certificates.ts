import { X509Certificate } from 'node:crypto'
import { PlantsError, systemCode } from './errors.js'
import { readTextFile } from './input.js'

/**
 * Reads PEM certificates.
 *
 * @param source where their file was named
 * @throws {PlantsError} `malformed`
 */
export function readCertificates({ path, source }: { path: string; source: string }): string {
  const hint = `Give a file of PEM certificates with ${source.startsWith('-') ? source : `ca-cert, which came from ${source}`}`
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
