import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statfsSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { version } from '../../../package.json'
import { certificate, hasOpenssl } from '../../helpers/certificates.js'
import { DatabaseSync } from '../../helpers/database.js'
import { Hostile, http, json } from '../../helpers/hostile.js'
import { canMount, smallDisk } from '../../helpers/linux.js'
import { bin, type ProcessResult, plants, start, startUnder, withoutCache } from '../../helpers/process.js'
import { ownService, token } from '../../helpers/remote.js'
import { runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'

interface Finding {
  check: string
  state: 'ok' | 'warning' | 'failed'
  message: string
  hint?: string
}

/** All that a user has on disk: settings, and the store `local` with a plant in it. */
class World {
  readonly root = temporaryFolder()
  readonly config = join(this.root, 'config')
  readonly file = join(this.config, 'settings.json')
  readonly data = join(this.root, 'data')
  readonly env: Record<string, string> = { PLANTS_CONFIG_DIR: this.config }

  static async build(saved: Record<string, unknown> = {}): Promise<World> {
    const world = new World()
    await world.run(['create', '--id', '1', '--name', 'Fern'])
    mkdirSync(world.config, { mode: 0o700 })
    world.save(saved)
    return world
  }

  save(saved: Record<string, unknown>): void {
    writeFileSync(this.file, JSON.stringify({ version: 1, ...saved }), { mode: 0o600 })
  }

  run(argv: string[]): Promise<ProcessResult> {
    return plants(argv, this.root, { env: this.env })
  }

  /** Runs the doctor for JSON and for text, which must say the same; nothing on the disk may change. */
  async examine(flags: string[] = [], run: (argv: string[]) => Promise<ProcessResult> = (argv) => this.run(argv)): Promise<Diagnosis> {
    const before = treeOf(this.root)
    const { code, out, err } = await run(['doctor', '--output', 'json', ...flags])
    const text = await run(['doctor', '--output', 'text', ...flags])
    expect(treeOf(this.root)).toEqual(before)
    const findings = objectsOf(out)
    const withoutSpace = (said: string) => said.replaceAll(/\d+ MiB free/g, 'N MiB free')
    expect({ code: text.code, out: withoutSpace(text.out) }).toEqual({ code, out: withoutSpace(findings.map(lineOf).join('')) })
    const failures = findings.filter(({ state }) => state === 'failed').length
    expect(code).toBe(failures === 0 ? 0 : 1)
    for (const { state, hint } of findings) expect(hint === undefined).toBe(state === 'ok') // each says what to do
    const message = failures === 1 ? 'One check failed' : `${failures} checks failed`
    const said = err.split('\n').filter(Boolean)
    if (failures > 0) expect(JSON.parse(said.pop() ?? '')).toEqual({ error: 500, message, hint: 'Each says what to do' })
    return { code, findings, ill: findings.filter(({ state }) => state !== 'ok'), said }
  }
}

interface Diagnosis {
  code: number | undefined
  findings: Finding[]
  /** those that are not ok */
  ill: Finding[]
  /** what is on stderr besides the number of failures */
  said: string[]
}

function objectsOf(out: string): Finding[] {
  return out
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
}

function lineOf({ check, state, message, hint }: Finding): string {
  return `${state.padEnd(7)}  ${check}: ${message}\n${hint === undefined ? '' : `         ${hint}\n`}`
}

/** Every file below a folder, with its mode and what is in it; nothing that reading alone changes. */
function treeOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => !name.endsWith('.db-shm')) // shared memory, which whoever reads takes part in
    .toSorted()
    .map((name) => {
      const path = join(folder, name)
      const stats = lstatSync(path)
      const content = stats.isSymbolicLink() ? readlinkSync(path) : stats.isFile() ? `${stats.mtimeMs} ${digestOf(path)}` : 'folder'
      return `${name} ${(stats.mode & 0o7777).toString(8)} ${content}`
    })
}

