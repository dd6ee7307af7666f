import { getSystemCode } from '../errors.js'

/**
 * OpenSSL reports one of these codes if the issuer of a certificate is in no list that is trusted
 * (https://docs.openssl.org/master/man3/X509_STORE_CTX_get_error/).
 */
const codes = [
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]

/** These say what is wrong with a certificate in plainer words than those of Node.js. */
export const otherHostText = 'its certificate is for another host'
export const expiredText = 'its certificate has expired'

/** Returns true if a handshake failed only because the issuer of the certificate is not trusted. */
export function isUnknownIssuer(error: unknown): boolean {
  return codes.includes(getSystemCode(error) ?? '')
}
