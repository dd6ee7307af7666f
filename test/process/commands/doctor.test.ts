import { chmodSync } from 'node:fs'
import { expect, test } from 'vitest'
import { canDropRights, withoutRights } from '../../helpers/linux.js'
import { Disk } from '../../helpers/users.js'

test.runIf(canDropRights).each([
  [0o400, 'warning', 'cannot be written by this user'],
  [0o000, 'failed', 'could not be used'],
])('a store that this user has no rights to, with mode %o, is a %s', async (mode, state, why) => {
  const disk = await Disk.build()
  chmodSync(disk.store, mode)
  const { ill } = await disk.examine('', {}, (line) => disk.spawn(line, {}, ...withoutRights))
  const message = expect.stringContaining(why)
  expect(ill).toMatchObject([{ check: 'store local', state, message }])
})
