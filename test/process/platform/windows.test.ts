import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Options } from 'execa'
import { describe, expect, test } from 'vitest'
import { describeDriver } from '../../../src/platform/sqlite.js'
import { isLinux } from '../../helpers/linux.js'
import { plants as start } from '../../helpers/process.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'

// Windows itself, its paths and its console are tried only where it is: see docs/platforms.md.
describe.runIf(isLinux && !process.env['PLANTS_BIN'])('on a simulated Windows (needs Node as its runtime)', () => {
  const fern = '{"id":1,"name":"Färn"}\n'
  const envOf = (folder: string) => ({
    NODE_OPTIONS: `--require ${join(import.meta.dirname, '../../helpers/windows.cjs')}`,
    PLANTS_DATA_DIR: '',
    APPDATA: join(folder, 'Roaming'),
    LOCALAPPDATA: join(folder, 'Local'),
  })
  const plants = (args: string[], folder: string, { env, ...options }: Options = {}) =>
    start(args, folder, { ...options, env: { ...envOf(folder), ...env } })

  async function withFern(): Promise<string> {
    const folder = temporaryFolder()
    expect(await plants(['create', '--file', '-'], folder, { input: fern })).toMatchObject({ code: 0, err: '' })
    return folder
  }

  test('the store and the settings are in the folders of APPDATA and LOCALAPPDATA', async () => {
    const folder = await withFern()
    expect(await plants(['config', 'set', 'timeout', '1m'], folder)).toMatchObject({ code: 0, err: '' })
    expect(readdirSync(folder, { recursive: true }).toSorted()).toEqual(
      [
        ['Local', 'Local/plants', 'Local/plants/Data', 'Local/plants/Data/plants.db'],
        ['Roaming', 'Roaming/plants', 'Roaming/plants/Config', 'Roaming/plants/Config/settings.json'],
      ].flat(),
    )
  })

  test.each([
    ['without', {}],
    ['with', { NO_STATUS: '1' }],
  ])('stdin and stdout are read and written, %s an fstat that fails', async (_, env) => {
    const folder = await withFern()
    const file = join(folder, 'moss.json')
    writeFileSync(file, '\uFEFF{"id":2,\r\n"name":"Moss"}\r\n')
    const create = ['create', '--file', '-']
    expect((await plants(create, folder, { env, inputFile: file })).code).toBe(0)
    expect((await plants(create, folder, { env, input: '{"id":3,"name":"Ivy"}' })).code).toBe(0)
    expect(await plants(create, folder, { env })).toMatchObject({ code: 2, out: '' })
    const all = `${fern}{"id":2,"name":"Moss"}\n{"id":3,"name":"Ivy"}\n`
    expect(await plants(['list'], folder, { env })).toEqual({ code: 0, out: all, err: '' })
    const stdout = { file: join(folder, 'out') }
    expect(await plants(['export'], folder, { env, stdout })).toMatchObject({ code: 0, err: '' })
    expect(readFileSync(stdout.file, 'utf8')).toBe(all)
  })

  test('a console shows letters that are not in its code page', async () => {
    const folder = await withFern()
    const { code, screen } = await terminal(['list'], folder, envOf(folder)).ended
    expect({ code, screen }).toEqual({ code: 0, screen: expect.stringContaining('Färn') })
    const question = terminal(['create', '--id', '2', '--no-color'], folder, envOf(folder))
    await question.answer(['name', 'Möhre\r'], ['tag', '\r'])
    expect((await question.ended).screen).toContain('Planted Möhre (id 2)')
  })

  test('what is open is neither renamed, replaced nor removed', async () => {
    const folder = await withFern()
    const kept = join(folder, 'kept')
    mkdirSync(kept)
    const input = join(folder, 'more.ndjson')
    writeFileSync(input, '{"id":4,"name":"Reed"}\r\n')
    expect((await plants(['import', input], folder)).code).toBe(0)
    for (const _ of ['new', 'replaced'])
      expect((await plants(['export', '--out', join(kept, 'all.ndjson')], folder)).code).toBe(0)
    for (const value of ['1m', '2m'])
      expect(await plants(['config', 'set', 'timeout', value], folder)).toMatchObject({ code: 0, err: '' })
    expect(readdirSync(kept)).toEqual(['all.ndjson'])
    expect(readFileSync(join(kept, 'all.ndjson'), 'utf8')).toBe(`${fern}{"id":4,"name":"Reed"}\n`)
  })

  // The packaged driver keeps a file open until the statements of its closed connections are garbage-collected.
  describe.skipIf(describeDriver().driver !== 'node:sqlite')('a backup (needs Node 24.15)', () => {
    test('is made, replaced and restored', async () => {
      const folder = await withFern()
      const kept = join(folder, 'kept')
      mkdirSync(kept)
      const backup = join(kept, 'plants.bak')
      for (const _ of ['new', 'replaced'])
        expect(await plants(['backup', backup], folder)).toMatchObject({ code: 0, err: '' })
      expect((await plants(['restore', backup, '--yes'], folder)).code).toBe(0)
      expect([readdirSync(kept), (await plants(['list'], folder)).out]).toEqual([['plants.bak'], fern])
    })

    test('removes the temporary folder of one that was killed, and none that has no lock yet', async () => {
      const folder = await withFern()
      const [left, begun] = [join(folder, '.plants.bak.plants-abcdef'), join(folder, '.plants.bak.plants-ghijkl')]
      for (const path of [left, begun]) mkdirSync(path, { mode: 0o700 })
      writeFileSync(join(left, 'lock'), '')
      expect((await plants(['backup', join(folder, 'plants.bak')], folder)).code).toBe(0)
      expect([existsSync(left), existsSync(begun)]).toEqual([false, true])
    })
  })

  test('a hint names the commands of Windows', async () => {
    const folder = temporaryFolder()
    const settings = join(folder, 'settings.json')
    writeFileSync(settings, '{"version":1}', { mode: 0o444 })
    const env = { PLANTS_CONFIG_DIR: folder }
    expect(await plants(['config', 'set', 'timeout', '1m'], folder, { env })).toMatchObject({
      code: 74,
      err: expect.stringContaining(`Make the file writable: attrib -r ${settings}`),
    })
  })

  test('the password file of libpq is in APPDATA', async () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, 'Roaming/postgresql'), { recursive: true })
    const file = join(folder, 'Roaming/postgresql/pgpass.conf')
    writeFileSync(file, '*:*:*:ann:s3cret\r\n', { mode: 0o644 }) // Windows has no modes
    const { out, err } = await plants(['auth', 'status', '--store', 'postgres://ann@db.example.com/garden'], folder)
    expect({ out, err }).toEqual({ out: expect.stringContaining('"source":"password-file"'), err: '' })
  })

  test.each([
    [['list', '--store', 'C:\\a@b\\plants.db'], 4, 'There is no store at .*C:\\\\a@b\\\\plants\\.db'],
    [['list', '--store', 'sqlite:C:/a@b?/plants.db'], 4, 'There is no store at .*C:/a@b\\?/plants\\.db'],
    [['list', '--store', 'unix:C:\\plants.sock'], 2, 'names a Unix socket, which does not work on Windows'],
    [['serve', '--socket', 'plants.sock'], 2, '--socket does not work on Windows'],
  ])('%j ends with %i', async (args, code, message) => {
    expect(await plants(args, temporaryFolder())).toEqual({ code, out: '', err: expect.stringMatching(message) })
  })
})