function digestOf(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

function accepting(): Promise<string> {
  return ownService({ host: '127.0.0.1', port: 0 }, join(temporaryFolder(), 'plants.db'))
}

describe('a healthy world', () => {
  test('is said to be one, check by check', async () => {
    const address = await accepting()
    const garden = join(temporaryFolder(), 'garden.db')
    await plants(['create', '--id', '1', '--name', 'Fern', '--store', garden], temporaryFolder())
    const world = await World.build({
      stores: { team: { address }, garden: { address: garden } },
      tokens: { [address]: { token, savedAt: '2026-01-02T03:04:05.678Z' } },
    })
    const { code, findings, said } = await world.examine()
    expect({ code, findings, said }).toEqual({
      code: 0,
      findings: [
        {
          check: 'runtime',
          state: 'ok',
          message: expect.stringMatching(RegExp(`^plants ${version} on (Node|Bun) [\\d.]+, ${process.platform} ${process.arch}$`)),
        },
        { check: 'sqlite', state: 'ok', message: expect.stringMatching(/^SQLite 3\.\d+\.\d+ through \S+$/) },
        { check: 'settings', state: 'ok', message: `${world.file}: 2 stores, 1 token` },
        { check: 'store local', state: 'ok', message: expect.stringMatching(/^\/.*\/data\/plants\.db, \d+ MiB free$/) },
        { check: 'store team', state: 'ok', message: `${address} answers, and accepts the token` },
        { check: 'store garden', state: 'ok', message: expect.stringMatching(/^\/.*\/garden\.db, \d+ MiB free$/) },
        { check: 'proxy', state: 'ok', message: 'none' },
        { check: 'terminal', state: 'ok', message: 'none: no questions are asked, and answers are JSON' },
      ],
      said: [],
    })
  })

  test('may be an empty one, and stays empty', async () => {
    const world = new World()
    const { code, findings } = await world.examine()
    expect({ code, names: readdirSync(world.root) }).toEqual({ code: 0, names: [] })
    expect(findings.slice(2, 4)).toEqual([
      { check: 'settings', state: 'ok', message: `${world.file}: 0 stores, 0 tokens` },
      { check: 'store local', state: 'ok', message: expect.stringContaining('/data/plants.db, which the first create makes, ') },
    ])
  })

  test('is told of without a home directory', async () => {
    const options = { env: { PLANTS_DATA_DIR: temporaryFolder(), HOME: undefined } }
    const { code, out } = await plants(['doctor'], temporaryFolder(), options)
    expect({ code, states: objectsOf(out).map(({ state }) => state) }).toEqual({ code: 0, states: Array(6).fill('ok') })
  })

  test('names the store of this run once, by the name that it has, and local besides', async () => {
    const world = await World.build({
      store: 'garden',
      stores: { garden: { address: join(temporaryFolder(), 'garden.db') }, other: { address: 'local' } },
    })
    const checks = async (flags: string[]) =>
      (await world.examine(flags)).findings.flatMap(({ check }) => (check.startsWith('store') ? check : []))
    expect(await checks([])).toEqual(['store garden', 'store local', 'store other'])
    expect(await checks(['--store', 'local'])).toEqual(['store local', 'store garden', 'store other'])
    expect(await checks(['--store', 'other'])).toEqual(['store other', 'store garden'])
    expect(await checks(['--store', join(world.data, 'plants.db')])).toEqual([
      `store ${join(world.data, 'plants.db')}`,
      'store garden',
      'store other',
    ])
  })

  test('shows the proxies without their passwords', async () => {
    const world = await World.build()
    Object.assign(world.env, { HTTPS_PROXY: 'http://user:s3cret@proxy.example.com:3128', http_proxy: 'other.example.com', NO_PROXY: 'a,b' })
    expect((await world.examine()).findings.at(-2)).toEqual({
      check: 'proxy',
      state: 'ok',
      message: 'HTTPS_PROXY proxy.example.com:3128, HTTP_PROXY other.example.com, NO_PROXY a,b',
    })
  })
})

describe('settings that are broken', () => {
  const mend = 'Fix the file, or move it away'

  test.each<[string, string | Buffer, string, string]>([
    ['empty', '', 'are empty', 'Move the file away, or write {"version":1} into it'],
    ['not JSON', '{"version":1,\n  oops}', 'are not JSON: ', mend],
    ['not UTF-8', Buffer.from('{"version":1,"store":"\xff"}', 'latin1'), 'are not UTF-8', mend],
    ['of a wrong type', '{"version":1,"timeout":30}', 'are not right: timeout must be a text', mend],
    [
      'of a newer version',
      '{"version":2,"stores":[]}',
      'were written by a newer plants (version 2)',
      'Update plants, or set PLANTS_CONFIG_DIR to another folder',
    ],
  ])('because they are %s are named, and all else is looked at', async (_, text, why, hint) => {
    const world = await World.build()
    writeFileSync(world.file, text)
    const { ill, findings, said } = await world.examine()
    expect({ ill, said }).toEqual({
      ill: [{ check: 'settings', state: 'failed', message: expect.stringContaining(`The settings in ${world.file} ${why}`), hint }],
      said: [],
    })
    expect(findings.map(({ check }) => check)).toEqual(expect.arrayContaining(['runtime', 'sqlite', 'proxy', 'terminal']))
  })

  test('because a folder is in their place are named', async () => {
    const world = await World.build()
    rmSync(world.file)
    mkdirSync(world.file)
    expect((await world.examine()).ill).toMatchObject([{ check: 'settings', state: 'failed', hint: 'Move it away' }])
  })

  test('never show a token', async () => {
    const world = await World.build()
    writeFileSync(world.file, `{"version":1,"tokens":{"https://plants.example.com":{"token":"${token}","savedAt":5}}}`)
    const { out, err } = await world.run(['doctor'])
    expect(`${out}${err}`).not.toContain(token)
    writeFileSync(world.file, `{"version":1,"tokens":{"https://plants.example.com":{"token":"${token}"`)
    const cut = await world.run(['doctor'])
    expect(`${cut.out}${cut.err}`).not.toContain(token)
  })
})

describe('settings that others can read or replace', () => {
  test('are warned of, once, and with what to do', async () => {
    const world = await World.build({ timeout: '1m' })
    chmodSync(world.file, 0o644)
    const { code, ill, said } = await world.examine()
    expect({ code, ill, said }).toEqual({
      code: 0,
      ill: [
        {
          check: 'settings',
          state: 'warning',
          message: `The settings in ${world.file} are open to others (mode 644)`,
          hint: `Fix it with: chmod 600 ${world.file}`,
        },
      ],
      said: [],
    })
  })

  test('also when both the file and the folder are', async () => {
    const world = await World.build()
    chmodSync(world.file, 0o604)
    chmodSync(world.config, 0o777)
    const { code, ill } = await world.examine()
    expect({ code, ill }).toEqual({
      code: 0,
      ill: [
        {
          check: 'settings',
          state: 'warning',
          message: expect.stringMatching(/mode 604.*mode 777/),
          hint: expect.stringMatching(/chmod 600 .*chmod 700 /),
        },
      ],
    })
  })
})

describe('a setting that is wrong', () => {
  test.each<[string, Record<string, unknown>, string[], Record<string, string>, string]>([
    ['a variable', {}, [], { PLANTS_TIMEOUT: 'soon' }, 'PLANTS_TIMEOUT must be a duration such as 30s, 500ms or 2m, but was "soon"'],
    ['a saved value', { timeout: 'soon' }, [], {}, 'timeout in FILE must be a duration such as 30s, 500ms or 2m, but was "soon"'],
    ['the name of no store', {}, ['--store', 'nope'], {}, 'There is no store called "nope", which --store names'],
  ])('fails: %s', async (_, saved, flags, env, message) => {
    const world = await World.build(saved)
    Object.assign(world.env, env)
    const { ill } = await world.examine(flags)
    expect(ill[0]).toEqual({
      check: message.includes('no store') ? 'store' : 'settings',
      state: 'failed',
      message: message.replace('FILE', world.file),
      hint: expect.any(String),
    })
  })

  test('of a flag is wrong usage', async () => {
    const { code, err } = await (await World.build()).run(['doctor', '--timeout', 'soon'])
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('--timeout must be a duration') })
  })

  test('of all stores is told of once, and hides nothing of the stores', async () => {
    const world = await World.build({ timeout: 'soon', stores: { garden: { address: join(temporaryFolder(), 'none/garden.db') } } })
    const messages = (await world.examine()).ill.map(({ message }) => message)
    expect(messages.filter((message) => message.includes('must be a duration'))).toHaveLength(1)
    expect(messages).toContainEqual(expect.stringMatching(/^There is no folder .* for the store /))
  })

  test.each([
    ['timeout', '2h30m', 'stores.team.timeout in FILE must be a duration such as 30s, 500ms or 2m, but was "2h30m"'],
    ['address', 'ftp://plants.example.com', 'stores.team.address in FILE begins with ftp://, which this version cannot open'],
    ['ca-cert', '/nonexistent/ca.pem', 'Could not read /nonexistent/ca.pem: there is no such file'],
  ])('of another store is named with it: %s', async (name, value, message) => {
    const address = await accepting()
    const world = await World.build({
      stores: { team: { address, [name]: value } },
      tokens: { [address]: { token, savedAt: '2026-01-02T03:04:05.678Z' } },
    })
    const { ill } = await world.examine()
    expect(ill).toEqual([
      {
        check: 'store team',
        state: expect.stringMatching(/failed|warning/),
        message: message.replace('FILE', world.file),
        hint: expect.any(String),
      },
    ])
  })
})

