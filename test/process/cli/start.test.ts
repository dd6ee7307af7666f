import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { version as current } from '../../../package.json'
import { oddSurroundings } from '../../helpers/differences.js'
import { canMount, isLinux } from '../../helpers/linux.js'
import { startUnder } from '../../helpers/process.js'
import { modeOf } from '../../helpers/settings-file.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { printed, World } from '../../helpers/world.js'

const root = join(import.meta.dirname, '../../..')

/** A start that may keep what V8 has compiled, which others in these tests may not. */
function start(user: World, command: string, env: Record<string, string> = {}) {
  return user.spawn(command, { env: { NODE_DISABLE_COMPILE_CACHE: undefined, ...env } })
}

describe.skipIf(process.env['PLANTS_BIN'] !== undefined)(
  'a Node.js that is too old (needs Node as its runtime)',
  () => {
    /** Starts the program on a Node that takes itself for another version. */
    async function startOn(pretended: string, line: string) {
      const preload = join(temporaryFolder(), 'version.cjs')
      const versions = `{ ...process.versions, node: '${pretended}' }`
      writeFileSync(preload, `Object.defineProperty(process, 'versions', { value: ${versions} })`)
      return new World().spawn(line, { env: { NODE_OPTIONS: `--require ${preload}` } })
    }

    test.each(['18.20.8', '20.18.3', '8.17.0'])('is named in a sentence by every command: %s', async (old) => {
      const expected = { code: 70, out: '', err: `plants needs Node.js 20.19 or newer; this is ${old}\n` }
      for (const line of ['--version', '--help', 'create --id 1 --name Fern', 'list -o json'])
        expect(await startOn(old, line)).toEqual(expected)
    })

    test.each(['20.19.0', '21.0.0', '100.1.2'])('is not %s', async (known) => {
      expect(await startOn(known, '--version')).toEqual(printed(`${current}\n`))
    })
  },
)

const version = (user: World, env?: Record<string, string>) => start(user, '--version', env)

describe.skipIf(process.env['PLANTS_BIN'] !== undefined)('what V8 has compiled (needs Node as its runtime)', () => {
  test('is kept for the next start, for the user alone', async () => {
    const user = new World()
    expect((await version(user)).code).toBe(0)
    expect((await start(user, 'create --id 1 --name Fern')).code).toBe(0)
    const cache = join(user.home, '.cache/plants')
    expect(modeOf(cache)).toBe('700')
    const kept = readdirSync(cache)
    expect(kept.map((name) => modeOf(join(cache, name)))).toEqual(kept.map(() => '600'))
    const chunks = kept.map((name) =>
      name.replace(`${process.version}-${process.arch}-`, '').replace(/-[\w-]{8}-\d+$/, ''),
    )
    expect(chunks.toSorted()).toEqual(['create', 'rolldown-runtime', 'sqlite', 'start'])
  })

  test('is not used for a file that was changed by hand', async () => {
    const [user, folder] = [new World(), temporaryFolder()]
    for (const name of ['bin/plants.js', 'dist']) cpSync(join(root, name), join(folder, name), { recursive: true })
    const run = async () => {
      const env = { HOME: user.home, NODE_DISABLE_COMPILE_CACHE: undefined }
      return (await execa(process.execPath, [join(folder, 'bin/plants.js'), '--version'], { env })).stdout
    }
    expect(await run()).toBe(current)
    const name = readdirSync(join(folder, 'dist')).find((file) => file.startsWith('start-')) ?? ''
    const chunk = join(folder, 'dist', name)
    writeFileSync(chunk, readFileSync(chunk, 'utf8').replaceAll(`\`${current}\``, `\`${current.replace(/\d/g, '9')}\``))
    expect(await run()).toBe(current.replace(/\d/g, '9'))
  })

  test('is of files that are ASCII, which bin/plants.js takes them for', () => {
    const dist = join(root, 'dist')
    const files = readdirSync(dist).filter((name) => name.endsWith('.js'))
    expect(files.filter((name) => /[^\0-\x7f]/.test(readFileSync(join(dist, name), 'latin1')))).toEqual([])
  })

  const damages: [string, (bytes: Buffer) => Buffer][] = [
    ['is empty', () => Buffer.alloc(0)],
    ['is cut', (bytes) => bytes.subarray(0, -1)],
    ['has a wrong byte', (bytes) => bytes.fill(bytes.readUInt8(1000) ^ 1, 1000, 1001)],
    ['is of another version of V8', (bytes) => Buffer.alloc(bytes.length, 'plants')],
    ['has zeros, as after a power failure', (bytes) => bytes.fill(0, 512)],
  ]
  test.each(damages)('is compiled again where a file %s', async (_, damage) => {
    const user = new World()
    await version(user)
    const cache = join(user.home, '.cache/plants')
    const [file = ''] = readdirSync(cache).filter((name) => name.includes('-start-'))
    const before = readFileSync(join(cache, file))
    writeFileSync(join(cache, file), damage(Buffer.from(before)))
    expect(await version(user)).toMatchObject({ code: 0, err: '' })
    expect(readFileSync(join(cache, file)).length).toBeCloseTo(before.length, -3)
  })

  test('is kept where XDG_CACHE_HOME says', async () => {
    const user = new World()
    await version(user, { XDG_CACHE_HOME: join(user.home, 'cache') })
    expect(readdirSync(user.home)).toEqual(['cache'])
  })

  const places: [string, Record<string, string>][] = [
    ['with a relative XDG_CACHE_HOME', { XDG_CACHE_HOME: 'cache' }],
    ['with NODE_DISABLE_COMPILE_CACHE', { NODE_DISABLE_COMPILE_CACHE: '1' }],
    ['without a HOME', { HOME: '' }],
    ['where no folder can be created', { HOME: '/proc' }],
  ]
  test.each(places)('is not kept %s', async (_, env) => {
    const user = new World()
    const { code, err } = await version(user, env)
    expect({ code, err, left: readdirSync(user.home) }).toEqual({ code: 0, err: '', left: [] })
  })

  test('is not kept in a directory that others can write to', async () => {
    const user = new World()
    const cache = join(user.home, '.cache/plants')
    mkdirSync(cache, { recursive: true })
    chmodSync(cache, 0o777)
    const { code, err } = await version(user)
    expect({ code, err, left: readdirSync(cache) }).toEqual({ code: 0, err: '', left: [] })
  })

  test('is not kept where a link leads to', async () => {
    const [user, other] = [new World(), temporaryFolder()]
    mkdirSync(join(user.home, '.cache'))
    symlinkSync(other, join(user.home, '.cache/plants'))
    expect((await version(user)).code).toBe(0)
    expect(readdirSync(other)).toEqual([])
  })
})

