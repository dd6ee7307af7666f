import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { NetConnectOpts } from 'node:net'
import { connect } from 'node:tls'
import { expect, test } from 'vitest'
import { readKeyPair } from '../../src/platform/certificates.js'
import { createCertificate, hasOpenssl } from '../helpers/sandbox/certificates.js'
import { parseObjects } from '../helpers/sandbox/sandbox.js'
import { quickStore, serveStore } from '../helpers/scripted-server/service.js'

test.runIf(hasOpenssl)(
  'a service uses a renewed certificate once its key is there, and the old one until then (needs openssl)',
  async () => {
    const [old, renewed] = [
      createCertificate({ names: ['DNS:old'] }),
      createCertificate({ names: ['DNS:new'] }),
    ]
    const { path, keyPath } = old
    const read = () => readKeyPair(path, keyPath)
    const service = await serveStore(quickStore, {
      tls: { paths: [path, keyPath], intervalMs: 20, read },
    })
    const served = async () => {
      const endpoint = service.endpoint as NetConnectOpts & { host: string }
      const socket = connect({ ...endpoint, rejectUnauthorized: false })
      await once(socket, 'secureConnect')
      const { subjectaltname } = socket.getPeerCertificate()
      socket.destroy()
      return subjectaltname
    }
    const messages = () => parseObjects(service.log()).map(({ msg }) => msg)
    const mixed = `${path} and ${keyPath} are not a certificate and the key for it`
    // Again until it is seen: what is written before the first look is no change.
    const renew = () => {
      writeFileSync(path, renewed.cert)
      return messages()
    }
    await expect.poll(renew).toContain(mixed)
    expect(await served()).toBe('DNS:old')
    writeFileSync(keyPath, renewed.key)
    await expect.poll(served).toBe('DNS:new')
    expect(messages().at(-1)).toBe('The certificate was reloaded')
  },
)
