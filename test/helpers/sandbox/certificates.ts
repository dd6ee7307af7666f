import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTemporaryFolder } from './temporary-folder.js'

/** Certificates are made by openssl: tests that need it say so in their names. */
export const hasOpenssl = openssl('version') === 0

/** A certificate and its key in PEM, and the paths of their files. */
export type Certificate = Record<'cert' | 'key' | 'path' | 'keyPath', string>

interface Subject {
  /** as subjectAltName takes them: "DNS:localhost", "IP:127.0.0.1" */
  names: string[]
  isExpired?: boolean
  issuer?: Certificate
  isAuthority?: boolean
}

export function createCertificate({ names, isExpired, issuer, isAuthority = false }: Subject) {
  const folder = createTemporaryFolder()
  const [path, keyPath] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const curve = 'ec -pkeyopt ec_paramgen_curve:prime256v1'
  const extension = `subjectAltName=${names.join()} -addext basicConstraints=critical,CA:${isAuthority}`
  const signer = issuer
    ? `-CA ${issuer.path} -CAkey ${issuer.keyPath} -CAcreateserial`
    : '-signkey key.pem'
  const steps = [
    `req -new -newkey ${curve} -nodes -keyout key.pem -out request.pem -subj /CN=plants -addext ${extension}`,
    `x509 -req -in request.pem -out cert.pem -days ${isExpired ? -1 : 2} -copy_extensions copy ${signer}`,
  ]
  if (!steps.every((step) => openssl(step, folder) === 0)) throw new Error('openssl has failed')
  return { cert: readFileSync(path, 'utf8'), key: readFileSync(keyPath, 'utf8'), path, keyPath }
}

function openssl(line: string, cwd?: string): number | null {
  return spawnSync('openssl', line.split(' '), { cwd }).status
}
