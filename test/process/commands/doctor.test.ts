import { chmodSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Disk, findingsOf } from '../../helpers/doctor.js'
import { Hostile } from '../../helpers/hostile.js'
import { token } from '../../helpers/http-store.js'
import { resultOf } from '../../helpers/process.js'
import { canDropRights, startWithoutRights } from '../../helpers/stranger.js'
import { World } from '../../helpers/world.js'

test('a doctor of 2000 stores needs little memory', async () => {
  const address = (index: number) => `https://plants-${index}.example.com/v1`
  const stores = Array.from({ length: 2000 }, (_, index) => [`store-${index}`, { address: address(index) }])
  const world = new World({ stores: Object.fromEntries(stores) })
  const { code, out } = await world.spawn('doctor', { env: { NODE_OPTIONS: '--max-old-space-size=96' } })
  expect([code, findingsOf(out).length]).toEqual([0, 2004])
})

test('each finding comes at once, and Ctrl-C ends the wait for the next', async () => {
  const service = await Hostile.listen({ posts: [() => child.kill('SIGINT')] })
  const disk = await Disk.build({ stores: { team: { address: service.url } } })
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
