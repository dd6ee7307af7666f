import { chownSync, mkdirSync, readlinkSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { World } from '../../helpers/world.js'

const stranger = 1234
const isRoot = process.getuid?.() === 0
const rejected = '{"id":"x","name":"ssh-ed25519 AAAA"}\n'

async function userWithPlant(): Promise<World> {
  const user = new World()
  await user.run('create --id 1 --name Fern')
  await user.run('create --id 2 --name Moss')
  mkdirSync(join(user.home, 'shared'))
  user.write('broken.ndjson', rejected)
  return user
}

describe.skipIf(!isRoot)('a file of another user is not written to (needs root):', () => {
  test.each([
    ['import broken.ndjson --rejects FILE', '--rejects'],
    ['export --out FILE', '--out FILE'],
  ])('%s, also by a link', async (command, option) => {
    const user = await userWithPlant()
    const theirs = join(user.home, 'shared/theirs')
    user.write('shared/theirs', '')
    chownSync(theirs, stranger, stranger)
    symlinkSync('theirs', join(user.home, 'shared/link'))
    for (const name of ['theirs', 'link']) {
      const path = join(user.home, 'shared', name)
      const err = `plants: ${path} belongs to another user (uid ${stranger})\n  Choose another file with ${option}\n`
      expect(await user.run(command.replace('FILE', `shared/${name}`))).toMatchObject({ code: 2, err })
    }
    expect([user.read('shared/theirs'), statSync(theirs).uid]).toEqual(['', stranger])
  })
})

const reason = 'Invalid plant: id must be an integer, in digits only, but was \\"x\\"'

test.each([
  ['export --out', '{"id":1,"name":"Fern"}\n{"id":2,"name":"Moss"}\n'],
  ['import broken.ndjson --rejects', `{"rejected_line":1,"rejected_reason":"${reason}",${rejected.slice(1)}`],
])('a link of this user stays one, and its target is written: %s', async (command, text) => {
  const user = await userWithPlant()
  symlinkSync('../new', join(user.home, 'shared/link'))
  await user.run(`${command} shared/link`)
  expect([readlinkSync(join(user.home, 'shared/link')), user.read('new')]).toEqual(['../new', text])
})

test('a link to a rejects file that stays empty is left, and the file removed', async () => {
  const user = await userWithPlant()
  user.write('three.ndjson', '{"id":3,"name":"Ivy"}\n')
  symlinkSync('new', join(user.home, 'link'))
  expect((await user.run('import three.ndjson --rejects link')).code).toBe(0)
  expect([readlinkSync(join(user.home, 'link')), user.has('new')]).toEqual(['new', false])
})
