/*
 * Recognizes and describes failed connections to a server.
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

/** Says why a connection failed. The reason may list many names of a certificate. */
export function describeConnectionFailure(error: unknown): string {
  return truncate(describeReason(error), 200)
}
