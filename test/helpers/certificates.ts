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
  keyPath: string
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

export function certificate({
  names,
  isExpired = false,
  issuer,
  isAuthority = false,
}: Subject): Certificate {
  const folder = temporaryFolder()
  const [path, keyPath] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const extensions = [
    `subjectAltName=${names.join()}`,
    `basicConstraints=critical,CA:${isAuthority}`,
  ]
  const signer = issuer
    ? `-CA ${issuer.path} -CAkey ${issuer.keyPath} -CAcreateserial`
    : '-signkey key.pem'
  const steps = [
    'genpkey -out key.pem -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1',
    `req -new -key key.pem -out request.pem -subj /CN=plants -addext ${extensions.join(' -addext ')}`,
    `x509 -req -in request.pem -out cert.pem -days ${isExpired ? -1 : 2} -copy_extensions copy ${signer}`,
  ]
  if (!steps.every((step) => openssl(step, folder) === 0))
    throw new Error('openssl has made no certificate')
  return { cert: readFileSync(path, 'utf8'), key: readFileSync(keyPath, 'utf8'), path, keyPath }
}

function openssl(line: string, cwd?: string): number | null {
  return spawnSync('openssl', line.split(' '), { cwd }).status
}
