import { once } from 'node:events'
import { chmodSync, cpSync, readdirSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { version } from '../../../package.json'
import { DatabaseSync } from '../../helpers/database.js'
import { accepting, Disk, findingsOf } from '../../helpers/doctor.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { token } from '../../helpers/remote.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const savedAt = '2026-01-02T03:04:05.678Z'
const ofTeam = { check: 'store team', state: 'failed' }
const accepts = json(400, { error: 422, message: 'No' })
const duration = 'must be a duration such as 30s, 500ms or 2m'

/** Settings with a store `team`, and a token for it unless there is to be none. */
function teamAt(address: string, fields: object = {}, saved: string | undefined = token) {
  const stores = { team: { address, ...fields } }
  return { stores, ...(saved && { tokens: { [address]: { token: saved, savedAt } } }) }
}

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
    ok('store local', disk.store),
    ok('store team', `${address} answers, and accepts the token`),
    ok('store garden', garden),
    ok('contents', '1 plant read, and no damage found'),
  ])
})

test('the contents are read for 60 s, unless --timeout says otherwise', async () => {
  const disk = await Disk.build()
  const contentsOf = async (flags: string, step: number) => {
    let time = 0
    const { out } = await disk.run(`doctor --output ndjson${flags}`, { now: () => (time += step) })
    return findingsOf(out).find(({ check }) => check === 'contents')?.state
  }
  expect(await contentsOf('', 1800)).toBe('ok')
  expect(await contentsOf(' --timeout 30s', 1800)).toBe('warning')
  expect(await contentsOf('', 12_000)).toBe('warning')
})

test('--quick looks only whether the stores open', async () => {
  const disk = await Disk.build()
  const checksOf = async (flags?: string) => (await disk.examine(flags)).findings.map(({ check }) => check)
  expect(await checksOf()).toEqual(['runtime', 'sqlite', 'settings', 'store local', 'contents'])
  expect(await checksOf('--quick')).toEqual(['runtime', 'sqlite', 'settings', 'store local'])
})

test.each([
  ['--timeout', '--timeout 0s', {}],
  ['PLANTS_TIMEOUT', '', { PLANTS_TIMEOUT: '0s' }],
])('a time of %s that is over is a warning', async (_, flags, env) => {
  const message = '1 of 1 plant not read'
  const hint = 'Allow more time with --timeout 10m'
  const { ill } = await (await Disk.build()).examine(flags, env)
  expect(ill).toEqual([{ check: 'contents', state: 'warning', message, hint }])
})

// More that may be wrong with them: unit/config.
test('settings that are broken are named, and no store is opened with them', async () => {
  const disk = new Disk()
  disk.save('{"version":2,"stores":[]}')
  const { ill, findings } = await disk.examine()
  const message = `The settings in ${disk.file} were written by a newer version of plants (version 2)`
  const hint = 'Update plants, or set PLANTS_CONFIG_DIR to another directory'
  expect(ill).toEqual([{ check: 'settings', state: 'failed', message, hint }])
  expect(findings.map(({ check }) => check)).toEqual(['runtime', 'sqlite', 'settings'])
})

test('settings that are open to others are warned of, once', async () => {
  const disk = new Disk({ timeout: '1m' })
  chmodSync(disk.file, 0o604)
  const finding = { message: expect.stringMatching(/mode 604/), hint: expect.stringMatching(/ 600 /) }
  expect((await disk.examine()).ill).toEqual([{ check: 'settings', state: 'warning', ...finding }])
})

describe('a setting that is wrong', () => {
  test.each<[string, Record<string, string>, string]>([
    ['', { PLANTS_TIMEOUT: 'soon' }, `PLANTS_TIMEOUT ${duration}, but was "soon"`],
    ['--store nope', {}, 'There is no store named "nope" (from --store)'],
  ])('fails the check of the settings: %s %o', async (flags, env, message) => {
    const { ill } = await new Disk({}).examine(flags, env)
    expect(ill).toEqual([{ check: 'settings', state: 'failed', hint: expect.any(String), message }])
  })

  test('fails it, also where the store of this run does not need it', async () => {
    const { code, out } = await new Disk({}).run('doctor', { env: { PLANTS_ALLOW_HTTP: 'maybe' } })
    expect([code, findingsOf(out).at(-1)]).toMatchObject([1, { check: 'settings', state: 'failed' }])
  })

  test('as a flag ends with exit code 2', async () => {
    const err = expect.stringContaining('--timeout must be a duration')
    expect(await new Disk().run('doctor --timeout soon')).toMatchObject({ code: 2, err })
  })

  test('of another store is named with it', async () => {
    const address = await accepting()
    const disk = new Disk(teamAt(address, { timeout: '2h30m' }))
    const message = `stores.team.timeout in ${disk.file} ${duration}, but was "2h30m"`
    expect((await disk.examine()).ill).toEqual([{ ...ofTeam, message, hint: expect.any(String) }])
  })
})

