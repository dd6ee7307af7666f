import { chownSync, lchownSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runPlants } from '../../../helpers/run.js'
import { storeIn } from '../../../helpers/sqlite-file.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

describe.runIf(process.getuid?.() === 0)('a store that another user owns', () => {
  const warning = (path: string) =>
    `plants: The store ${path} belongs to another user (uid 65534), who can read and change everything in it\n`

  test.each([
    ['create', '--id', '2', '--name', 'Moss'],
    ['create', '--id', '2', '--name', 'Moss', '--dry-run'],
    ['import'],
    ['import', '--check'],
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
    const world = { cwd: folder, stdin: '{"id":3,"name":"Ivy"}\n', mayShowSecrets: true, env: { PLANTS_STATE_DIR: folder } }
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
    for (const argv of [['list'], ['create', '--id', '2', '--name', 'Moss', '--dry-run'], ['create', '--id', '2', '--name', 'Moss']]) {
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
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining(`${path} belongs to another user (uid 65534), who can read`) })
  })
})