describe('a setting that decides about trust', () => {
  test.each<[string, Record<string, unknown>, Record<string, unknown>, Record<string, string>, string[]]>([
    ['an empty ca-cert of all stores', { 'ca-cert': '' }, {}, {}, []],
    ['an empty ca-cert of the store', {}, { 'ca-cert': '' }, {}, []],
    ['a ca-cert that is not there', { 'ca-cert': '/nonexistent/ca.pem' }, {}, {}, []],
    ['a ca-cert with U+0000', { 'ca-cert': '/etc/ca\0.pem' }, {}, {}, []],
    ['an empty token command', {}, { 'token-command': '' }, {}, []],
    ['a token command with a quote', {}, { 'token-command': "sh -c 'echo x'" }, {}, []],
    ['PLANTS_ALLOW_HTTP', {}, {}, { PLANTS_ALLOW_HTTP: 'maybe' }, ['--store', 'team']],
    ['PLANTS_CA_CERT', {}, {}, { PLANTS_CA_CERT: '/nonexistent/ca.pem' }, ['--store', 'team']],
  ])('and is wrong keeps the token from the store: %s', async (_, saved, ofStore, env, flags) => {
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
    const root = temporaryFolder()
    const world = { ...env, PLANTS_CONFIG_DIR: root, PLANTS_DATA_DIR: root }
    const stores = { team: { address: remote.url, ...ofStore } }
    const tokens = { [remote.url]: { token, savedAt: '2026-01-02T03:04:05.678Z' } }
    writeFileSync(join(root, 'settings.json'), JSON.stringify({ version: 1, ...saved, stores, tokens }), { mode: 0o600 })
    for (const more of [flags, ['--store', 'team']]) {
      const { out } = await runPlants(['doctor', '--output', 'json', ...more], { env: world })
      expect(objectsOf(out)).toContainEqual(
        expect.objectContaining({ check: 'store team', state: expect.stringMatching(/failed|warning/) }),
      )
    }
    expect(remote.connections).toBe(0)
  })
})

