import { spawnSync } from 'node:child_process'
import { rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createSystemContext, readCertificates } from '../../../src/platform/certificates.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'

const file = () => join(createTemporaryFolder(), 'bundle.pem')

test('a file of certificates above 16 MiB is rejected as invalid input', () => {
  const path = file()
  writeFileSync(path, '')
  truncateSync(path, 16 * 1_048_576 + 1)
  const error = { kind: 'input', message: expect.stringContaining('file too large') }
  expect(() => readCertificates(path)).toThrow(expect.objectContaining(error))
})

test.skipIf(process.platform === 'win32')(
  'a device without an end is rejected as invalid input',
  () => {
    const error = { kind: 'input', message: expect.stringContaining('it is not a file') }
    expect(() => readCertificates('/dev/zero')).toThrow(expect.objectContaining(error))
  },
)

test.skipIf(process.platform !== 'linux')(
  'a bundle of the system that is not a regular file, or is invalid or too large, is ignored',
  () => {
    const path = file()
    spawnSync('mkfifo', [path])
    createSystemContext({ SSL_CERT_FILE: path })
    createSystemContext({ SSL_CERT_FILE: '/dev/zero' })
    rmSync(path)
    writeFileSync(path, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n')
    expect(() => createSystemContext({ SSL_CERT_FILE: path })).not.toThrow()
    truncateSync(path, 600 * 1_048_576)
    createSystemContext({ SSL_CERT_FILE: path })
  },
)
