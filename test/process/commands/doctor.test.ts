import { chmodSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Disk, findingsOf } from '../../helpers/doctor.js'
import { Hostile } from '../../helpers/hostile.js'
import { resultOf } from '../../helpers/process.js'
import { token } from '../../helpers/remote.js'
import { canDropRights, startWithoutRights } from '../../helpers/stranger.js'
import { World } from '../../helpers/world.js'

test.each([
  ['auth status', 2000],
  ['doctor', 2005],
])('%s of 2000 stores needs little memory', async (command, lines) => {
  const address = (index: number) => `https://plants-${index}.example.com/v1`
  const indices = Array.from({ length: 2000 }, (_, index) => index)
  const stores = indices.map((index) => [`store-${index}`, { address: address(index) }])
  const saved = { token, savedAt: '2026-01-02T03:04:05.678Z' }
  const tokens = command === 'doctor' ? [] : indices.map((index) => [address(index + 1000), saved])
  const world = new World({ stores: Object.fromEntries(stores), tokens: Object.fromEntries(tokens) })
  const { code, out } = await world.spawn(command, { env: { NODE_OPTIONS: '--max-old-space-size=96' } })
  expect([code, out.match(/^\{.*\}$/gm)?.length]).toEqual([0, lines])
})

test('each finding comes at once, and Ctrl-C ends the wait for the next', async () => {
  const remote = await Hostile.listen({ posts: [() => child.kill('SIGINT')] })
  const disk = await Disk.build({ stores: { team: { address: remote.url } } })
  const child = disk.start('doctor --store team', { env: { PLANTS_TOKEN: token } })
  const { exitCode, stdout, stderr } = await child
  const checks = findingsOf(String(stdout)).map(({ check }) => check)
  expect([exitCode, checks]).toEqual([130, ['runtime', 'sqlite', 'settings']])
  expect(String(stderr)).toMatch(/^plants: Interrupted/)
})

test.runIf(canDropRights)('a store that is read-only is warned of, and one that cannot be made fails', async () => {
  const disk = await Disk.build()
  const examine = async (flags = '') =>
    (await disk.examine(flags, {}, (line) => resultOf(startWithoutRights(disk, line)))).ill
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