describe('a store in a file', () => {
  test('that is no database fails', async () => {
    const world = await World.build()
    const path = join(world.data, 'plants.db')
    writeFileSync(path, 'Dear diary, '.repeat(1000))
    expect((await world.examine()).ill).toEqual([
      {
        check: 'store local',
        state: 'failed',
        message: `${path} is not a store: it is no SQLite file`,
        hint: 'Choose another file with --store PATH',
      },
    ])
  })

  test('that was cut off fails', async () => {
    const world = await World.build()
    const path = join(world.data, 'plants.db')
    truncateSync(path, 5000)
    expect((await world.examine()).ill).toMatchObject([
      { check: 'store local', state: 'failed', message: expect.stringContaining(`The store ${path} is damaged`) },
    ])
  })

  test('whose folder is missing fails, and tells how to make it', async () => {
    const world = await World.build()
    const path = join(world.root, 'none/garden.db')
    const { ill } = await world.examine(['--store', path])
    const { err } = await world.run(['create', '--id', '1', '--name', 'Fern', '--store', path, '--output', 'json'])
    const { message, hint } = JSON.parse(err)
    expect(ill).toEqual([{ check: `store ${path}`, state: 'failed', message, hint }])
  })

  test('that is a folder fails', async () => {
    const world = await World.build({ stores: { garden: { address: `sqlite:${temporaryFolder()}` } } })
    expect((await world.examine()).ill).toMatchObject([
      { check: 'store garden', state: 'failed', message: expect.stringContaining('is a folder, not a store') },
    ])
  })

  test('that a crash has left open is looked at, and left as it is', async () => {
    const world = await World.build()
    const running = temporaryFolder()
    cpSync(world.data, running, { recursive: true })
    const db = new DatabaseSync(join(running, 'plants.db'))
    db.exec("INSERT INTO plants (id, name) VALUES (2, 'Moss')")
    cpSync(running, world.data, { recursive: true }) // with its log
    db.close()
    expect((await world.examine()).ill).toEqual([])
    expect((await world.run(['get', '2'])).out).toBe('{"id":2,"name":"Moss"}\n')
  })

  test('that another process is using is well', async () => {
    const world = await World.build()
    const db = new DatabaseSync(join(world.data, 'plants.db'))
    onTestFinished(() => db.close())
    db.exec('BEGIN IMMEDIATE')
    const { code, out } = await world.run(['doctor', '--timeout', '200ms'])
    expect({ code, ill: objectsOf(out).filter(({ state }) => state !== 'ok') }).toEqual({ code: 0, ill: [] })
  })

  // Root may write anywhere, so root's rights are taken away.
  const isRoot = process.getuid?.() === 0
  const canDropRights = process.platform !== 'win32' && (!isRoot || existsSync('/usr/bin/setpriv'))
  const bare = ['--bounding-set', '-all', '--inh-caps', '-all']

  test.runIf(canDropRights)('that is read-only is warned of, and one that cannot be made fails', async () => {
    const world = await World.build()
    const unprivileged = async (argv: string[]): Promise<ProcessResult> => {
      if (!isRoot) return world.run(argv)
      const { exitCode, stdout, stderr } = await startUnder('setpriv', bare, argv, world.root, { env: world.env })
      return { code: exitCode, out: String(stdout), err: String(stderr) }
    }
    chmodSync(world.data, 0o500)
    onTestFinished(() => chmodSync(world.data, 0o700))
    expect((await world.examine([], unprivileged)).ill).toEqual([
      {
        check: 'store local',
        state: 'warning',
        message: `${join(world.data, 'plants.db')}: nothing can be created there`,
        hint: expect.stringContaining('ermissions'),
      },
    ])
    const { ill } = await world.examine(['--store', join(world.data, 'new.db')], unprivileged)
    expect(ill).toMatchObject([
      { check: `store ${join(world.data, 'new.db')}`, state: 'failed' },
      { check: 'store local', state: 'warning' },
    ])
    chmodSync(world.data, 0o700)
    chmodSync(join(world.data, 'plants.db'), 0o400)
    expect((await world.examine([], unprivileged)).ill).toMatchObject([{ check: 'store local', state: 'warning' }])
    chmodSync(join(world.data, 'plants.db'), 0o000)
    expect((await world.examine([], unprivileged)).ill).toMatchObject([
      { check: 'store local', state: 'failed', message: expect.stringContaining('may not be read by this user') },
    ])
  })

  test.runIf(canMount)('on a full disk fails (a tmpfs, needs unshare)', async () => {
    const world = await World.build()
    const { folder, owner, inside } = await smallDisk()
    const enter = ['-t', `${owner}`, '-U', '-m', '--preserve-credentials', bin]
    const within = async (argv: string[]): Promise<ProcessResult> => {
      const env = { PATH: process.env['PATH'], HOME: world.root, PLANTS_DATA_DIR: folder, ...withoutCache, ...world.env }
      const options = { reject: false, stripFinalNewline: false, stdin: 'ignore', extendEnv: false, env } as const
      const { exitCode, stdout, stderr } = await execa('nsenter', [...enter, ...argv], options)
      return { code: exitCode, out: stdout, err: stderr }
    }
    for (const isThere of [false, true]) {
      if (isThere) expect((await within(['create', '--id', '1', '--name', 'Fern'])).code).toBe(0)
      const { bavail, bsize } = statfsSync(inside)
      writeFileSync(join(inside, 'filler'), Buffer.alloc(bavail * bsize))
      const before = readdirSync(inside)
      expect((await world.examine([], within)).ill).toEqual([
        {
          check: 'store local',
          state: 'failed',
          message: expect.stringMatching(/plants\.db.*: no space is left on its disk$/),
          hint: expect.any(String),
        },
      ])
      expect(readdirSync(inside)).toEqual(before)
      rmSync(join(inside, 'filler'))
    }
  })
})

