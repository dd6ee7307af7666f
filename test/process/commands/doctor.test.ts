import { chmodSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Hostile } from '../../helpers/hostile.js'
import { token } from '../../helpers/http-store.js'
import { canDropRights, startWithoutRights } from '../../helpers/linux.js'
import { resultOf } from '../../helpers/process.js'
import { Disk, findingsOf } from '../../helpers/users.js'

test('each finding comes at once, and Ctrl-C ends the wait for the next', async () => {
  const service = await Hostile.listen({ posts: [() => child.kill('SIGINT')] })
  const disk = await Disk.build({ stores: { team: { address: service.url } } })
  const child = disk.start('doctor --store team', { env: { PLANTS_TOKEN: token } })
  const { code, out } = await resultOf(child)
  const checks = findingsOf(out).map(({ check }) => check)
  expect([code, checks]).toEqual([130, ['runtime', 'sqlite', 'settings']])
})

test.runIf(canDropRights).each([
  [0o400, 'warning', 'cannot be written by this user'],
  [0o000, 'failed', 'could not be used'],
])('a store that this user has no rights to, with mode %o, is a %s', async (mode, state, why) => {
  const disk = await Disk.build()
  chmodSync(disk.store, mode)
  const run = (line: string) => resultOf(startWithoutRights(disk, line))
  const { ill } = await disk.examine('', {}, run)
  const message = expect.stringContaining(why)
  expect(ill).toMatchObject([{ check: 'store local', state, message }])
})
