import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { World } from '../../../helpers/world.js'

const isRoot = process.getuid?.() === 0
const createFern = 'create --id 1 --name Fern'
const createMoss = 'create --id 2 --name Moss'

async function withStore(): Promise<World> {
  const user = new World()
  await user.run(createFern)
  return user
}

/** The lines of a run's stderr about other users. */
function warningsOf(err: string): string[] {
  return err.split('\n').filter((line) => /another user|other users/.test(line))
}

describe.runIf(isRoot)('a store that another user owns', () => {
  const owned = (path: string) =>
    `${path} belongs to another user (uid 65534), who can read and change everything in it`

  test.each([
    ...[createMoss, `${createMoss} --dry-run`, 'import', 'import --dry-run', 'get 1', 'list', 'export'],
    ...['backup plants.bak', 'restore other.bak --yes', 'tokens create', 'tokens revoke 7', 'delete 1 --yes'],
  ])('is used by "%s", with one warning', async (line) => {
    const user = await withStore()
    await user.run('backup other.bak')
    chownSync(user.store, 65_534, 65_534)
    const { code, err } = await user.run(line, { stdin: '{"id":3,"name":"Ivy"}\n', mayShowSecrets: true })
    expect([code, warningsOf(err)]).toEqual([
      line === 'tokens revoke 7' ? 1 : 0,
      [`plants: The store ${owned(user.store)}`],
    ])
  })

  test('is what doctor warns of', async () => {
    const user = await withStore()
    chownSync(user.store, 65_534, 65_534)
    expect(await user.run('doctor')).toMatchObject({ code: 0, out: expect.stringContaining(owned(user.store)) })
  })

  test('is restored from with a warning, once, when it is the backup', async () => {
    const user = await withStore()
    await user.run('backup other.bak')
    const file = join(user.home, 'other.bak')
    chownSync(file, 65_534, 65_534)
    const err = `plants: The backup ${file} belongs to another user (uid 65534), who may have added tokens to it\n`
    expect(await user.run('restore other.bak --yes')).toMatchObject({ code: 0, err })
  })

  test.each([
    ['a link of theirs', ['theirs.db']],
    ['a link of this user to a link of theirs', ['mine.db', 'theirs.db']],
  ])('is warned of when it is %s to a file of this user', async (_, links) => {
    const user = await withStore()
    for (const [index, link] of links.entries())
      symlinkSync(links[index + 1] ?? 'data/plants.db', join(user.home, link))
    const theirs = join(user.home, 'theirs.db')
    lchownSync(theirs, 65_534, 65_534)
    const why = 'is a link of another user (uid 65534), who can point it to another file'
    for (const line of ['list', `${createMoss} --dry-run`, createMoss]) {
      const { code, err } = await user.run(`${line} --store ./${links[0]}`)
      expect([code, warningsOf(err)]).toEqual([0, [`plants: The store ${theirs} ${why}`]])
    }
  })
})

interface Folder {
  mode: number
  uid?: number
  gid?: number
}

describe.runIf(isRoot)('where other users can create files beside a store (needs root)', () => {
  const written = (mode: string) => `can be written by other users (mode ${mode})`
  const theirs = 'belongs to another user (uid 1234)'

  test.each<[string, Folder[], string?, number?]>([
    ['a folder that is open to all', [{ mode: 0o777 }], written('777')],
    ['a sticky folder', [{ mode: 0o1777 }], written('1777')],
    ['a folder of a group', [{ mode: 0o775, gid: 7777 }], written('775')],
    ['a folder of the group of its owner alone', [{ mode: 0o775 }]],
    ['a folder of another user', [{ mode: 0o755, uid: 1234 }], theirs],
    ['a private folder of another user', [{ mode: 0o700, uid: 1234 }], theirs],
    ['a folder in one that is open to all', [{ mode: 0o777 }, { mode: 0o755 }], written('777'), 1],
    ['a folder in a sticky one', [{ mode: 0o1777 }, { mode: 0o755 }]],
    ['a folder of another user in a sticky one', [{ mode: 0o1777 }, { mode: 0o755, uid: 1234 }], theirs],
    ['an open folder in a private one', [{ mode: 0o700 }, { mode: 0o777 }]],
  ])('doctor fails and a create warns: %s', async (_, folders, reason, depth = folders.length) => {
    const user = new World()
    chmodSync(user.home, 0o755)
    const places = folders.map((__, index) => join(user.home, ...folders.slice(0, index + 1).map(() => 'in')))
    for (const [index, { mode, uid = 0, gid = uid }] of folders.entries()) {
      mkdirSync(places[index] ?? '')
      chownSync(places[index] ?? '', uid, gid)
      chmodSync(places[index] ?? '', mode)
    }
    const path = join(places.at(-1) ?? '', 'plants.db')
    const exposed = `${path} is exposed to other users: ${places[depth - 1]} ${reason}`
    const hint = 'Move it to a directory that only you can write to'
    const { code, err } = await user.run(`${createFern} --store ${path}`)
    expect([code, warningsOf(err)]).toEqual([0, reason ? [`plants: The store ${exposed}. ${hint}`] : []])
    const { code: result, out } = await user.run(`doctor --store ${path}`)
    const check = `store ${path}`
    const [finding = ''] = out.split('\n').filter((line) => line.includes(check))
    expect([result, JSON.parse(finding)]).toEqual(
      reason
        ? [1, { check, state: 'failed', message: exposed, hint }]
        : [0, { check, state: 'ok', message: expect.stringContaining('MiB free') }],
    )
  })
})
