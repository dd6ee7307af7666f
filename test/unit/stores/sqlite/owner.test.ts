import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runPlants } from '../../../helpers/run.js'
import { create, storeIn } from '../../../helpers/sqlite-file.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

describe.runIf(process.getuid?.() === 0)('a store that another user owns', () => {
  const warning = (path: string) =>
    `plants: The store ${path} belongs to another user (uid 65534), who can read and change everything in it\n`

  test.each([
    ['create', '--id', '2', '--name', 'Moss'],
    ['create', '--id', '2', '--name', 'Moss', '--dry-run'],
    ['import'],
    ['import', '--dry-run'],
    ['get', '1'],
    ['list'],
    ['export'],
    ['backup', 'plants.bak'],
    ['restore', 'other.bak', '--yes'],
    ['tokens', 'create'],
    ['tokens', 'revoke', '7'],
    ['delete', '1', '--yes'],
  ])('is used by "%s", with one warning', async (...argv) => {
    const folder = await storeIn(temporaryFolder())
    const path = join(folder, 'plants.db')
    await runPlants(['backup', 'other.bak', '--store', path], { cwd: folder })
    chownSync(path, 65_534, 65_534)
    const world = {
      cwd: folder,
      stdin: '{"id":3,"name":"Ivy"}\n',
      mayShowSecrets: true,
      env: { PLANTS_STATE_DIR: folder },
    }
    const { code, err } = await runPlants([...argv, '--store', path], world)
    expect({ code, warnings: err.split('\n').filter((line) => line.includes('belongs')) }).toEqual({
      code: argv.includes('revoke') ? 1 : 0,
      warnings: [warning(path).trimEnd()],
    })
  })

  test('is restored from with a warning, once, when it is the backup', async () => {
    const folder = await storeIn(temporaryFolder())
    const [path, file] = [join(folder, 'plants.db'), join(folder, 'other.bak')]
    await runPlants(['backup', file, '--store', path])
    chownSync(file, 65_534, 65_534)
    const { code, err } = await runPlants(['restore', file, '--yes', '--store', path])
    const warning = `plants: The backup ${file} belongs to another user (uid 65534), who may have added tokens to it\n`
    expect({ code, err }).toEqual({ code: 0, err: warning })
  })

  test.each([
    ['a link of theirs', ['theirs.db']],
    ['a link of this user to a link of theirs', ['mine.db', 'theirs.db']],
  ])('is warned of when it is %s to a file of this user', async (_, links) => {
    const folder = await storeIn(temporaryFolder())
    for (const [index, link] of links.entries()) symlinkSync(links[index + 1] ?? 'plants.db', join(folder, link))
    lchownSync(join(folder, 'theirs.db'), 65_534, 65_534)
    const store = join(folder, links[0] ?? '')
    for (const argv of [
      ['list'],
      ['create', '--id', '2', '--name', 'Moss', '--dry-run'],
      ['create', '--id', '2', '--name', 'Moss'],
    ]) {
      const { code, err } = await runPlants([...argv, '--store', store])
      expect({ code, warnings: err.split('\n').filter((line) => line.includes('another user')) }).toEqual({
        code: 0,
        warnings: [
          `plants: The store ${join(folder, 'theirs.db')} is a link of another user (uid 65534), who can point it to another file`,
        ],
      })
    }
  })

  test('is what doctor warns of', async () => {
    const path = join(await storeIn(temporaryFolder()), 'plants.db')
    chownSync(path, 65_534, 65_534)
    const { code, out } = await runPlants(['doctor', '--store', path])
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringContaining(`${path} belongs to another user (uid 65534), who can read`),
    })
  })
})

describe.runIf(process.getuid?.() === 0)('where other users can create files beside a store (needs root)', () => {
  const written = (mode: string) => `can be written by other users (mode ${mode})`

  test.each<[string, Folder[], string?, number?]>([
    ['a folder that is open to all', [{ mode: 0o777 }], written('777')],
    ['a sticky folder', [{ mode: 0o1777 }], written('1777')],
    ['a folder of a group', [{ mode: 0o775, gid: 7777 }], written('775')],
    ['a folder of the group of its owner alone', [{ mode: 0o775 }]],
    ['a folder of another user', [{ mode: 0o755, uid: 1234 }], 'belongs to another user (uid 1234)'],
    ['a private folder of another user', [{ mode: 0o700, uid: 1234 }], 'belongs to another user (uid 1234)'],
    ['a folder in one that is open to all', [{ mode: 0o777 }, { mode: 0o755 }], written('777'), 1],
    ['a folder in a sticky one', [{ mode: 0o1777 }, { mode: 0o755 }]],
    [
      'a folder of another user in a sticky one',
      [{ mode: 0o1777 }, { mode: 0o755, uid: 1234 }],
      'belongs to another user (uid 1234)',
    ],
    ['an open folder in a private one', [{ mode: 0o700 }, { mode: 0o777 }]],
  ])('doctor fails and a create warns: %s', async (_, folders, reason, depth = folders.length) => {
    const top = temporaryFolder()
    chmodSync(top, 0o755)
    let place = top
    for (const { mode, uid = 0, gid = uid } of folders) {
      place = join(place, 'in')
      mkdirSync(place)
      chownSync(place, uid, gid)
      chmodSync(place, mode)
    }
    const path = join(place, 'plants.db')
    const { code, err } = await create(path, '1')
    const exposed =
      reason && `exposed to other users: ${join(top, ...folders.slice(0, depth).map(() => 'in'))} ${reason}`
    const advice = 'Move it to a directory that only you can write to'
    expect({ code, err: err.split('\n').filter((line) => line.includes('exposed')) }).toEqual({
      code: 0,
      err: exposed === undefined ? [] : [`plants: The store ${path} is ${exposed}. ${advice}`],
    })
    const { code: result, out } = await runPlants(['doctor', '--store', path])
    const [finding = ''] = out.split('\n').filter((line) => line.includes(`store ${path}`))
    expect([result, JSON.parse(finding)]).toEqual(
      exposed === undefined
        ? [0, { check: `store ${path}`, state: 'ok', message: expect.stringContaining('MiB free') }]
        : [1, { check: `store ${path}`, state: 'failed', message: `${path} is ${exposed}`, hint: advice }],
    )
  })
})

interface Folder {
  mode: number
  uid?: number
  gid?: number
}
