import { chownSync, readlinkSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isWindows, World } from '../../helpers/world.js'

// The same of --rejects is in unit/transfer.

async function userWithLink(): Promise<World> {
  const user = new World()
  await user.run('create --id 1 --name Fern')
  user.write('new', '')
  user.write('shared/x', '')
  symlinkSync('../new', join(user.home, 'shared/link.ndjson'))
  return user
}

test.skipIf(process.getuid?.() !== 0).each(['export', 'backup'])(
  'a file of another user is not written to, by a link: %s (needs root)',
  async (command) => {
    const user = await userWithLink()
    const target = join(user.home, 'new')
    chownSync(target, 1234, 1234)
    const err = expect.stringContaining('belongs to another user (uid 1234)')
    const result = await user.run(`${command} shared/link.ndjson --yes`)
    expect(result).toEqual({ code: 2, out: '', err })
    expect([user.read('new'), statSync(target).uid]).toEqual(['', 1234])
  },
)

test.skipIf(isWindows)(
  'a link of this user stays one, and its target is written (needs links)',
  async () => {
    const user = await userWithLink()
    await user.run('export shared/link.ndjson --yes')
    expect(readlinkSync(join(user.home, 'shared/link.ndjson'))).toBe('../new')
    expect(user.read('new')).toBe('{"id":1,"name":"Fern"}\n')
  },
)
