import { chmodSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Disk, findingsOf } from '../../helpers/doctor.js'
import { Hostile } from '../../helpers/hostile.js'
import { resultOf } from '../../helpers/process.js'
import { token } from '../../helpers/remote.js'
import { canDropRights, startWithoutRights } from '../../helpers/stranger.js'
import { World } from '../../helpers/world.js'

test.each([
  ['auth status', 2000],
  ['doctor', 2004],
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

test.runIf(canDropRights)('a store that this user cannot read fails', async () => {
  const disk = await Disk.build()
  chmodSync(disk.store, 0o000)
  const message = expect.stringContaining('cannot be read by this user')
  const { ill } = await disk.examine('', {}, (line) => resultOf(startWithoutRights(disk, line)))
  expect(ill).toMatchObject([{ check: 'store local', state: 'failed', message }])
})
