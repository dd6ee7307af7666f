import { chmodSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { version } from '../../package.json'
import { isWindows, parseObjects, Sandbox } from '../helpers/sandbox/sandbox.js'
import { createTemporaryFolder } from '../helpers/sandbox/temporary-folder.js'
import {
  acceptingResponse,
  buildSavedTokens,
  startRecorder,
} from '../helpers/sandbox/token-command-sandbox.js'
import { buildJsonResponse } from '../helpers/scripted-server/scripted-server.js'
import { serveFile, token } from '../helpers/scripted-server/service.js'

/** A user with a plant in the store `local`. */
class Disk extends Sandbox {
  static async build(settings: Record<string, unknown> = {}): Promise<Disk> {
    const disk = new Disk(settings)
    await disk.run('create --id 1 --name Fern --store local')
    return disk
  }

  /** What the doctor finds, and what of that is not well, each of which has a hint. */
  async examine(flags = '', env: Record<string, string> = {}) {
    const { code, out } = await this.run(`doctor --output ndjson${flags && ` ${flags}`}`, { env })
    const findings = parseObjects(out)
    const ill = findings.filter(({ state }) => state !== 'ok')
    expect(ill.filter(({ hint }) => hint === undefined)).toEqual([])
    expect(code).toBe(ill.some(({ state }) => state === 'failed') ? 1 : 0)
    return { findings, ill }
  }
}

/** Settings with a store `team`, and a token for it unless it is to be none. */
function teamAt(address: string, fields: object = {}, ofTeam = token) {
  const stores = { team: { address, ...fields } }
  const entry = { ...buildSavedTokens(address)[address], token: ofTeam }
  return { stores, ...(ofTeam && { tokens: { [address]: entry } }) }
}

test('doctor prints each successful check', async () => {
  const address = await serveFile(join(createTemporaryFolder(), 'plants.db'))
  const disk = await Disk.build(teamAt(address))
  const ok = (check: string, message: unknown) => ({ check, state: 'ok', message })
  const runtime = RegExp(
    `^plants ${version} on (node|bun) .*, ${process.platform} ${process.arch}$`,
  )
  const always = [
    ok('runtime', expect.stringMatching(runtime)),
    ok('sqlite', expect.stringMatching(/^SQLite 3\.\d+\.\d+ through \S+$/)),
    ok('settings', disk.file),
  ]
  const local = ok('store local', disk.store)
  expect((await disk.examine()).findings).toEqual([
    ...[...always, local],
    ok('contents', '1 plant read, and no damage found'),
  ])
  const team = ok('store team', `${address} answers, and accepts the token`)
  expect((await disk.examine('--store team')).findings).toEqual([...always, team])
})

test('doctor prints a problem as a line with its hint below, and escapes the address of a store', async () => {
  const stores = { garden: { address: './\u001b[2Jx\u202e.db' } }
  const disk = await Disk.build({ store: 'garden', stores })
  const { code, out, err } = await disk.run('doctor --output text')
  expect([code, err]).toEqual([1, expect.stringMatching(/^plants: One check failed\n/)])
  expect(out).toMatch(/^ok {7}settings: .*\nfailed {3}store garden: .*x.*\n {9}\S.*\n$/m)
  expect(out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
})

test.each(['--output csv', '--timeout abc'])(
  'doctor %s is an error of usage, and prints no checks',
  async (flag) => {
    expect(await new Disk().run(`doctor ${flag}`)).toMatchObject({ code: 2, out: '' })
  },
)

describe('the settings', () => {
  test('that are broken are reported, and no store is opened with them', async () => {
    const disk = new Disk()
    disk.save('{"version":2,"stores":[]}')
    const { ill, findings } = await disk.examine()
    const message = expect.stringContaining(disk.file)
    expect(ill).toMatchObject([{ check: 'settings', state: 'failed', message }])
    expect(findings.map(({ check }) => check)).toEqual(['runtime', 'sqlite', 'settings'])
  })

  test.skipIf(isWindows)('that others can read cause a warning (needs modes)', async () => {
    const disk = new Disk({ timeout: '1m' })
    chmodSync(disk.file, 0o604)
    const message = expect.stringMatching(/mode 604/)
    expect((await disk.examine()).ill).toMatchObject([
      { check: 'settings', state: 'warning', message },
    ])
  })

  test.each<[string, Record<string, unknown>, object, Record<string, string>?]>([
    ['a ca-cert that is not there', { 'ca-cert': '/nonexistent/ca.pem' }, {}],
    ['an empty token command', {}, { 'token-command': '' }],
    ['PLANTS_ALLOW_HTTP', {}, {}, { PLANTS_ALLOW_HTTP: 'maybe' }],
  ])(
    'with invalid certificates or commands prevent that the token is sent: %s',
    async (_, more, team, env = {}) => {
      const service = await startRecorder(acceptingResponse)
      const user = new Disk({ ...more, ...teamAt(service.url, team) })
      const { code, out } = await user.run('doctor --store team', { env })
      const { check, state } = parseObjects(out).at(-1) ?? {}
      expect([code, check, state]).toEqual([
        ...[1, expect.toBeOneOf(['settings', 'store team']), 'failed'],
      ])
      expect(service.connections).toBe(0)
    },
  )
})

describe('a service in the settings', () => {
  const answering = buildJsonResponse(200, { name: 'Fern' })
  const refusing = buildJsonResponse(400, { error: 401, message: 'No' })

  test.each([
    ['does not answer as a service should', answering, token, /answered 200 to an empty object$/],
    ['rejects the token', refusing, token, /^http:.* answered 400: No$/],
    ['has no token', answering, '', /^No token is set for /],
  ])('that %s is a failed check', async (_, answer, ofTeam, message) => {
    const service = await startRecorder(answer)
    const disk = await Disk.build(teamAt(service.url, {}, ofTeam))
    const finding = {
      check: 'store team',
      state: 'failed',
      message: expect.stringMatching(message),
    }
    expect((await disk.examine('--store team')).ill).toMatchObject([finding])
    expect(service.posts.map(({ body }) => body)).toEqual(ofTeam === '' ? [] : ['{}'])
  })

  test('that is not the store of this run is not asked', async () => {
    const service = await startRecorder(acceptingResponse)
    const command = { 'token-command': 'touch ran; echo t0ken' }
    const disk = await Disk.build(teamAt(service.url, command))
    expect((await disk.examine('', { PLANTS_TOKEN: 'of-variable' })).ill).toEqual([])
    expect([disk.has('ran'), service.connections]).toEqual([false, 0])
  })
})

test('doctor fails if a named store does not exist, and does not create the default one', async () => {
  const disk = new Disk()
  const path = join(disk.home, 'gardn.db')
  const check = { check: `store ${path}`, state: 'failed', message: `There is no store at ${path}` }
  expect((await disk.examine('--store ./gardn.db')).ill).toMatchObject([check])
  const message = `${disk.store} (not created yet)`
  const { findings } = await disk.examine()
  expect(findings).toContainEqual(
    expect.objectContaining({ check: 'store local', state: 'ok', message }),
  )
  expect(readdirSync(disk.home)).toEqual([])
})

test('doctor accepts a token that may only read, and sends a service one request', async () => {
  const insufficient = { 'www-authenticate': 'Bearer error="insufficient_scope"' }
  const answer = buildJsonResponse(400, { error: 403, message: 'No' }, insufficient)
  const service = await startRecorder(answer)
  const user = await Disk.build(teamAt(service.url))
  const message = `${service.url} answers, and accepts the token`
  const finding = { check: 'store team', state: 'ok', message }
  expect((await user.examine('--store team')).findings).toContainEqual(finding)
  expect(service.posts.map(({ body }) => body)).toEqual(['{}'])
  expect(service.connections).toBe(1)
})

test('doctor prints no token, even if a store has it as its name', async () => {
  const user = new Sandbox({ stores: { [token]: { address: './garden.db' } }, store: token })
  const { out } = await user.run('doctor', { env: { PLANTS_TOKEN: token } })
  expect(parseObjects(out)).toContainEqual(expect.objectContaining({ check: 'store ***' }))
  expect(out).not.toContain(token)
})