test.each<[string, Record<string, unknown>, Record<string, unknown>, Record<string, string>?]>([
  ['an empty ca-cert of all stores', { 'ca-cert': '' }, {}],
  ['a ca-cert that is not there', { 'ca-cert': '/nonexistent/ca.pem' }, {}],
  ['an empty token command', {}, { 'token-command': '' }],
  ['PLANTS_ALLOW_HTTP', {}, {}, { PLANTS_ALLOW_HTTP: 'maybe' }],
  ['PLANTS_CA_CERT', {}, {}, { PLANTS_CA_CERT: '/nonexistent/ca.pem' }],
])('a wrong setting about trust keeps the token from the store: %s', async (_, saved, ofStore, env) => {
  const remote = await Hostile.listen({ posts: [accepts] })
  const stores = { team: { address: remote.url, ...ofStore } }
  const user = new Disk({ ...saved, stores, tokens: { [remote.url]: { token, savedAt: '' } } })
  for (const line of env ? ['doctor --store team'] : ['doctor', 'doctor --store team']) {
    const { out } = await user.run(line, { ...(env && { env }) })
    const check = expect.stringMatching(/^(settings|store team)$/)
    const state = expect.stringMatching(/failed|warning/)
    expect(findingsOf(out)).toContainEqual(expect.objectContaining({ check, state }))
  }
  expect(remote.connections).toBe(0)
})

describe('a store in a file', () => {
  test('fails with what a create fails with', async () => {
    const disk = await Disk.build()
    const [text, cut] = [join(disk.home, 'text.db'), join(disk.home, 'cut.db')]
    writeFileSync(text, 'Dear diary, '.repeat(1000))
    cpSync(disk.store, cut)
    truncateSync(cut, 5000)
    for (const path of [text, cut, join(disk.home, 'none/garden.db'), temporaryFolder()]) {
      const create = ['create', '--id', '1', '--name', 'Fern', '--store', `sqlite:${path}`, '--output', 'json']
      const { message, hint } = JSON.parse((await disk.run(create)).err)
      const { ill } = await disk.examine(`--store sqlite:${path}`)
      expect(ill).toEqual([{ check: `store ${path}`, state: 'failed', message, hint }])
    }
  })

  test('that a crash has left open is looked at, and left as it is', async () => {
    const disk = await Disk.build()
    const running = temporaryFolder()
    cpSync(disk.data, running, { recursive: true })
    const db = new DatabaseSync(join(running, 'plants.db'))
    db.exec("INSERT INTO plants (id, name) VALUES (2, 'Moss')")
    cpSync(running, disk.data, { recursive: true }) // with its log
    db.close()
    expect((await disk.examine()).ill).toEqual([])
    expect((await disk.run('get 2')).out).toBe('{"id":2,"name":"Moss"}\n')
  })

  test('that another process is using is well', async () => {
    const disk = await Disk.build()
    const db = new DatabaseSync(disk.store)
    onTestFinished(() => db.close())
    db.exec('BEGIN IMMEDIATE')
    expect((await disk.examine('--timeout 200ms --quick')).ill).toEqual([])
  })
})

