import { lchownSync, mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { World } from '../../helpers/world.js'

const stranger = 1234
const isRoot = process.getuid?.() === 0
const rejected = '{"id":"x","name":"ssh-ed25519 AAAA"}\n'

async function userWithPlant(): Promise<World> {
  const user = new World()
  await user.run('create --id 1 --name Fern')
  await user.run('backup old.bak')
  await user.run('create --id 2 --name Moss')
  mkdirSync(join(user.home, 'shared'))
  user.write('broken.ndjson', rejected)
  return user
}

/** What a command must not change. */
function stateOf(user: World): unknown[] {
  return [user.read('old.bak'), readdirSync(user.home).filter((name) => name !== 'state')]
}

describe.skipIf(!isRoot)('a link of another user is not followed to write (needs root):', () => {
  test.each([
    ['import broken.ndjson --rejects', 'link', 'link'],
    ['export --out', 'link.csv.gz', 'link.csv.gz'],
  ])('%s %s, where %s is one', async (command, file, name) => {
    const user = await userWithPlant()
    const path = join(user.home, 'shared', name)
    for (const target of ['../old.bak', '../new', '../missing/new', '/dev/null']) {
      symlinkSync(target, path)
      lchownSync(path, stranger, stranger)
      const before = stateOf(user)
      const message = `${path} is a link of another user (uid ${stranger}), and is not followed`
      const err = expect.stringContaining(`plants: ${message}\n  Name another file, or remove the link\n`)
      expect(await user.run(`${command} shared/${file}`)).toMatchObject({ code: 2, err })
      expect([stateOf(user), readlinkSync(path)]).toEqual([before, target])
      rmSync(path)
    }
  })

  test('one that a link of this user leads to', async () => {
    const user = await userWithPlant()
    const theirs = join(user.home, 'shared/theirs')
    symlinkSync('../new', theirs)
    lchownSync(theirs, stranger, stranger)
    symlinkSync('shared/theirs', join(user.home, 'mine'))
    for (const command of ['import broken.ndjson --rejects', 'export --out']) {
      const err = expect.stringContaining(`${theirs} is a link of another user`)
      expect(await user.run(`${command} mine`)).toMatchObject({ code: 2, err })
    }
    expect(user.has('new')).toBe(false)
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
