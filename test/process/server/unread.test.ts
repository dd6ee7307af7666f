import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { isSingleFile } from '../../helpers/differences.js'
import { isLinux } from '../../helpers/linux.js'
import { exchange, requestBytes } from '../../helpers/raw-http.js'
import { serve, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

test.runIf(isLinux)(
  'clients that read nothing of what they ask for do not take the memory of a service (needs /proc)',
  async () => {
    const env = { PLANTS_SERVE_TOKEN: testToken, NODE_OPTIONS: '--max-old-space-size=512' }
    // A Unix socket, whose buffers are smaller than those of TCP, so that the first response fills them.
    const folder = temporaryFolder()
    const service = await serve(['--allow', 'create,read', '--socket', join(folder, 's')], { env, folder })
    const large = { method: 'GET', target: '/plants/100' }
    for (const body of [`{"id":100,"name":"${'x'.repeat(1_048_000)}"}`, '{"id":1,"name":"Fern"}'])
      expect((await exchange(service, { body })).status).toBe(200)
    const requests = Buffer.concat(Array.from({ length: 32 }, () => requestBytes(testToken, large)))
    const readers = Array.from({ length: 72 }, () => {
      const socket = connect(service.place).pause()
      onTestFinished(() => void socket.destroy())
      socket.on('error', () => undefined).write(requests)
      return socket
    })
    let before = 0
    const isStill = () => {
      const last = before
      before = service.log.length
      return before === last && service.log.some(({ outcome }) => outcome === '503')
    }
    await expect.poll(isStill, { interval: 300 }).toBe(true)
    const small = await exchange(service, { method: 'GET', target: '/plants/1' })
    expect(small).toMatchObject({ status: 200, body: '{"id":1,"name":"Fern"}' })
    expect((await exchange(service, { body: '{"id":2,"name":"Moss"}' })).status).toBe(200)
    const [, peak = 'none'] = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8')) ?? []
    expect(Number(peak) / 1024).toBeLessThan(isSingleFile ? 600 : 350) // Bun has no such limit of its heap
    for (const socket of readers) socket.destroy()
    await expect.poll(async () => (await exchange(service, large)).status).toBe(200)
  },
)