describe('a store behind HTTP', () => {
  test('that does not answer as a service should fails', async () => {
    const remote = await Hostile.listen({ posts: [json(200, { name: 'Fern' })] })
    const disk = await Disk.build(teamAt(remote.url))
    const message = `${remote.url} answered 200 to an empty object`
    const hint = 'Is it a Plant Store service? For details: plants create --verbose'
    expect((await disk.examine()).ill).toEqual([{ ...ofTeam, message, hint }])
    expect(new Set(remote.posts.map(({ body }) => body))).toEqual(new Set(['{}']))
  })

  test('that answers with an error of its own is well', async () => {
    for (const error of [1001, 409]) {
      const remote = await Hostile.listen({ posts: [json(400, { error, message: 'Invalid plant' })] })
      const { findings } = await (await Disk.build(teamAt(remote.url))).examine()
      const message = `${remote.url} answers, and accepts the token`
      expect(findings).toContainEqual({ check: 'store team', state: 'ok', message })
    }
  })

  test('that does not run fails', async () => {
    const disk = await Disk.build(teamAt('http://127.0.0.1:9'))
    const message = 'Could not reach http://127.0.0.1:9: the connection was refused'
    const hint = 'Is it running? Try: plants serve --port 9'
    for (const flags of ['', '--store team'])
      expect((await disk.examine(flags)).ill).toEqual([{ ...ofTeam, message, hint }])
  })

  test('that rejects the token fails, and says where that is from', async () => {
    const address = await accepting()
    const disk = await Disk.build(teamAt(address, {}, 'wr0ng-token'))
    const message = `${address} does not accept the token: This token is not accepted`
    const hint = 'The token was saved. Save another with: plants auth login --store team'
    const { ill } = await disk.examine('--store team')
    expect(ill).toEqual([{ ...ofTeam, message, hint }])
  })

  test('without a token fails, or is warned of where it is not that of this run', async () => {
    const remote = await Hostile.listen({ posts: [accepts] })
    const disk = await Disk.build(teamAt(remote.url, {}, ''))
    const message = `There is no token for ${remote.url}`
    const hint = 'Set PLANTS_TOKEN, or save one with: plants auth login --store team'
    for (const [flags, state] of [
      ['', 'warning'],
      ['--store team', 'failed'],
    ])
      expect((await disk.examine(flags)).ill).toEqual([{ ...ofTeam, state, message, hint }])
    expect(remote.connections).toBe(0)
  })

  test('is not asked, if its token command would run for a store that is not that of this run', async () => {
    const remote = await Hostile.listen({ posts: [accepts] })
    const disk = await Disk.build(teamAt(remote.url, { 'token-command': 'touch ran; echo t0ken' }, ''))
    const message = `${remote.url}: not checked, because its token command may prompt. Check it with: plants doctor --store team`
    expect((await disk.examine()).findings).toContainEqual({ check: 'store team', state: 'ok', message })
    expect([disk.has('ran'), remote.connections]).toEqual([false, 0])
  })

  test('gets PLANTS_TOKEN only when it is the store of this run', async () => {
    const remotes = await Promise.all([1, 2, 3].map(() => Hostile.listen({ posts: [accepts] })))
    const [own = '', saved = '', none = ''] = remotes.map(({ url }) => url)
    const disk = await Disk.build({
      store: 'own',
      stores: { own: { address: own }, saved: { address: saved }, none: { address: none } },
      tokens: { [saved]: { savedAt, token: 'saved-t0ken' }, [own]: { savedAt, token: 'own-t0ken' } },
    })
    const sent = () => remotes.map(({ posts }) => posts.at(-1)?.headers['authorization'])
    const env = { PLANTS_TOKEN: 'of-variable' }
    expect((await disk.examine('', env)).ill).toMatchObject([{ check: 'store none', state: 'warning' }])
    expect(sent()).toEqual(['Bearer of-variable', 'Bearer saved-t0ken', undefined])
    expect((await disk.examine('--store none', env)).ill).toEqual([])
    expect(sent()).toEqual(['Bearer own-t0ken', 'Bearer saved-t0ken', 'Bearer of-variable'])
  })
})

describe('all stores', () => {
  test('are named once: that of this run, then local, then the others', async () => {
    const garden = join(temporaryFolder(), 'garden.db')
    const disk = await Disk.build({
      store: 'garden',
      stores: { garden: { address: garden }, other: { address: 'local' } },
    })
    const path = disk.store
    for (const [flags, names] of [
      ['', ['garden', 'local', 'other']],
      ['--store local', ['local', 'garden', 'other']],
      ['--store other', ['other', 'local', 'garden']],
      [`--store ${path}`, [path, 'local', 'garden', 'other']],
    ] as const) {
      const checks = (await disk.examine(flags)).findings.map(({ check }) => check)
      expect(checks.filter((check) => check.startsWith('store'))).toEqual(names.map((name) => `store ${name}`))
    }
  })

  test('are asked at once: one that does not answer holds up no other', async () => {
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
    const tokens = Object.values(stores).map(({ address }) => [address, { token, savedAt }])
    const disk = await Disk.build({ stores, tokens: Object.fromEntries(tokens) })
    const { out } = await disk.run('doctor --store silent')
    const shown = findingsOf(out).map(({ check, state }) => `${check}: ${state}`)
    expect(shown.filter((each) => each.startsWith('store'))).toEqual([
      ...['store silent: failed', 'store local: ok', 'store slow: ok', 'store last: ok'],
    ])
  })

  test('that are many databases bring no warning', async () => {
    const warnings: Error[] = []
    const note = (warning: Error) => void warnings.push(warning)
    process.on('warning', note)
    onTestFinished(() => void process.off('warning', note))
    const names = Array.from({ length: 12 }, (_, index) => `db${index}`)
    const stores = names.map((name) => [name, { address: `postgres://ann@127.0.0.1:9/${name}` }])
    const disk = new Disk({ stores: Object.fromEntries(stores) })
    expect(await disk.run('doctor --timeout 100ms')).toMatchObject({ code: 1 })
    await new Promise(setImmediate)
    expect(warnings).toEqual([])
  })

  test('may be none, and stay none', async () => {
    const disk = new Disk()
    const { findings } = await disk.examine()
    expect(findings.slice(2, 4)).toEqual([
      { check: 'settings', state: 'ok', message: disk.file },
      { check: 'store local', state: 'ok', message: `${disk.store} (not created yet)` },
    ])
    expect(readdirSync(disk.home)).toEqual([])
  })

  test('have names and addresses that cannot drive the terminal', async () => {
    const [team, other] = [{ address: 'https://plants.example.com/\u202e' }, { address: './\u001b[2Jx.db' }]
    const disk = await Disk.build({ stores: { team, other } })
    const { out } = await disk.run('doctor --output text')
    expect(out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
  })
})
