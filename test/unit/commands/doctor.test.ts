import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { version } from '../../../package.json'
import { accepting, Disk, findingsOf } from '../../helpers/doctor.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { token } from '../../helpers/remote.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const savedAt = '2026-01-02T03:04:05.678Z'
const duration = 'must be a duration such as 30s, 500ms or 2m'

test('all that is well is printed, check by check', async () => {
  const address = await accepting()
  const garden = join(temporaryFolder(), 'garden.db')
  const logins = [address, 'postgres://ann@h/garden'].map((login) => [login, { token, savedAt }])
  const stores = { team: { address }, garden: { address: garden } }
  const disk = await Disk.build({ stores, tokens: Object.fromEntries(logins) })
  await disk.run(['create', '--id', '1', '--name', 'Fern', '--store', garden])
  const ok = (check: string, message: string | RegExp) => ({
    ...{ check, state: 'ok' },
    message: typeof message === 'string' ? message : expect.stringMatching(message),
  })
  expect((await disk.examine()).findings).toEqual([
    ok('runtime', RegExp(`^plants ${version} on (Node|Bun) [\\d.]+, ${process.platform} ${process.arch}$`)),
    ok('sqlite', /^SQLite 3\.\d+\.\d+ through \S+$/),
    ok('settings', disk.file),
    ok('store local', /^\/.*\/data\/plants\.db, [\d,]+ MiB free$/),
    ok('store team', `${address} answers, and accepts the token`),
    ok('store garden', /^\/.*\/garden\.db, [\d,]+ MiB free$/),
    ok('proxy', 'none'),
  ])
})

test('proxies are shown without their passwords', async () => {
  const [HTTPS_PROXY, http_proxy] = ['http://user:s3cret@proxy.example.com:3128', 'other.example.com']
  const { findings } = await new Disk().examine('', { HTTPS_PROXY, http_proxy, NO_PROXY: 'a,b' })
  const message = 'HTTPS_PROXY proxy.example.com:3128, HTTP_PROXY other.example.com, NO_PROXY a,b'
  expect(findings.at(-1)).toEqual({ check: 'proxy', state: 'ok', message })
})

// More that may be wrong with them: unit/config.
test('settings that are broken are named, and all else is looked at', async () => {
  const disk = new Disk()
  disk.save('{"version":2,"stores":[]}')
  const { ill, findings } = await disk.examine()
  const message = `The settings in ${disk.file} were written by a newer plants (version 2)`
  const hint = 'Update plants, or set PLANTS_CONFIG_DIR to another directory'
  const skipped = { message: 'the settings cannot be read', hint: 'Fix the settings first' }
  expect(ill).toEqual([
    { check: 'settings', state: 'failed', message, hint },
    { check: 'stores', state: 'skipped', ...skipped },
  ])
  expect(findings.map(({ check }) => check)).toEqual(['runtime', 'sqlite', 'settings', 'stores', 'proxy'])
})

test('settings that are open to others are warned of, once', async () => {
  const disk = new Disk({ timeout: '1m' })
  chmodSync(disk.file, 0o604)
  chmodSync(disk.config, 0o777)
  const finding = { message: expect.stringMatching(/mode 604.*mode 777/), hint: expect.stringMatching(/ 600 .* 700 /) }
  expect((await disk.examine()).ill).toEqual([{ check: 'settings', state: 'warning', ...finding }])
})

describe('a setting that is wrong', () => {
  test.each<[string, string, Record<string, string>, string]>([
    ['settings', '', { PLANTS_TIMEOUT: 'soon' }, `PLANTS_TIMEOUT ${duration}, but was "soon"`],
    ['store', '--store nope', {}, 'There is no store named "nope" (from --store)'],
  ])('fails the check of the %s: %s %o', async (check, flags, env, message) => {
    const { ill } = await new Disk({}).examine(flags, env)
    expect(ill[0]).toEqual({ check, state: 'failed', hint: expect.any(String), message })
  })

  test('as a flag ends with exit code 2', async () => {
    const err = expect.stringContaining('--timeout must be a duration')
    expect(await new Disk().run('doctor --timeout soon')).toMatchObject({ code: 2, err })
  })

  test('of all stores is printed once, and hides nothing of the stores', async () => {
    const disk = new Disk({ timeout: 'soon', stores: { garden: { address: '/nonexistent/none/garden.db' } } })
    const messages = (await disk.examine()).ill.map(({ message }) => message)
    expect(messages.filter((message) => message.includes('must be a duration'))).toHaveLength(1)
    expect(messages).toContainEqual(expect.stringMatching(/^There is no directory .* for the store /))
  })

  test.each([
    ['timeout', '2h30m', `stores.team.timeout in FILE ${duration}, but was "2h30m"`],
    ['ca-cert', '/nonexistent/ca.pem', 'Could not read /nonexistent/ca.pem: there is no such file'],
  ])('of another store is named with it: %s', async (name, value, message) => {
    const address = await accepting()
    const disk = new Disk({ stores: { team: { address, [name]: value } }, tokens: { [address]: { token, savedAt } } })
    const finding = { check: 'store team', state: expect.stringMatching(/failed|warning/), hint: expect.any(String) }
    expect((await disk.examine()).ill).toEqual([{ ...finding, message: message.replace('FILE', disk.file) }])
  })
})

test.each<[string, Record<string, unknown>, Record<string, unknown>, Record<string, string>?]>([
  ['an empty ca-cert of all stores', { 'ca-cert': '' }, {}],
  ['a ca-cert that is not there', { 'ca-cert': '/nonexistent/ca.pem' }, {}],
  ['an empty token command', {}, { 'token-command': '' }],
  ['PLANTS_ALLOW_HTTP', {}, {}, { PLANTS_ALLOW_HTTP: 'maybe' }],
  ['PLANTS_CA_CERT', {}, {}, { PLANTS_CA_CERT: '/nonexistent/ca.pem' }],
])('a wrong setting that decides about trust keeps the token from the store: %s', async (_, saved, ofStore, env) => {
  const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
  const stores = { team: { address: remote.url, ...ofStore } }
  const user = new Disk({ ...saved, stores, tokens: { [remote.url]: { token, savedAt: '' } } })
  for (const line of env ? ['doctor --store team'] : ['doctor', 'doctor --store team']) {
    const { out } = await user.run(line, { ...(env && { env }) })
    expect(findingsOf(out)).toContainEqual(
      expect.objectContaining({ check: 'store team', state: expect.stringMatching(/failed|warning/) }),
    )
  }
  expect(remote.connections).toBe(0)
})
