import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { modeOf, unwritable } from '../../helpers/settings-file.js'
import { printed, refusal, World } from '../../helpers/world.js'

const team = 'https://plants.example.com/v1'
const stranger = 1234
const isRoot = process.getuid?.() === 0

describe.skipIf(process.platform === 'win32')('a settings file', () => {
  test.each([
    ['644', '700'],
    ['660', '700'],
    ['601', '700'],
    ['777', '755'],
  ])('of mode %s is complained of, and used', async (mode, folderMode) => {
    const user = new World()
    user.save({ timeout: '7s' })
    chmodSync(user.file, mode)
    chmodSync(user.config, folderMode)
    const complaint = `The settings in ${user.file} are open to others (mode ${mode}). Fix it with: chmod 600 ${user.file}`
    expect(await user.run('config get timeout')).toEqual({ code: 0, out: '7s\n', err: `plants: ${complaint}\n` })
    expect(await user.run('config get timeout --output json')).toMatchObject({
      err: `${JSON.stringify({ warning: complaint })}\n`,
    })
    expect((await user.run('create --id 1 --name Fern')).err).toBe(`plants: ${complaint}\n`)
    expect(modeOf(user.file)).toBe(mode)
    expect((await user.run('config set timeout 8s')).err).toBe(`plants: ${complaint}\n`)
    expect(modeOf(user.file)).toBe('600')
    expect(await user.run('config get timeout')).toEqual(printed('8s\n'))
  })

  test.each([['600'], ['400'], ['700']])('of mode %s is not complained of', async (mode) => {
    const user = new World()
    user.save({ timeout: '7s' })
    chmodSync(user.file, mode)
    expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
  })

  test.each([['777'], ['770'], ['722']])(
    'in a folder of mode %s, where others can replace it, is complained of',
    async (mode) => {
      const user = new World()
      user.save({ timeout: '7s' })
      chmodSync(user.config, mode)
      const complaint = `Others can replace the settings in ${user.config} (mode ${mode}). Fix it with: chmod 700 ${user.config}`
      expect(await user.run('config get timeout')).toEqual({ code: 0, out: '7s\n', err: `plants: ${complaint}\n` })
    },
  )

  test.each([['1777'], ['755']])(
    'in a folder of mode %s, where others cannot replace it, is not complained of',
    async (mode) => {
      const user = new World()
      user.save({ timeout: '7s' })
      chmodSync(user.config, mode)
      expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
    },
  )

  test.runIf(isRoot)('of another user is refused, and not touched (needs root)', async () => {
    const user = new World()
    user.save({ timeout: '7s' })
    chownSync(user.file, stranger, stranger)
    const refused = refusal(
      `The settings in ${user.file} belong to another user (uid ${stranger})`,
      'Change its owner, or set PLANTS_CONFIG_DIR',
    )
    for (const command of ['config get timeout', 'config set timeout 8s', 'list'])
      expect(await user.run(command)).toEqual(refused)
    expect(user.saved).toEqual({ version: 1, timeout: '7s' })
    expect(readdirSync(user.config)).toEqual(['settings.json'])
  })
})

test.runIf(isRoot)('root gives no file away that a user’s link leads to (needs root)', async () => {
  const user = new World()
  const victim = join(user.home, 'victim')
  mkdirSync(user.config)
  chownSync(user.config, stranger, stranger)
  writeFileSync(victim, '')
  for (const name of ['settings.json.lock', 'settings.json']) {
    symlinkSync('../victim', join(user.config, name))
    await user.run('config set timeout 1m')
    expect({ name, uid: statSync(victim).uid }).toEqual({ name, uid: 0 })
    rmSync(join(user.config, name), { force: true })
  }
})

describe('where nothing may be written', () => {
  test('a file of mode 0400 is read and not changed', async () => {
    const user = new World()
    user.save({ timeout: '7s', stores: { team: { address: team } } })
    chmodSync(user.file, 0o400)
    const before = readFileSync(user.file)
    const message = `The settings in ${user.file} could not be changed: the file is read-only`
    const refused = refusal(message, `Make the file writable: chmod u+w ${user.file}`, 74)
    for (const command of [
      'config set timeout 8s',
      'config unset timeout',
      `stores add garden ./garden.db`,
      'stores use team',
    ]) {
      expect(await user.run(command)).toEqual(refused)
    }
    expect(await user.run('stores remove team --output json')).toMatchObject({
      code: 74,
      err: `${JSON.stringify({ error: 500, message, hint: `Make the file writable: chmod u+w ${user.file}` })}\n`,
    })
    expect(await user.run('config get timeout')).toEqual(printed('7s\n'))
    expect(readFileSync(user.file)).toEqual(before)
    expect(modeOf(user.file)).toBe('400')
  })

  test.runIf(isRoot)('config set by root makes a folder of the owner of the home (needs root)', async () => {
    const user = new World()
    chownSync(user.home, stranger, stranger)
    await user.run('config set timeout 8s')
    expect([statSync(user.config).uid, modeOf(user.config)]).toEqual([stranger, '700'])
  })

  test('a folder that cannot be made is named', async () => {
    const user = new World()
    writeFileSync(user.config, 'mine')
    expect(await user.run('config get timeout')).toEqual(printed('30s\n'))
    const refused = { code: 74, out: '', err: unwritable(user, 'a part of its path is not a directory') }
    expect(await user.run('config set timeout 8s')).toEqual(refused)
    expect(readFileSync(user.config, 'utf8')).toBe('mine')
  })

  test.each([
    ['a directory with something in it', (path: string) => mkdirSync(join(path, 'notes'), { recursive: true })],
    ['a text', (path: string) => writeFileSync(path, 'garbage '.repeat(200))],
    ['a pipe', (path: string) => execFileSync('mkfifo', [path])],
  ])('because %s is in the place of the lock, names the lock', { timeout: 10_000 }, async (_, make) => {
    const user = new World()
    user.save({ timeout: '7s' })
    make(join(user.config, 'settings.json.lock'))
    const { code, err } = await user.run('config set timeout 8s')
    expect({ code, err }).toEqual({ code: 74, err: expect.stringContaining('settings.json.lock') })
    expect(err).not.toContain('ERR_')
    expect(user.saved).toEqual({ version: 1, timeout: '7s' })
  })
})
