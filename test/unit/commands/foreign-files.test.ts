import { chownSync, mkdirSync, readlinkSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isWindows, refusal, World } from '../../helpers/world.js'

// The same of --rejects: unit/transfer/import/rejected.test.ts.

async function userWithLink(): Promise<World> {
  const user = new World()
  await user.run('create --id 1 --name Fern')
  mkdirSync(join(user.home, 'shared'))
  symlinkSync('../new', join(user.home, 'shared/link.ndjson'))
  return user
}

test.skipIf(process.getuid?.() !== 0)(
  'a file of another user is not written to, by a link (needs root)',
  async () => {
    const user = await userWithLink()
    user.write('new', '')
    chownSync(join(user.home, 'new'), 1234, 1234)
    const why = `${user.home}/shared/link.ndjson belongs to another user (uid 1234)`
    expect(await user.run('export shared/link.ndjson')).toEqual(refusal(why, 'Choose another file'))
    expect([user.read('new'), statSync(join(user.home, 'new')).uid]).toEqual(['', 1234])
  },
)

test.skipIf(isWindows)(
  'a link of this user stays one, and its target is written (needs links)',
  async () => {
    const user = await userWithLink()
    user.write('new', '')
    await user.run('export shared/link.ndjson --yes')
    expect([readlinkSync(join(user.home, 'shared/link.ndjson')), user.read('new')]).toEqual([
      ...['../new', '{"id":1,"name":"Fern"}\n'],
    ])
  },
)