describe('a store behind HTTP', () => {
  const isHere = { savedAt: '2026-01-02T03:04:05.678Z', token }

  test('that does not run fails', async () => {
    const world = await World.build({ stores: { team: { address: 'http://127.0.0.1:9' } }, tokens: { 'http://127.0.0.1:9': isHere } })
    const finding = {
      check: 'store team',
      state: 'failed',
      message: 'Could not reach http://127.0.0.1:9: the connection was refused',
      hint: 'Is it running? Try: plants serve',
    }
    expect((await world.examine()).ill).toEqual([finding])
    expect((await world.examine(['--store', 'team'])).ill).toEqual([finding])
  })

  test('that does not answer fails when the time is over', async () => {
    const remote = await Hostile.listen({ posts: [() => undefined] })
    const world = await World.build({ stores: { team: { address: remote.url, timeout: '100ms' } }, tokens: { [remote.url]: isHere } })
    expect((await world.examine()).ill).toMatchObject([
      { check: 'store team', state: 'failed', message: expect.stringMatching(/^(?!.*got the plant).*the time is over/) },
    ])
    expect(remote.posts.map(({ body }) => body)).toEqual(['{}', '{}'])
  })

  test.each([
    ['404', http(404), /404/],
    ['200', json(200, { name: 'Fern' }), /200 to an empty object/],
    ['a redirect', http(302, '', { Location: 'https://example.com' }), /302/],
    ['an unavailable service', json(503, { error: 503, message: 'Busy' }), /Busy/],
  ])('that answers %s fails', async (_, answer, message) => {
    const remote = await Hostile.listen({ posts: [answer] })
    const world = await World.build({ stores: { team: { address: remote.url } }, tokens: { [remote.url]: isHere } })
    expect((await world.examine()).ill).toMatchObject([
      { check: 'store team', state: 'failed', message: expect.stringMatching(message), hint: expect.any(String) },
    ])
  })

  test('that refuses the token fails, and says where that came from, but not what it is', async () => {
    const address = await accepting()
    const world = await World.build({ stores: { team: { address } }, tokens: { [address]: { ...isHere, token: 'wr0ng-token' } } })
    const { ill } = await world.examine(['--store', 'team'])
    expect(ill).toEqual([
      {
        check: 'store team',
        state: 'failed',
        message: `${address} does not accept the token: This token is not accepted`,
        hint: 'It was saved. Save another with: plants auth login --store team',
      },
    ])
    expect(JSON.stringify(ill)).not.toContain('wr0ng')
  })

  test('without a token fails when it is the store of this run, and is warned of when it is not', async () => {
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
    const world = await World.build({ stores: { team: { address: remote.url } } })
    const finding = {
      check: 'store team',
      message: `There is no token for ${remote.url}`,
      hint: 'Set PLANTS_TOKEN, or save one with: plants auth login --store team',
    }
    expect((await world.examine()).ill).toEqual([{ ...finding, state: 'warning' }])
    expect((await world.examine(['--store', 'team'])).ill).toEqual([{ ...finding, state: 'failed' }])
    expect(remote.connections).toBe(0)
  })

  test('whose token command has printed an expired one fails, and shows nothing of it', async () => {
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })] })
    const script = join(temporaryFolder(), 'token.sh')
    writeFileSync(script, `echo '{"token":"${token}","expires":"2020-01-01T00:00:00Z"}'`)
    const world = await World.build({ stores: { team: { address: remote.url, 'token-command': `/bin/sh ${script}` } } })
    const { ill } = await world.examine(['--store', 'team'])
    expect(ill).toEqual([
      {
        check: 'store team',
        state: 'failed',
        message: 'The token command of team (/bin/sh) printed a token that has expired, on 2020-01-01T00:00:00.000Z',
        hint: 'Renew it where the command takes it from',
      },
    ])
    expect(remote.connections).toBe(0)
  })

  test.runIf(hasOpenssl)('with a certificate that nobody has signed fails, until it is trusted (needs openssl)', async () => {
    const tls = certificate({ names: ['IP:127.0.0.1'] })
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No' })], tls })
    const world = await World.build({ stores: { team: { address: remote.url } }, tokens: { [remote.url]: isHere } })
    expect((await world.examine()).ill).toEqual([
      {
        check: 'store team',
        state: 'failed',
        message: `Could not reach ${remote.url}: TLS failed, because nobody whom this machine trusts has signed its certificate`,
        hint: 'If you know who has, give their certificate with --ca-cert FILE',
      },
    ])
    world.save({ stores: { team: { address: remote.url, 'ca-cert': tls.path } }, tokens: { [remote.url]: isHere } })
    expect((await world.examine()).ill).toEqual([])
    const other = certificate({ names: ['IP:127.0.0.1'] })
    world.save({ stores: { team: { address: remote.url, 'ca-cert': other.path } }, tokens: { [remote.url]: isHere } })
    expect((await world.examine()).ill).toMatchObject([
      { check: 'store team', state: 'failed', message: expect.stringContaining('TLS failed'), hint: 'Give the one that has' },
    ])
  })

  test('without TLS on another machine gets no token, and the finding says why', async () => {
    const address = 'http://plants.example.com'
    const world = await World.build({ stores: { team: { address } }, tokens: { [address]: isHere } })
    expect((await world.examine()).ill).toEqual([
      {
        check: 'store team',
        state: 'warning',
        message: `The token is not sent to ${address}: without TLS others could read it`,
        hint: expect.stringContaining('stores.team.allow-http true'),
      },
    ])
  })

  test('gets PLANTS_TOKEN only when it is the store of this run', async () => {
    const answer = json(400, { error: 422, message: 'No' })
    const [own, saved, none] = await Promise.all([1, 2, 3].map(() => Hostile.listen({ posts: [answer] })))
    const world = await World.build({
      store: 'own',
      stores: { own: { address: own?.url }, saved: { address: saved?.url }, none: { address: none?.url } },
      tokens: { [saved?.url ?? '']: { ...isHere, token: 'saved-t0ken' }, [own?.url ?? '']: { ...isHere, token: 'own-t0ken' } },
    })
    world.env['PLANTS_TOKEN'] = 'of-variable'
    const sent = (remote?: Hostile) => remote?.posts.map(({ headers }) => headers['authorization'])
    expect((await world.examine()).ill).toMatchObject([{ check: 'store none', state: 'warning' }])
    expect([own, saved, none].map(sent)).toEqual([
      ['Bearer of-variable', 'Bearer of-variable'],
      ['Bearer saved-t0ken', 'Bearer saved-t0ken'],
      [],
    ])
    expect((await world.examine(['--store', 'none'])).ill).toEqual([])
    expect([own, saved, none].map((remote) => sent(remote)?.at(-1))).toEqual([
      'Bearer own-t0ken',
      'Bearer saved-t0ken',
      'Bearer of-variable',
    ])
  })

  test('asks with an empty object, which makes no plant', async () => {
    const path = join(temporaryFolder(), 'plants.db')
    const address = await ownService({ host: '127.0.0.1', port: 0 }, path)
    const world = await World.build()
    world.env['PLANTS_TOKEN'] = token
    expect((await world.examine(['--store', address])).ill).toEqual([])
    expect((await plants(['list', '--store', path], temporaryFolder())).out).toBe('')
  })
})

