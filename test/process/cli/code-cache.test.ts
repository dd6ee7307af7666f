import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { version } from '../../../package.json'
import { canMount, smallDisk } from '../../helpers/linux.js'
import { rounds } from '../../helpers/rounds.js'
import { canBecome, stranger } from '../../helpers/stranger.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { answer, modeOf, printed, World } from '../../helpers/world.js'

const root = join(import.meta.dirname, '../../..')
const dist = join(root, 'dist')
const fern = 'create --id 1 --name Fern'
const started = printed(`${version}\n`)

/** A start that may keep what V8 has compiled, which others in these tests may not. */
function start(user: World, command = '--version', env: Record<string, string> = {}) {
  return user.spawn(command, { env: { NODE_DISABLE_COMPILE_CACHE: undefined, ...env } })
}

/** A user who has started the program before, and the files that this has left. */
async function afterStart(
  command = '--version',
): Promise<{ user: World; cache: string; files: string[] }> {
  const user = new World()
  expect(await start(user, command)).toMatchObject({ code: 0, err: '' })
  const cache = join(user.home, '.cache/plants')
  return { user, cache, files: filesIn(cache) }
}

function filesIn(folder: string): string[] {
  return readdirSync(folder).map((name) => join(folder, name))
}

/** Whether a file holds two copies that are the same. */
function isWhole(file: string): boolean {
  const bytes = readFileSync(file)
  return (
    bytes.length > 0 && bytes.subarray(0, bytes.length / 2).equals(bytes.subarray(bytes.length / 2))
  )
}

/** The name in dist of what a file of the cache was compiled from. */
function sourceOf(file: string): string {
  return basename(file)
    .slice(`${process.version}-${process.arch}-`.length)
    .replace(/-[\d.]+$/, '')
}

/** What is in a file of the cache if V8 has compiled another source of the same length, which is all that it compares. */
function foreignCode(file: string): Buffer {
  const source = readFileSync(join(dist, sourceOf(file)), 'utf8')
  const { length } = `(function(exports,require,module,__filename,__dirname){${source}\n})`
  // Made by a process of its own: V8 rejects what was compiled with other flags, and a test may have set some in this one.
  const code = "process.stderr.write('foreign code');process.exit(99)".padEnd(length)
  const compile =
    'process.stdout.write(new vm.Script(fs.readFileSync(0, "utf8")).createCachedData())'
  const data = execFileSync(process.execPath, ['-e', compile], { input: code, maxBuffer: 2 ** 26 })
  return Buffer.concat([data, data])
}

const foreign = { code: 99, out: '', err: 'foreign code' }