test('the version as JSON names what it runs on', async () => {
  const { code, out } = await new World().spawn('version --output json')
  expect({ code, ...JSON.parse(out) }).toEqual({
    code: 0,
    version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    runtime: expect.stringMatching(/^(node|bun) \d+\.\d+\.\d+$/),
    sqlite: expect.stringMatching(/^3\.\d+\.\d+$/),
    driver: expect.stringMatching(/^(node:sqlite|@photostructure\/sqlite)$/),
    platform: expect.stringMatching(RegExp(`^${process.platform}-(x64|arm64)$`)), // which may be emulated
  })
})

test('what runtimes and tools look for in the current folder changes nothing', async () => {
  const user = new World()
  const settings = 'PLANTS_STORE=/nonexistent/plants.db\nPLANTS_OUTPUT=text\n'
  for (const name of ['.env', '.env.local', '.env.production', '.env.development']) user.write(name, settings)
  user.write('preload.cjs', 'require("node:fs").writeFileSync("loaded", ""); console.log("loaded")')
  user.write('bunfig.toml', 'preload = ["./preload.cjs"]\n')
  user.write('tsconfig.json', '{')
  user.write('package.json', '{"name":"plants","type":"module","imports":{"#*":"./preload.cjs"}}')
  const before = readdirSync(user.home)
  const out = '{"name":"Fern"}\n'
  expect(await user.spawn('create --id 1 --name Fern')).toEqual({ code: 0, out, err: '' })
  expect(readdirSync(user.home).filter((name) => !before.includes(name))).toEqual(['data'])
})

describe.runIf(isLinux)('in odd surroundings a list ends as the table of differences says:', () => {
  const scripts: Record<string, string[]> = {
    'the current directory is gone': ['sh', '-c', 'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@"'],
    'no /proc on Linux': ['unshare', '-rm', 'sh', '-c', 'mount -t tmpfs tmpfs /proc && exec "$0" "$@"'],
  }

  test('they are all tried here', () => {
    expect([...oddSurroundings.keys()]).toEqual(Object.keys(scripts))
  })

  test.runIf(canMount).each(Object.entries(scripts))('%s (needs unshare)', async (name, [program = '', ...under]) => {
    const user = new World()
    await user.spawn('create --id 1 --name Fern')
    const { exitCode, signal, stdout } = await startUnder(program, under, ['list'], user.home, { cwd: user.home })
    const code = signal === 'SIGABRT' ? 134 : exitCode
    expect({ code: String(code), stdout }).toEqual({
      code: expect.toBeOneOf(oddSurroundings.get(name)?.split(' or ') ?? []),
      stdout: code === 0 ? '{"id":1,"name":"Fern"}\n' : '',
    })
  })
})
