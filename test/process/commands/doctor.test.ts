import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { version } from '../../../package.json'
import { accepting, Disk, findingsOf } from '../../helpers/doctor.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { plants, start } from '../../helpers/process.js'
import { token } from '../../helpers/remote.js'
import { temporaryFolder } from '../../helpers/temporary.js'

describe('a healthy world', () => {
  test('is said to be one, check by check', async () => {
    const address = await accepting()
    const garden = join(temporaryFolder(), 'garden.db')
    await plants(['create', '--id', '1', '--name', 'Fern', '--store', garden], temporaryFolder())
    const disk = await Disk.build({
      stores: { team: { address }, garden: { address: garden } },
      tokens: Object.fromEntries(
        [address, 'postgres://ann@h/garden'].map((login) => [login, { token, savedAt: '2026-01-02T03:04:05.678Z' }]),
      ),
    })
    const { code, findings, said } = await disk.examine()
    expect({ code, findings, said }).toEqual({
      code: 0,
      findings: [
        {
          check: 'runtime',
          state: 'ok',
          message: expect.stringMatching(
            RegExp(`^plants ${version} on (Node|Bun) [\\d.]+, ${process.platform} ${process.arch}$`),
          ),
        },
        { check: 'sqlite', state: 'ok', message: expect.stringMatching(/^SQLite 3\.\d+\.\d+ through \S+$/) },
        { check: 'settings', state: 'ok', message: disk.file },
        {
          check: 'store local',
          state: 'ok',
          message: expect.stringMatching(/^\/.*\/data\/plants\.db, [\d,]+ MiB free$/),
        },
        { check: 'store team', state: 'ok', message: `${address} answers, and accepts the token` },
        { check: 'store garden', state: 'ok', message: expect.stringMatching(/^\/.*\/garden\.db, [\d,]+ MiB free$/) },
        { check: 'proxy', state: 'ok', message: 'none' },
      ],
      said: [],
    })
  })

  test('may be an empty one, and stays empty', async () => {
    const disk = new Disk()
    const { code, findings } = await disk.examine()
    expect({ code, names: readdirSync(disk.root) }).toEqual({ code: 0, names: [] })
    expect(findings.slice(2, 4)).toEqual([
      { check: 'settings', state: 'ok', message: disk.file },
      { check: 'store local', state: 'ok', message: expect.stringContaining('/data/plants.db (not created yet), ') },
    ])
  })

  test('is told of without a home directory', async () => {
    const options = { env: { PLANTS_DATA_DIR: temporaryFolder(), HOME: undefined } }
    const { code, out } = await plants(['doctor'], temporaryFolder(), options)
    expect({ code, states: findingsOf(out).map(({ state }) => state) }).toEqual({
      code: 0,
      states: Array(5).fill('ok'),
    })
  })

  test('names the store of this run once, by the name that it has, and local besides', async () => {
    const disk = await Disk.build({
      store: 'garden',
      stores: { garden: { address: join(temporaryFolder(), 'garden.db') }, other: { address: 'local' } },
    })
    const checks = async (flags: string[]) =>
      (await disk.examine(flags)).findings.flatMap(({ check }) => (check.startsWith('store') ? check : []))
    expect(await checks([])).toEqual(['store garden', 'store local', 'store other'])
    expect(await checks(['--store', 'local'])).toEqual(['store local', 'store garden', 'store other'])
    expect(await checks(['--store', 'other'])).toEqual(['store other', 'store local', 'store garden'])
    expect(await checks(['--store', join(disk.data, 'plants.db')])).toEqual([
      `store ${join(disk.data, 'plants.db')}`,
      'store local',
      'store garden',
      'store other',
    ])
  })

  test('shows the proxies without their passwords', async () => {
    const disk = await Disk.build()
    Object.assign(disk.env, {
      HTTPS_PROXY: 'http://user:s3cret@proxy.example.com:3128',
      http_proxy: 'other.example.com',
      NO_PROXY: 'a,b',
    })
    expect((await disk.examine()).findings.at(-1)).toEqual({
      check: 'proxy',
      state: 'ok',
      message: 'HTTPS_PROXY proxy.example.com:3128, HTTP_PROXY other.example.com, NO_PROXY a,b',
    })
  })
})

test.each(['HTTPS_PROXY', 'http_proxy'])('a wrong %s fails', async (name) => {
  const disk = await Disk.build()
  disk.env[name] = 'socks5://proxy.example.com'
  expect((await disk.examine()).ill).toEqual([
    {
      check: 'proxy',
      state: 'failed',
      message: `${name.toUpperCase()} is not the address of an http or https proxy`,
      hint: `For example: ${name.toUpperCase()}=http://proxy.example.com:3128`,
    },
  ])
})

test('each finding comes as soon as it is known, and Ctrl-C ends the wait for the next', async () => {
  const remote = await Hostile.listen({ posts: [() => child.kill('SIGINT')] })
  const disk = await Disk.build({ stores: { team: { address: remote.url } } })
  const child = start(['doctor', '--store', 'team'], disk.root, { env: { ...disk.env, PLANTS_TOKEN: token } })
  const { exitCode, stdout, stderr } = await child
  expect({ exitCode, checks: findingsOf(String(stdout)).map(({ check }) => check) }).toEqual({
    exitCode: 130,
    checks: ['runtime', 'sqlite', 'settings'],
  })
  expect(String(stderr)).toMatch(/^plants: Interrupted/)
})

test('all stores are asked at once: one that does not answer holds up no other, and each is told of', async () => {
  const accepts = json(400, { error: 422, message: 'No' })
  const last = await Hostile.listen({ posts: [accepts] })
  const asked = once(last, 'request')
  const silent = await Hostile.listen({ posts: [() => undefined] })
  // which waits for the last one
  const slow = await Hostile.listen({ posts: [(socket) => void asked.then(() => socket.write(accepts))] })
  const stores = {
    slow: { address: slow.url },
    silent: { address: silent.url, timeout: '300ms' },
    last: { address: last.url },
  }
  const isHere = { token, savedAt: '2026-01-02T03:04:05.678Z' }
  const disk = await Disk.build({ stores, tokens: { [slow.url]: isHere, [silent.url]: isHere, [last.url]: isHere } })
  const { code, out } = await disk.run(['doctor', '--store', 'silent'])
  expect(code).toBe(1)
  const findings = findingsOf(out).filter(({ check }) => check.startsWith('store'))
  expect(findings.map(({ check, state }) => `${check}: ${state}`)).toEqual([
    'store silent: failed',
    ...['store local: ok', 'store slow: ok', 'store last: ok'],
  ])
})

test('what a saved store is called or where it is cannot drive the terminal', async () => {
  const disk = await Disk.build()
  disk.save({
    stores: { team: { address: 'https://plants.example.com/\u202e' }, other: { address: './\u001b[2Jx.db' } },
  })
  const { out } = await disk.run(['doctor', '--output', 'text'])
  expect(out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
})

test('warns of nothing when many databases are looked at', async () => {
  const warnings: Error[] = []
  const note = (warning: Error) => void warnings.push(warning)
  process.on('warning', note)
  onTestFinished(() => void process.off('warning', note))
  const disk = await Disk.build()
  const stores = Array.from({ length: 12 }, (_, index) => [
    `db${index}`,
    { address: `postgres://ann@127.0.0.1:9/garden${index}` },
  ])
  disk.save({ stores: Object.fromEntries(stores) })
  expect(await disk.run(['doctor', '--timeout', '100ms'])).toMatchObject({ code: 1 })
  await new Promise(setImmediate)
  expect(warnings).toEqual([])
})
