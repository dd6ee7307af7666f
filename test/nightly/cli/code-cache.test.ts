import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { version } from '../../../package.json'
import { canBecomeStranger, stranger } from '../../helpers/sandbox/linux.js'
import { readMode, Sandbox, toTextResult } from '../../helpers/sandbox/sandbox.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'

const root = join(import.meta.dirname, '../../..')
const started = toTextResult(`${version}\n`)

/** A start that may keep what V8 has compiled, which others in these tests may not. */
function start(user: Sandbox, env: Record<string, string> = {}) {
  return user.spawn('--version', { env: { NODE_DISABLE_COMPILE_CACHE: undefined, ...env } })
}

/** A user who has started the program before, and the files that this has left. */
async function afterStart() {
  const user = new Sandbox()
  expect(await start(user)).toEqual(started)
  const cache = join(user.home, '.cache/plants')
  const files = filesIn(cache)
  return { user, cache, files, file: files[0] ?? '' }
}

function filesIn(folder: string): string[] {
  return readdirSync(folder).map((name) => join(folder, name))
}

/** Whether a file holds two copies that are the same. */
function isWhole(file: string): boolean {
  const bytes = readFileSync(file)
  const half = bytes.length / 2
  return half > 0 && bytes.subarray(0, half).equals(bytes.subarray(half))
}

/**
 * A file as if V8 had compiled another source of the same length, which is all that it compares.
 */
function foreignCode(file: string): Buffer {
  const source = basename(file)
    .slice(`${process.version}-${process.arch}-`.length)
    .replace(/-[\d.]+$/, '')
  const text = readFileSync(join(root, 'dist', source), 'utf8')
  const { length } = `(function(exports,require,module,__filename,__dirname){${text}\n})`
  // In a process of its own: V8 rejects what was compiled with other flags than those of a start.
  const input = "process.stderr.write('foreign code');process.exit(99)".padEnd(length)
  const compile =
    'process.stdout.write(new vm.Script(fs.readFileSync(0, "utf8")).createCachedData())'
  const data = execFileSync(process.execPath, ['-e', compile], { input, maxBuffer: 2 ** 26 })
  return Buffer.concat([data, data])
}

const foreign = { code: 99, out: '', err: 'foreign code' }

describe.skipIf(process.env['PLANTS_BIN'] !== undefined)(
  'the code cache (needs Node as its runtime)',
  () => {
    test('is kept for the next start, readable only by the user', async () => {
      const { user, cache, files } = await afterStart()
      expect([readMode(cache), ...new Set(files.map(readMode))]).toEqual(['700', '600'])
      const inodes = () => filesIn(cache).map((file) => statSync(file).ino)
      const before = inodes()
      expect(await start(user)).toEqual(started)
      expect(inodes()).toEqual(before)
    })

    test('grows when another command compiles more functions', async () => {
      const { user, files } = await afterStart()
      const largest = () => Math.max(...files.map((file) => statSync(file).size))
      const before = largest()
      await user.spawn('count', { env: { NODE_DISABLE_COMPILE_CACHE: undefined } })
      expect(largest()).toBeGreaterThan(before)
    })

    test('is not used for a file that was changed by hand', async () => {
      const [{ home }, folder] = [new Sandbox(), createTemporaryFolder()]
      for (const name of ['bin', 'dist'])
        cpSync(join(root, name), join(folder, name), { recursive: true })
      const env = { HOME: home, NODE_DISABLE_COMPILE_CACHE: undefined }
      const run = async () =>
        (await execa(process.execPath, [join(folder, 'bin/plants.js'), '--version'], { env }))
          .stdout
      expect(await run()).toBe(version)
      const other = version.replace(/\d/g, '9')
      for (const file of filesIn(join(folder, 'dist')))
        writeFileSync(file, readFileSync(file, 'utf8').replaceAll(`\`${version}\``, `\`${other}\``))
      expect(await run()).toBe(other)
    })

    test('is compiled again where a file is zeros, as after a power failure', async () => {
      const { user, files } = await afterStart()
      for (const file of files) writeFileSync(file, readFileSync(file).fill(0))
      expect(await start(user)).toEqual(started)
      expect(files.filter((file) => !isWhole(file))).toEqual([])
    })

    test('is kept where XDG_CACHE_HOME says', async () => {
      const user = new Sandbox()
      await start(user, { XDG_CACHE_HOME: join(user.home, 'cache') })
      expect(readdirSync(user.home)).toEqual(['cache'])
    })

    test('is not used from a folder that others can write to', async () => {
      const { user, cache, file } = await afterStart()
      writeFileSync(file, foreignCode(file))
      for (const [mode, result] of [
        [0o755, foreign],
        [0o720, started],
        [0o702, started],
      ] as const) {
        chmodSync(cache, mode)
        expect(await start(user), mode.toString(8)).toEqual(result)
      }
    })

    test('is not read from a file that others can write to, or from a link', async () => {
      const { user, cache, file } = await afterStart()
      const code = foreignCode(file)
      for (const [mode, result] of [
        [0o644, foreign],
        [0o620, started],
        [0o602, started],
      ] as const) {
        // The start before has replaced it.
        rmSync(file)
        writeFileSync(file, code)
        chmodSync(file, mode)
        expect(await start(user), mode.toString(8)).toEqual(result)
      }
      const elsewhere = join(user.home, 'elsewhere')
      rmSync(file)
      writeFileSync(elsewhere, code, { mode: 0o600 })
      symlinkSync(elsewhere, file)
      expect(await start(user), 'a link in the place of a file').toEqual(started)
      expect(readFileSync(elsewhere), 'the target of the link').toEqual(code)

      writeFileSync(file, code)
      renameSync(cache, `${cache}-moved`)
      symlinkSync(`${cache}-moved`, cache)
      expect(await start(user), 'a link in the place of the folder').toEqual(started)
      expect(readFileSync(file)).toEqual(code)
    })

    test('is compiled again where a pipe has the name of a file', async () => {
      const { user, file } = await afterStart()
      rmSync(file)
      execFileSync('mkfifo', [file])
      expect(await start(user)).toEqual(started)
      expect(isWhole(file)).toBe(true)
    })

    test('is removed after a month without use, and no other file is', async () => {
      const { user, cache, file } = await afterStart()
      const [old, notes] = [
        join(cache, basename(file).replace(/^v\d+/, 'v1')),
        join(cache, 'v1.md'),
      ]
      const twoMonthsAgo = Date.now() / 1000 - 60 * 24 * 3600
      for (const path of [old, notes]) {
        writeFileSync(path, '')
        utimesSync(path, twoMonthsAgo, twoMonthsAgo)
      }
      writeFileSync(file, '') // so that this start saves again
      expect(await start(user)).toEqual(started)
      expect([old, notes].map((path) => existsSync(path))).toEqual([false, true])
    })

    test.runIf(canBecomeStranger)(
      'is not read from a file of another user (needs root and setpriv)',
      async () => {
        const { user, file } = await afterStart()
        writeFileSync(file, foreignCode(file))
        chownSync(file, stranger, stranger)
        expect(await start(user)).toEqual(started)
      },
    )

    test.runIf(canBecomeStranger)(
      'is not taken from a folder of another user (needs root and setpriv)',
      async () => {
        const { user, cache, file } = await afterStart()
        writeFileSync(file, foreignCode(file))
        chownSync(cache, stranger, stranger)
        expect(await start(user)).toEqual(started)
      },
    )
  },
)
