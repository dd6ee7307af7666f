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
}

export function certificate({ names, isExpired = false, issuer, isAuthority = false }: Subject): Certificate {
  const folder = temporaryFolder()
  const [key, request, path] = ['key', 'request', 'cert'].map((name) => join(folder, `${name}.pem`)) as [
    string,
    string,
    string,
  ]
  const extensions = [
    `subjectAltName=${names.join(',')}`,
    `basicConstraints=critical,CA:${isAuthority ? 'TRUE' : 'FALSE'}`,
  ]
  const signer = issuer
    ? ['-CA', issuer.path, '-CAkey', issuer.path.replace('cert.pem', 'key.pem'), '-CAcreateserial']
    : ['-signkey', key]
  const isMade =
    openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', key) === 0 &&
    openssl(
      'req',
      '-new',
      '-key',
      key,
      '-subj',
      '/CN=plants',
      ...extensions.flatMap((text) => ['-addext', text]),
      '-out',
      request,
    ) === 0 &&
    openssl(
      'x509',
      '-req',
      '-in',
      request,
      '-days',
      isExpired ? '-1' : '2',
      '-copy_extensions',
      'copy',
      ...signer,
      '-out',
      path,
    ) === 0
  if (!isMade) throw new Error('openssl has made no certificate')
  return { cert: readFileSync(path, 'utf8'), key: readFileSync(key, 'utf8'), path }
}

function openssl(...args: string[]): number | null {
  return spawnSync('openssl', args).status
}
