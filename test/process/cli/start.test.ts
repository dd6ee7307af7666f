import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { plants } from '../../helpers/process.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const [major = 0] = process.versions.node.split('.').map(Number)
const hasCache = major >= 22 && process.env['PLANTS_BIN'] === undefined

describe.skipIf(!hasCache)('what Node has compiled (needs Node 22.1)', () => {
  test('is kept for the next start, for the user alone', async () => {
    const folder = temporaryFolder()
    await version(folder)
    const cache = join(folder, '.cache/plants')
    expect(statSync(cache).mode & 0o777).toBe(0o700)
    expect(readdirSync(cache, { recursive: true }).length).toBeGreaterThan(1)
  })

  test('is kept where XDG_CACHE_HOME says', async () => {
    const folder = temporaryFolder()
    await version(folder, { XDG_CACHE_HOME: join(folder, 'cache') })
    expect(readdirSync(folder)).toEqual(['cache'])
  })

  test.each([
    ['relative', { XDG_CACHE_HOME: 'cache' }],
    ['not to be', { NODE_DISABLE_COMPILE_CACHE: '1' }],
    ['nowhere', { HOME: '' }],
  ])('is not kept where its place is %s', async (_, env) => {
    const folder = temporaryFolder()
    const { code } = await version(folder, env)
    expect({ code, left: readdirSync(folder) }).toEqual({ code: 0, left: [] })
  })

  test.each([0o777, 0o755])('is not kept in a folder of mode %o, which others can enter', async (mode) => {
    const folder = temporaryFolder()
    const cache = join(folder, '.cache/plants')
    mkdirSync(cache, { recursive: true })
    chmodSync(cache, mode)
    const { code, err } = await version(folder)
    expect({ code, err, left: readdirSync(cache) }).toEqual({ code: 0, err: '', left: [] })
  })

  test('is not kept where a link leads to', async () => {
    const [folder, other] = [temporaryFolder(), temporaryFolder()]
    mkdirSync(join(folder, '.cache'))
    symlinkSync(other, join(folder, '.cache/plants'))
    expect((await version(folder)).code).toBe(0)
    expect(readdirSync(other)).toEqual([])
  })

  test.skipIf(process.getuid?.() !== 0)(
    'is not kept by root in the home of somebody else, where nothing is made (needs root)',
    async () => {
      const folder = temporaryFolder()
      chownSync(folder, 65_534, 65_534)
      expect((await version(folder)).code).toBe(0)
      expect(readdirSync(folder)).toEqual([])
    },
  )

  test('is not kept where no folder can be made, and that takes no time', async () => {
    expect(await version(temporaryFolder(), { HOME: '/proc' })).toMatchObject({ code: 0, err: '' })
  })
})

test('the version, for programs, names what it runs on', async () => {
  const { code, out } = await plants(['version', '--output', 'json'], temporaryFolder())
  const { version, ...rest } = JSON.parse(out) as Record<string, string>
  expect({ code, version }).toEqual({ code: 0, version: expect.stringMatching(/^\d+\.\d+\.\d+$/) })
  expect(rest).toEqual({
    runtime: expect.stringMatching(/^(node|bun) \d+\.\d+\.\d+$/),
    sqlite: expect.stringMatching(/^3\.\d+\.\d+$/),
    driver: expect.stringMatching(/^(node:sqlite|@photostructure\/sqlite)$/),
    platform: expect.stringMatching(RegExp(`^${process.platform}-(x64|arm64)$`)), // which may be emulated
  })
})

/** A start that may keep something, which others in these tests may not. */
function version(folder: string, env: Record<string, string> = {}) {
  return plants(['--version'], folder, { env: { NODE_DISABLE_COMPILE_CACHE: undefined, ...env }, cwd: folder })
}