test.each(['HTTPS_PROXY', 'http_proxy'])('a wrong %s fails', async (name) => {
  const world = await World.build()
  world.env[name] = 'socks5://proxy.example.com'
  expect((await world.examine()).ill).toEqual([
    {
      check: 'proxy',
      state: 'failed',
      message: `${name.toUpperCase()} is not the address of an http or https proxy`,
      hint: `For example: ${name.toUpperCase()}=http://proxy.example.com:3128`,
    },
  ])
})

describe('a terminal', () => {
  test('that is not UTF-8 is warned of, and the doctor speaks in sentences there', async () => {
    const folder = temporaryFolder()
    const { code, screen } = await terminal(['doctor'], folder, { LANG: 'en_US.ISO-8859-1' }).ended
    expect({ code, lines: stripVTControlCharacters(screen).trimEnd().split('\r\n').slice(-2) }).toEqual({
      code: 0,
      lines: [
        'warning  terminal: stdin, stdout, stderr, 80 columns, in en_US.ISO-8859-1',
        '         For all plants to be shown right, use a UTF-8 locale: export LANG=C.UTF-8',
      ],
    })
  })

  test.each<[Record<string, string>, 'ok' | 'warning']>([
    [{}, 'ok'],
    [{ LANG: 'de_DE.utf8' }, 'ok'],
    [{ LANG: 'C', LC_ALL: 'C.UTF-8' }, 'ok'],
    [{ LANG: 'C.UTF-8', LC_ALL: 'POSIX' }, 'warning'],
    [{ LANG: 'C.UTF-8', LC_CTYPE: 'C' }, 'warning'],
  ])('is judged by its locale: %j', async (env, state) => {
    const { code, out } = await runPlants(['doctor', '--output', 'json'], { env, terminals: ['stdout', 'stderr'], columns: 100 })
    expect({ code, ...objectsOf(out).at(-1) }).toMatchObject({
      ...{ code: 0, check: 'terminal', state },
      message: expect.stringContaining('stdout, stderr, 100 columns'),
    })
  })
})

