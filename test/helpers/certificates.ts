import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from './temporary.js'

/** Certificates are made by openssl: tests that need it say so in their names. */
export const hasOpenssl = openssl('version') === 0

export interface Certificate {
  /** PEM */
  cert: string
  key: string
  path: string
}

export interface Subject {
  /** as subjectAltName takes them: "DNS:localhost", "IP:127.0.0.1" */
  names: string[]
  /** valid until yesterday */
  isExpired?: boolean
  /** who signs it; itself when nobody is given */
  issuer?: Certificate
  /** may sign others */
  isAuthority?: boolean
  /** has an RSA key, instead of one on a curve */
  isRsa?: boolean
}

export function certificate({ names, isExpired = false, issuer, isAuthority, isRsa }: Subject): Certificate {
  const folder = temporaryFolder()
  const [key, request, path] = [join(folder, 'key.pem'), join(folder, 'request.pem'), join(folder, 'cert.pem')]
  const algorithm = isRsa ? ['RSA'] : ['EC', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  const extensions = [`subjectAltName=${names.join(',')}`, `basicConstraints=critical,CA:${isAuthority ?? false}`]
  const signer = issuer
    ? ['-CA', issuer.path, '-CAkey', issuer.path.replace('cert.pem', 'key.pem'), '-CAcreateserial']
    : ['-signkey', key]
  const steps = [
    ['genpkey', '-out', key, '-algorithm', ...algorithm],
    [
      'req',
      '-new',
      '-key',
      key,
      '-out',
      request,
      '-subj',
      '/CN=plants',
      ...extensions.flatMap((ext) => ['-addext', ext]),
    ],
    [
      'x509',
      '-req',
      '-in',
      request,
      '-out',
      path,
      '-days',
      isExpired ? '-1' : '2',
      '-copy_extensions',
      'copy',
      ...signer,
    ],
  ]
  if (!steps.every((step) => openssl(...step) === 0)) throw new Error('openssl has made no certificate')
  return { cert: readFileSync(path, 'utf8'), key: readFileSync(key, 'utf8'), path }
}

function openssl(...args: string[]): number | null {
  return spawnSync('openssl', args).status
}
