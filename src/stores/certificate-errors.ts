/*
 * Recognizes and describes the certificates for which a handshake with a server failed.
 */
import { describeReason, getSystemCode } from '../errors.js'
import { truncate } from '../platform/escape.js'

/**
 * OpenSSL reports one of these codes if the issuer of a certificate is in no list that is trusted
 * (https://docs.openssl.org/master/man3/X509_STORE_CTX_get_error/).
 */
const unknownIssuerCodes = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]

/** Returns true if a handshake failed only because the issuer of the certificate is not trusted. */
export function isUnknownIssuer(error: unknown): boolean {
  return unknownIssuerCodes.includes(getSystemCode(error) ?? '')
}

/** Says why a connection failed. The words for a certificate are plainer than those of Node.js. */
export function describeConnectionFailure(error: unknown): string {
  switch (getSystemCode(error)) {
    case 'CERT_HAS_EXPIRED':
      return 'its certificate has expired'
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `its certificate is for another host${formatCertificateNames(error)}`
    default:
      return describeReason(error)
  }
}

/** Formats the names in a certificate, such as `: DNS:plants.example.com`. */
function formatCertificateNames(error: unknown): string {
  const { cert } = error as { cert?: { subjectaltname?: string } }
  return cert?.subjectaltname ? `: ${truncate(cert.subjectaltname, 200)}` : ''
}
