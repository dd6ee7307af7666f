import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { modeOf, unwritable } from '../../helpers/settings-file.js'
import { printed, refusal, World } from '../../helpers/world.js'

const stranger = 1234
const isRoot = process.getuid?.() === 0

describe.skipIf(process.platform === 'win32')('a settings file', () => {
  test.each([
    ['644', '700', 'The settings in FILE are open to others (mode 644). Fix it with: chmod 600 FILE'],
    ['601', '700', 'The settings in FILE are open to others (mode 601). Fix it with: chmod 600 FILE'],
    ['777', '755', 'The settings in FILE are open to others (mode 777). Fix it with: chmod 600 FILE'],
    ...['777', '770', '722'].map((mode) => [
      ...['600', mode, `Others can replace the settings in FOLDER (mode ${mode}). Fix it with: chmod 700 FOLDER`],
    ]),
    ['600', '1777', ''],
    ['700', '755', ''],
    ['400', '700', ''],
  ])('of mode %s in a folder of mode %s: %s', async (mode = '', folderMode = '', text = '') => {
    const user = new World({ timeout: '7s' })
    chmodSync(user.file, mode)
    chmodSync(user.config, folderMode)
    const warning = text.replaceAll('FILE', user.file).replaceAll('FOLDER', user.config)
    expect(await user.run('config get timeout')).toEqual({
      ...printed('7s\n'),
      err: warning && `plants: ${warning}\n`,
    })
    expect((await user.run('config get timeout --output json')).err).toBe(warning && `${JSON.stringify({ warning })}\n`)
  })

  test('that others can read is for the owner alone after a change', async () => {
    const user = new World({ timeout: '7s' })
    chmodSync(user.file, '644')
    const warning = /^plants: The settings in .* are open to others/
    expect((await user.run('create --id 1 --name Fern')).err).toMatch(warning)
    expect(modeOf(user.file)).toBe('644')
    expect((await user.run('config set timeout 8s')).err).toMatch(warning)
    expect(modeOf(user.file)).toBe('600')
  })

  test.runIf(isRoot)('of another user is neither read nor changed (needs root)', async () => {
    const user = new World({ timeout: '7s' })
    chownSync(user.file, stranger, stranger)
    const why = `The settings in ${user.file} belong to another user (uid ${stranger})`
    for (const command of ['config get timeout', 'config set timeout 8s', 'list'])
      expect(await user.run(command)).toEqual(refusal(why, 'Change its owner, or set PLANTS_CONFIG_DIR'))
    expect([user.saved, readdirSync(user.config)]).toEqual([{ version: 1, timeout: '7s' }, ['settings.json']])
  })
})

test.runIf(isRoot)('root gives away no file that a link of the user leads to (needs root)', async () => {
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

test.runIf(isRoot)('root makes a folder of the owner of the home (needs root)', async () => {
  const user = new World()
  chownSync(user.home, stranger, stranger)
  await user.run('config set timeout 8s')
  expect([statSync(user.config).uid, modeOf(user.config)]).toEqual([stranger, '700'])
})

test('a file of mode 400 is read, and not changed', async () => {
  const user = new World({ timeout: '7s', stores: { team: { address: 'https://plants.example.com' } } })
  const before = user.saved
  chmodSync(user.file, 0o400)
  const message = `The settings in ${user.file} could not be changed: the file is read-only`
  const rejected = refusal(message, `Make the file writable: chmod u+w ${user.file}`, 74)
  for (const command of ['config set timeout 8s', 'config unset timeout', 'stores use team', 'stores remove team'])
    expect(await user.run(`${command} --output text`)).toEqual(rejected)
  expect([user.saved, modeOf(user.file)]).toEqual([before, '400'])
})

test('a file in the place of the folder is named, and stays', async () => {
  const user = new World()
  writeFileSync(user.config, 'mine')
  expect(await user.run('config get timeout')).toEqual(printed('30s\n'))
  const rejected = { code: 74, out: '', err: unwritable(user, 'a part of its path is not a directory') }
  expect(await user.run('config set timeout 8s')).toEqual(rejected)
  expect(user.read('config')).toBe('mine')
})

test.each<[string, (path: string) => unknown]>([
  ['a directory with something in it', (path) => mkdirSync(join(path, 'notes'), { recursive: true })],
  ['a file', (path) => writeFileSync(path, 'mine')],
  ['a pipe', (path) => execFileSync('mkfifo', [path])],
])('%s in the place of the lock is named', { timeout: 10_000 }, async (_, make) => {
  const user = new World({ timeout: '7s' })
  make(`${user.file}.lock`)
  const { code, err } = await user.run('config set timeout 8s')
  expect([code, err]).toEqual([74, expect.stringContaining(`${user.file}.lock`)])
  expect(err).not.toContain('ERR_')
  expect(user.saved).toEqual({ version: 1, timeout: '7s' })
})
