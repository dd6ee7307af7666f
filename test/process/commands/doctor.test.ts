import { chmodSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Disk, findingsOf } from '../../helpers/doctor.js'
import { Hostile } from '../../helpers/hostile.js'
import { type ProcessResult, resultOf, startUnder } from '../../helpers/process.js'
import { token } from '../../helpers/remote.js'

test('doctor needs no home directory', async () => {
  const { code, out } = await new Disk().spawn('doctor', { env: { HOME: undefined, PLANTS_CONFIG_DIR: '' } })
  expect([code, findingsOf(out).map(({ state }) => state)]).toEqual([0, Array(5).fill('ok')])
})

test('each finding comes as soon as it is known, and Ctrl-C ends the wait for the next', async () => {
  const remote = await Hostile.listen({ posts: [() => child.kill('SIGINT')] })
  const disk = await Disk.build({ stores: { team: { address: remote.url } } })
  const child = disk.start('doctor --store team', { env: { PLANTS_TOKEN: token } })
  const { exitCode, stdout, stderr } = await child
  const checks = findingsOf(String(stdout)).map(({ check }) => check)
  expect([exitCode, checks]).toEqual([130, ['runtime', 'sqlite', 'settings']])
  expect(String(stderr)).toMatch(/^plants: Interrupted/)
})

// Root may write anywhere, so root's rights are taken away.
const isRoot = process.getuid?.() === 0
const canDropRights = process.platform !== 'win32' && (!isRoot || existsSync('/usr/bin/setpriv'))

test.runIf(canDropRights)('a store that is read-only is warned of, and one that cannot be made fails', async () => {
  const disk = await Disk.build()
  const bare = ['--bounding-set', '-all', '--inh-caps', '-all']
  const unprivileged = (line: string): Promise<ProcessResult> =>
    isRoot ? resultOf(startUnder('setpriv', bare, line.split(' '), disk.home, { env: disk.env })) : disk.spawn(line)
  const examine = async (flags = '') => (await disk.examine(flags, {}, unprivileged)).ill
  const local = { check: 'store local', state: 'warning' }
  chmodSync(disk.data, 0o500)
  onTestFinished(() => chmodSync(disk.data, 0o700))
  const hint = expect.stringContaining('ermissions')
  expect(await examine()).toEqual([{ ...local, message: `${disk.store} cannot be written`, hint }])
  const path = join(disk.data, 'new.db')
  expect(await examine(`--store ${path}`)).toMatchObject([{ check: `store ${path}`, state: 'failed' }, local])
  chmodSync(disk.data, 0o700)
  chmodSync(disk.store, 0o400)
  expect(await examine()).toMatchObject([local])
  chmodSync(disk.store, 0o000)
  const message = expect.stringContaining('cannot be read by this user')
  expect(await examine()).toMatchObject([{ ...local, state: 'failed', message }])
})