test('each finding comes as soon as it is known, and Ctrl-C ends the wait for the next', async () => {
  const remote = await Hostile.listen({ posts: [() => child.kill('SIGINT')] })
  const world = await World.build({ stores: { team: { address: remote.url } } })
  const child = start(['doctor', '--store', 'team'], world.root, { env: { ...world.env, PLANTS_TOKEN: token } })
  const { exitCode, stdout, stderr } = await child
  expect({ exitCode, checks: objectsOf(String(stdout)).map(({ check }) => check) }).toEqual({
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
  const slow = await Hostile.listen({ posts: [(socket) => void asked.then(() => socket.write(accepts))] }) // which waits for the last one
  const stores = { slow: { address: slow.url }, silent: { address: silent.url, timeout: '300ms' }, last: { address: last.url } }
  const isHere = { token, savedAt: '2026-01-02T03:04:05.678Z' }
  const world = await World.build({ stores, tokens: { [slow.url]: isHere, [silent.url]: isHere, [last.url]: isHere } })
  const { code, out } = await world.run(['doctor', '--store', 'silent'])
  expect(code).toBe(1)
  const findings = objectsOf(out).filter(({ check }) => check.startsWith('store'))
  expect(findings.map(({ check, state }) => `${check}: ${state}`)).toEqual([
    'store silent: failed',
    ...['store local: ok', 'store slow: ok', 'store last: ok'],
  ])
})

test('takes no argument, and knows its flags', async () => {
  expect(await runPlants(['doctor', 'me'])).toMatchObject({ code: 2, out: '' })
  expect(await runPlants(['doctor', '--fix'])).toMatchObject({ code: 2, out: '' })
  expect(await runPlants(['doctor', '--output', 'xml'])).toMatchObject({ code: 2, out: '' })
})

test('what a saved store is called or where it is cannot drive the terminal', async () => {
  const world = await World.build()
  world.save({ stores: { team: { address: 'https://plants.example.com/\u202e' }, other: { address: './\u001b[2Jx.db' } } })
  const { out } = await world.run(['doctor', '--output', 'text'])
  expect(out.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
})

test('warns of nothing when many databases are looked at', async () => {
  const warnings: Error[] = []
  const note = (warning: Error) => void warnings.push(warning)
  process.on('warning', note)
  onTestFinished(() => void process.off('warning', note))
  const world = await World.build()
  const stores = Array.from({ length: 12 }, (_, index) => [`db${index}`, { address: `postgres://ann@127.0.0.1:9/garden${index}` }])
  world.save({ stores: Object.fromEntries(stores) })
  expect(await world.run(['doctor', '--timeout', '100ms'])).toMatchObject({ code: 1 })
  await new Promise(setImmediate)
  expect(warnings).toEqual([])
})
