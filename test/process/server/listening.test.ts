import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { isLinux } from '../../helpers/linux.js'
import { connectTo, exchange, requestBytes } from '../../helpers/raw-http.js'
import { launch, serve, testToken } from '../../helpers/service.js'
import { World } from '../../helpers/world.js'

const fern = '{"id":1,"name":"Fern"}'

test.runIf(isLinux)(
  'idle connections leave a service the files that it needs, however few it may open (needs /proc)',
  async () => {
    // What this process has open without FD_CLOEXEC, such as terminals of other tests, is not for the service.
    const close = 'for fd in $(ls /proc/$$/fd); do if [ $fd -gt 2 ]; then eval "exec $fd>&-"; fi; done'
    const through = ['bash', '-c', `${close}; ulimit -n 60 && exec "$@"`, 'bash']
    const service = await serve(['--allow', 'create,read'], { through })
    const [reader, writer] = [await connectTo(service.place), await connectTo(service.place)]
    for (let count = 0; count < 120; count += 1) await connectTo(service.place)
    reader.send(requestBytes(testToken, { method: 'GET', headers: { Accept: 'application/x-ndjson' } }))
    const [head] = await once(reader.socket, 'data')
    expect({ head: String(head), log: service.log }).toMatchObject({ head: expect.stringMatching(/^HTTP\/1\.1 200 /) })
    expect((await writer.send(requestBytes(testToken, { body: fern })).answer())?.status).toBe(200)
    const hint = 'Raise it with: ulimit -n 10128'
    const message = `At most 20 connections are accepted, not 10000: the limit of open files is 60. ${hint}`
    expect(service.log.filter(({ level }) => level !== 'info').map(({ msg }) => msg)).toEqual([message])
  },
)

test('stdout may be closed, before the address and after it', async () => {
  const { home } = new World()
  const path = join(home, 'socket')
  const { child, ready, ended } = launch(['--socket', path], home)
  onTestFinished(() => void child.kill('SIGKILL'))
  ready.catch(() => undefined)
  child.stdout.destroy()
  const created = () => exchange({ place: { path }, token: testToken }, { body: fern }).catch(() => undefined)
  await expect.poll(async () => (await created())?.status, { timeout: 10_000, interval: 10 }).toBeDefined()
  child.kill('SIGTERM')
  expect((await ended).code).toBe(0)
})

test('a Unix socket is for this user and group alone, replaces one that was left behind, and goes with the service', async () => {
  const world = new World()
  const path = join(world.home, 'socket')
  const options = { folder: world.home }
  const first = await serve(['--socket', path, '--base-path', '/v1'], options)
  expect(first.address).toBe(`unix:${path}:/v1`)
  expect(statSync(path).mode & 0o777).toBe(0o660)
  expect(await world.spawn(`serve --socket ${path}`, { env: { PLANTS_SERVE_TOKEN: testToken } })).toMatchObject({
    code: 4,
    out: '',
    err: expect.stringContaining(`${path} is in use by another program`),
  })
  const create = world.spawn(`create --id 1 --name Fern --store ${first.address}`, { env: { PLANTS_TOKEN: testToken } })
  expect(await create).toEqual({ code: 0, out: '{"name":"Fern"}\n', err: '' })
  await first.stop('SIGKILL')
  expect(existsSync(path)).toBe(true)
  const second = await serve(['--socket', path], options)
  expect((await exchange(second, { body: '{"id":2,"name":"Moss"}' })).status).toBe(200)
  expect((await second.stop()).code).toBe(0)
  expect(existsSync(path)).toBe(false)
})