describe.skipIf(process.env['PLANTS_BIN'] !== undefined)(
  'what V8 has compiled (needs Node as its runtime)',
  () => {
    test('is kept for the next start, for the user alone', async () => {
      const { user, cache, files } = await afterStart(fern)
      expect(modeOf(cache)).toBe('700')
      expect(files.map(modeOf)).toEqual(files.map(() => '600'))
      const chunks = files.map((file) => sourceOf(file).replace(/-[\w-]{8}\.js$/, ''))
      expect(chunks).toEqual(expect.arrayContaining(['run', 'create', 'sqlite-store']))
      const inodes = () => filesIn(cache).map((file) => statSync(file).ino)
      const before = inodes()
      expect(await start(user, 'create --id 2 --name Moss')).toEqual(answer({ name: 'Moss' }))
      expect(inodes()).toEqual(before)
    })

    test('is not used for a file that was changed by hand', async () => {
      const [user, folder] = [new World(), temporaryFolder()]
      for (const name of ['bin/plants.js', 'bin/code-cache.js', 'dist'])
        cpSync(join(root, name), join(folder, name), { recursive: true })
      const run = async () => {
        const env = { HOME: user.home, NODE_DISABLE_COMPILE_CACHE: undefined }
        return (
          await execa(process.execPath, [join(folder, 'bin/plants.js'), '--version'], { env })
        ).stdout
      }
      expect(await run()).toBe(version)
      const other = version.replace(/\d/g, '9')
      for (const file of filesIn(join(folder, 'dist'))) {
        const text = readFileSync(file, 'utf8')
        if (text.includes(`\`${version}\``))
          writeFileSync(file, text.replaceAll(`\`${version}\``, `\`${other}\``))
      }
      expect(await run()).toBe(other)
    })

    const damages: [string, (bytes: Buffer) => Buffer][] = [
      ['is empty', () => Buffer.alloc(0)],
      ['is cut', (bytes) => bytes.subarray(0, -1)],
      ['is cut in the middle', (bytes) => bytes.subarray(0, bytes.length / 2)],
      ['has a wrong byte', (bytes) => bytes.fill(bytes.readUInt8(1000) ^ 1, 1000, 1001)],
      ['is of another version of V8', (bytes) => Buffer.alloc(bytes.length, 'plants')],
      ['has zeros, as after a power failure', (bytes) => bytes.fill(0, 512)],
      ['is zeros', (bytes) => bytes.fill(0)],
    ]
    test.each(damages)('is compiled again where a file %s', async (_, damage) => {
      const { user, files } = await afterStart()
      const file = files.find((path) => sourceOf(path).startsWith('run-')) ?? ''
      writeFileSync(file, damage(readFileSync(file)))
      expect(await start(user)).toEqual(started)
      expect(isWhole(file)).toBe(true)
    })

    test('is kept once by many first starts at the same time', async () => {
      const user = new World()
      const count = rounds(8)
      const all = Array.from({ length: count }, () => start(user))
      expect(await Promise.all(all)).toEqual(all.map(() => started))
      const files = filesIn(join(user.home, '.cache/plants'))
      expect(await start(user)).toEqual(started)
      const { files: expected } = await afterStart()
      expect(files.map((file) => basename(file))).toEqual(expected.map((file) => basename(file)))
      expect(files.filter((file) => !isWhole(file))).toEqual([])
    })

    test('is removed after a month, when something else is kept, and nothing else is removed', async () => {
      const { user, cache, files } = await afterStart()
      const [first = ''] = files
      const others = ['v18.0.0-x64-run.js-1', `${basename(first)}.4711`, 'notes.txt'].map((name) =>
        join(cache, name),
      )
      for (const file of others) writeFileSync(file, '')
      const age = (file: string, days: number) =>
        utimesSync(file, 0, Date.now() / 1000 - days * 86_400)
      for (const file of others) age(file, 31)
      for (const file of files) age(file, 29)
      writeFileSync(first, '')
      expect(await start(user)).toEqual(started)
      expect(filesIn(cache).toSorted()).toEqual([...files, join(cache, 'notes.txt')].toSorted())
    })

    test.runIf(canMount)('is left out on a full disk (a tmpfs, needs unshare)', async () => {
      const user = new World()
      const XDG_CACHE_HOME = (await smallDisk()).inside
      for (const id of [1, 2, 3])
        expect(await start(user, `create --id ${id} --name Fern`, { XDG_CACHE_HOME })).toEqual(
          answer({ name: 'Fern' }),
        )
      expect(
        filesIn(join(XDG_CACHE_HOME, 'plants')).filter((file) => !isWhole(file)).length,
      ).toBeLessThanOrEqual(1)
    })

    test('is kept where XDG_CACHE_HOME says', async () => {
      const user = new World()
      await start(user, '--version', { XDG_CACHE_HOME: join(user.home, 'cache') })
      expect(readdirSync(user.home)).toEqual(['cache'])
    })

    const places: [string, Record<string, string>][] = [
      ['with a relative XDG_CACHE_HOME', { XDG_CACHE_HOME: 'cache' }],
      ['with NODE_DISABLE_COMPILE_CACHE', { NODE_DISABLE_COMPILE_CACHE: '1' }],
      ['without a HOME', { HOME: '' }],
      ['where no folder can be created', { HOME: '/proc' }],
      ['below a file', { XDG_CACHE_HOME: '/etc/passwd' }],
    ]
    test.each(places)('is not kept %s', async (_, env) => {
      const user = new World()
      expect(await start(user, '--version', env)).toEqual(started)
      expect(readdirSync(user.home)).toEqual([])
    })

    test('is executed, so not from a folder that others can write to', async () => {
      const { user, cache, files } = await afterStart()
      const [file = ''] = files
      writeFileSync(file, foreignCode(file))
      expect(await start(user)).toEqual(foreign)
      for (const mode of [0o720, 0o702, 0o777]) {
        chmodSync(cache, mode)
        expect(await start(user), mode.toString(8)).toEqual(started)
      }
      chmodSync(cache, 0o755)
      expect(await start(user)).toEqual(foreign)
    })

    test.runIf(canBecome)(
      'is not taken from a folder of another user (needs root and setpriv)',
      async () => {
        const { user, cache, files } = await afterStart()
        const [file = ''] = files
        writeFileSync(file, foreignCode(file))
        chownSync(cache, stranger, stranger)
        expect(await start(user)).toEqual(started)
        expect(filesIn(cache)).toEqual(files)
      },
    )
  },
)
