import { chmodSync, cpSync, readdirSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { version } from '../../../package.json'
import { accepting, Disk, findingsOf } from '../../helpers/doctor.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { token } from '../../helpers/http-store.js'
import { open } from '../../helpers/sqlite-file.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { isWindows } from '../../helpers/windows.js'

const savedAt = '2026-01-02T03:04:05.678Z'
const ofTeam = { check: 'store team', state: 'failed' }
const accepts = json(400, { error: 422, message: 'No' })

/** Settings with a store `team`, and a token for it unless there is to be none. */
function teamAt(address: string, fields: object = {}, saved: string | undefined = token) {
  const stores = { team: { address, ...fields } }
  return { stores, ...(saved && { tokens: { [address]: { token: saved, savedAt } } }) }
}

test('all that is well is printed, check by check', async () => {
  const address = await accepting()
  const disk = await Disk.build(teamAt(address))
  const ok = (check: string, message: string | RegExp) => ({
    ...{ check, state: 'ok' },
    message: typeof message === 'string' ? message : expect.stringMatching(message),
  })
  const always = [
    ok(
      'runtime',
      RegExp(`^plants ${version} on (node|bun) [\\d.]+, ${process.platform} ${process.arch}$`),
    ),
    ok('sqlite', /^SQLite 3\.\d+\.\d+ through \S+$/),
    ok('settings', disk.file),
  ]
  expect((await disk.examine()).findings).toEqual([
    ...always,
    ok('store local', disk.store),
    ok('contents', '1 plant read, and no damage found'),
  ])
  expect((await disk.examine('--store team')).findings).toEqual([
    ...always,
    ok('store team', `${address} answers, and accepts the token`),
  ])
})

test('--quick looks only whether the stores open', async () => {
  const { findings } = await (await Disk.build()).examine('--quick')
  expect(findings.map(({ check }) => check)).toEqual([
    'runtime',
    'sqlite',
    'settings',
    'store local',
  ])
})

// More that may be wrong with them: unit/config.
test('settings that are broken are named, and no store is opened with them', async () => {
  const disk = new Disk()
  disk.save('{"version":2,"stores":[]}')
  const { ill, findings } = await disk.examine()
  expect(ill).toMatchObject([
    { check: 'settings', state: 'failed', message: expect.stringContaining(disk.file) },
  ])
  expect(findings.map(({ check }) => check)).toEqual(['runtime', 'sqlite', 'settings'])
})

test.skipIf(isWindows)(
  'settings that are open to others are warned of, once (needs modes)',
  async () => {
    const disk = new Disk({ timeout: '1m' })
    chmodSync(disk.file, 0o604)
    const finding = {
      message: expect.stringMatching(/mode 604/),
      hint: expect.stringMatching(/ 600 /),
    }
    expect((await disk.examine()).ill).toEqual([
      { check: 'settings', state: 'warning', ...finding },
    ])
  },
)

test('a variable that is wrong fails the check of the settings, also where no store of this run needs it', async () => {
  const { code, out } = await new Disk({}).run('doctor', { env: { PLANTS_ALLOW_HTTP: 'maybe' } })
  const message = 'PLANTS_ALLOW_HTTP must be true or false, but was "maybe"'
  expect([code, findingsOf(out).at(-1)]).toEqual([
    1,
    { check: 'settings', state: 'failed', message },
  ])
})

test.each<[string, Record<string, unknown>, Record<string, unknown>, Record<string, string>?]>([
  ['a ca-cert that is not there', { 'ca-cert': '/nonexistent/ca.pem' }, {}],
  ['an empty token command', {}, { 'token-command': '' }],
  ['PLANTS_ALLOW_HTTP', {}, {}, { PLANTS_ALLOW_HTTP: 'maybe' }],
])(
  'a wrong setting about trust keeps the token from the store: %s',
  async (_, saved, ofStore, env = {}) => {
    const service = await Hostile.listen({ posts: [accepts] })
    const user = new Disk({ ...saved, ...teamAt(service.url, ofStore) })
    const { out } = await user.run('doctor --store team', { env })
    const check = expect.stringMatching(/^(settings|store team)$/)
    expect(findingsOf(out)).toContainEqual(expect.objectContaining({ check, state: 'failed' }))
    expect(service.connections).toBe(0)
  },
)

test('a store in a file fails with what a create fails with', async () => {
  const disk = await Disk.build()
  const cut = join(disk.home, 'cut.db')
  cpSync(disk.store, cut)
  truncateSync(cut, 5000)
  for (const path of [cut, temporaryFolder()]) {
    const create = [
      'create',
      '--id',
      '1',
      '--name',
      'Fern',
      '--store',
      `sqlite:${path}`,
      '--output',
      'json',
    ]
    const { message, hint } = JSON.parse((await disk.run(create)).err)
    const { ill } = await disk.examine(`--store sqlite:${path}`)
    expect(ill).toEqual([{ check: `store ${path}`, state: 'failed', message, hint }])
  }
})

describe('a store behind HTTP', () => {
  test('that does not answer as a service should fails', async () => {
    const service = await Hostile.listen({ posts: [json(200, { name: 'Fern' })] })
    const disk = await Disk.build(teamAt(service.url))
    const message = `${service.url} answered 200 to an empty object`
    const hint = 'Is it a Plant Store service? For details: plants create --verbose'
    expect((await disk.examine('--store team')).ill).toEqual([{ ...ofTeam, message, hint }])
    expect(new Set(service.posts.map(({ body }) => body))).toEqual(new Set(['{}']))
  })

  test('that rejects the token fails, and says where that is from', async () => {
    const address = await accepting()
    const disk = await Disk.build(teamAt(address, {}, 'wr0ng-token'))
    const message = `${address} does not accept the token: This token is not accepted`
    const hint = 'The token was saved. Save another with: plants auth login --store team'
    expect((await disk.examine('--store team')).ill).toEqual([{ ...ofTeam, message, hint }])
  })

  test('without a token fails', async () => {
    const service = await Hostile.listen({ posts: [accepts] })
    const disk = await Disk.build(teamAt(service.url, {}, ''))
    const message = `There is no token for ${service.url}`
    const hint = 'Set PLANTS_TOKEN, or save one with: plants auth login --store team'
    expect((await disk.examine('--store team')).ill).toEqual([{ ...ofTeam, message, hint }])
    expect(service.connections).toBe(0)
  })

  test('that is not the store of this run is not asked', async () => {
    const service = await Hostile.listen({ posts: [accepts] })
    const disk = await Disk.build(
      teamAt(service.url, { 'token-command': 'touch ran; echo t0ken' }, ''),
    )
    expect((await disk.examine('', { PLANTS_TOKEN: 'of-variable' })).ill).toEqual([])
    expect([disk.has('ran'), service.connections]).toEqual([false, 0])
  })
})

test('a store that was named fails if it is not there', async () => {
  const disk = new Disk()
  const message = `There is no store at ${join(disk.home, 'gardn.db')}`
  const hint = 'Check the address. plants create creates a missing store'
  const finding = { check: `store ${join(disk.home, 'gardn.db')}`, state: 'failed', message, hint }
  expect((await disk.examine('--store ./gardn.db')).ill).toEqual([finding])
})

test('a store that another process has locked fails', async () => {
  const disk = await Disk.build()
  open(disk.store).exec('BEGIN IMMEDIATE')
  const { ill } = await disk.examine('--timeout 10ms')
  const message = `The store ${disk.store} is in use by another process: database is locked`
  expect(ill).toMatchObject([{ check: 'store local', state: 'failed', message }])
})

test('the default store that is not there yet is well, and is not made', async () => {
  const disk = new Disk()
  const message = `${disk.store} (not created yet)`
  expect((await disk.examine()).findings).toContainEqual({
    check: 'store local',
    state: 'ok',
    message,
  })
  expect(readdirSync(disk.home)).toEqual([])
})

test('a store cannot drive the terminal', async () => {
  const stores = { garden: { address: './\u001b[2Jx\u202e.db' } }
  const { out } = await (await Disk.build({ store: 'garden', stores })).run('doctor --output text')
  expect(out).toMatch(/^failed {3}store garden: .*x/m)
  expect(out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
})
