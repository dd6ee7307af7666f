import { once } from 'node:events'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isLinux } from '../../helpers/linux.js'
import { plants } from '../../helpers/process.js'
import { connectTo, exchange, requestBytes } from '../../helpers/raw-http.js'
import { launch, serve, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const patience = { timeout: 10_000, interval: 10 }
const fern = '{"id":1,"name":"Fern"}'

test.runIf(isLinux)(
  'idle connections leave a service the files that it needs, however few it may open (needs /proc)',
  async () => {
    // What this process has open without FD_CLOEXEC, such as terminals of other tests, is not for the service.
    const close = 'for fd in $(ls /proc/$$/fd); do if [ $fd -gt 2 ]; then eval "exec $fd>&-"; fi; done'
    const through = ['bash', '-c', `${close}; ulimit -n 60 && exec "$@"`, 'bash']
    const service = await serve(['--allow', 'create,read'], { through })
    const reader = await connectTo(service.place)
    const writer = await connectTo(service.place)
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

describe('what keeps a service from listening', () => {
  const env = { PLANTS_SERVE_TOKEN: testToken }
  const start = async (...args: string[]) => {
    const { err, ...result } = await plants(['serve', '--output', 'json', ...args], temporaryFolder(), {
      env,
      timeout: 20_000,
    })
    return { ...result, err: JSON.parse(err.split('\n').at(-2) ?? '') }
  }

  test.each([
    ['--port', ['--port']],
    ['--admin-port', ['--port', '0', '--admin-port']],
  ])('a %s that is taken is told, and ends it', async (_, args) => {
    const server = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo // as it listens at one
    const error = {
      error: 503,
      message: `Port ${port} of 127.0.0.1 is in use by another program`,
      hint: expect.any(String),
      retryable: true,
    }
    expect(await start(...args, `${port}`)).toEqual({ code: 4, out: '', err: error })
  })

  test.each([
    ['is too long', 'x'.repeat(120)],
    ['has no folder', 'none/socket'],
  ])('a path of a socket that %s is told, and ends it', async (_, name) => {
    const path = join(temporaryFolder(), name)
    expect(await start('--socket', path)).toMatchObject({
      code: 2,
      out: '',
      err: { error: 400, message: expect.stringContaining(dirname(path)) },
    })
  })
})

describe('stdout of a service', () => {
  test('is the address, and nothing else', async () => {
    const service = await serve(['--base-path', '/v1'])
    expect(service.address).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d+\/v1$/)
    expect((await exchange(service, { target: '/v1/plants', body: fern })).status).toBe(200)
    expect((await service.stop()).out).toBe(`${service.address}\n`)
  })

  test('is JSON when that is asked for', async () => {
    const service = await serve(['--output', 'json'])
    const { out } = await service.stop()
    expect(out).toBe(`${service.address}\n`)
    expect(JSON.parse(out)).toEqual({ address: expect.stringMatching(/^http:\/\/127\.0\.0\.1:[1-9]\d+$/) })
  })

  test('may be closed, before the address and after it', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'socket')
    const { child, ready, ended } = launch(['--socket', path], folder)
    onTestFinished(() => void child.kill('SIGKILL'))
    ready.catch(() => undefined)
    child.stdout.destroy()
    const created = () => exchange({ place: { path }, token: testToken }, { body: fern }).catch(() => undefined)
    await expect.poll(async () => (await created())?.status, patience).toBeDefined()
    child.kill('SIGTERM')
    expect((await ended).code).toBe(0)
  })
})

describe('a Unix socket', () => {
  test('is served for this user and group alone, replaces one that was left behind, and goes with the service', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'socket')
    const first = await serve(['--socket', path, '--base-path', '/v1'], { folder })
    expect(first.address).toBe(`unix:${path}:/v1`)
    expect(statSync(path).mode & 0o777).toBe(0o660)
    const second = await plants(['serve', '--socket', path], folder, { env: { PLANTS_SERVE_TOKEN: testToken } })
    expect(second).toMatchObject({
      code: 4,
      out: '',
      err: expect.stringContaining(`${path} is in use by another program`),
    })
    const args = ['create', '--id', '1', '--name', 'Fern', '--store', first.address]
    const made = await plants(args, folder, { env: { PLANTS_TOKEN: testToken } })
    expect(made).toEqual({ code: 0, out: '{"name":"Fern"}\n', err: '' })
    await first.stop('SIGKILL')
    expect(existsSync(path)).toBe(true)
    const third = await serve(['--socket', path], { folder })
    expect((await exchange(third, { body: '{"id":2,"name":"Moss"}' })).status).toBe(200)
    expect((await third.stop()).code).toBe(0)
    expect(existsSync(path)).toBe(false)
  })

  test('takes the place of no file', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'file')
    writeFileSync(path, 'precious')
    const { code } = await plants(['serve', '--socket', path], folder, { env: { PLANTS_SERVE_TOKEN: testToken } })
    expect([code, readFileSync(path, 'utf8')]).toEqual([2, 'precious'])
  })
})
