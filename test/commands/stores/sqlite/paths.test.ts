import { chmodSync, chownSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isWindows, parseObjects, Sandbox } from '../../../helpers/sandbox/sandbox.js'

// The paths at which no store, or no other file, can be, and the directories that others can change.

const createFern = 'create --id 1 --name Fern'

test.skipIf(isWindows).each([
  { line: `${createFern} -s file/x.db`, file: 'The store HOME/file/x.db' },
  { line: `${createFern} -s ./link`, file: 'The store HOME/link' },
  { line: `${createFern} -s /proc/x.db`, file: 'The store /proc/x.db' },
  { line: `${createFern} -s gone/x.db`, file: 'The store HOME/gone/x.db' },
  { line: 'tokens create -s gone/x.db', file: 'The store HOME/gone/x.db' },
  { line: 'restore file/x.bak --yes', file: 'The backup HOME/file/x.bak' },
  { line: 'backup link', file: 'The backup HOME/link' },
  { line: 'backup file/deep/x.bak', file: 'The backup HOME/file/deep/x.bak' },
])('plants $line exits with 4 and names the file', async ({ line, file }) => {
  const user = new Sandbox()
  await user.run(createFern)
  user.write('file', '')
  symlinkSync(join(user.home, 'missing'), join(user.home, 'link'))
  const { code, err } = await user.run(line)
  expect([code, err.replaceAll(user.home, 'HOME')]).toEqual([
    4,
    expect.stringContaining(`plants: ${file} could not be used: `),
  ])
})

test.skipIf(isWindows)(
  'the error of an export below a file says which path is not a directory',
  async () => {
    const user = new Sandbox()
    await user.run(createFern)
    user.write('file', '')
    const { code, err } = await user.run('export file/a.csv')
    const [path, file] = [join(user.home, 'file', 'a.csv'), join(user.home, 'file')]
    expect([code, err]).toEqual([
      74,
      `plants: ${path} could not be written: ${file} is not a directory\n  Choose another file\n`,
    ])
  },
)

test.skipIf(isWindows).each([
  ['export loop.csv', 74, 'HOME/loop.csv could not be written'],
  ['export loop.csv/a.csv', 74, 'HOME/loop.csv/a.csv could not be written'],
  ['restore loop.csv --yes', 4, 'The backup HOME/loop.csv could not be used'],
  ['backup loop.csv', 4, 'The backup HOME/loop.csv could not be used'],
  ['create --id 2 --name Moss -s sqlite:loop.csv', 4, 'The store HOME/loop.csv could not be used'],
])(
  'plants %s exits with %i, and says that the links lead in a circle (needs links)',
  async (line, code, message) => {
    const user = new Sandbox()
    await user.run(createFern)
    symlinkSync('loop.csv', join(user.home, 'loop.csv'))
    const { err, ...result } = await user.run(line)
    expect([result.code, err.replaceAll(user.home, 'HOME')]).toEqual([
      code,
      `plants: ${message}: too many symbolic links encountered\n  Choose another file\n`,
    ])
  },
)

test.runIf(process.platform === 'linux').each([
  [
    'config set output json',
    { PLANTS_CONFIG_DIR: '/proc/x' },
    'the directory /proc/x could not be created',
  ],
  ['export /proc/x.csv', {}, 'the directory /proc cannot contain other files'],
])('plants %s with %j says that no file can be created in /proc', async (line, env, reason) => {
  const user = new Sandbox()
  await user.run(createFern)
  const { err } = await user.run(line, { env })
  expect(err).toMatch(RegExp(`^plants: .* could not be written: ${reason}\n  Choose .*\n$`))
})

test.skipIf(isWindows).each([
  { path: 'device', why: '/dev/null is not a file' },
  { path: 'link', why: 'link could not be used' },
])('no store can be created at $path, because $why (needs links)', async ({ path, why }) => {
  const user = new Sandbox()
  user.write('file', '')
  symlinkSync('nowhere', join(user.home, 'link'))
  symlinkSync('/dev/null', join(user.home, 'device'))
  const err = expect.stringContaining(why)
  expect(await user.run(`${createFern} --store ./${path}`)).toEqual({ code: 4, out: '', err })
  const { code, err: readError } = await user.run(`list --store ./${path}`)
  expect([code, readError]).toEqual([
    4,
    path === 'device' ? err : expect.stringContaining('There is no store at'),
  ])
})

test
  .runIf(process.getuid?.() === 0)
  .each<[string, number, uid: number, gid: number, why?: string]>([
    ['a sticky directory', 0o1777, 0, 0, 'can be changed by other users (mode 1777)'],
    ['a directory of a group', 0o775, 0, 7777, 'can be changed by other users (mode 775)'],
    ['a directory of the group of its owner alone', 0o775, 0, 0],
    ['a directory of another user', 0o755, 1234, 1234, 'belongs to another user (uid 1234)'],
  ])(
  'only doctor and the create of a store warn that others can change it: %s (needs root)',
  async (_, mode, uid, gid, why) => {
    const user = new Sandbox()
    const folder = join(user.home, 'in')
    const path = join(folder, 'plants.db')
    mkdirSync(folder)
    chownSync(folder, uid, gid)
    chmodSync(folder, mode)
    const exposed = `The store ${path} is exposed to other users: ${folder} ${why}`
    const warned = async (line: string) => {
      const { err } = await user.run(`${line} --store ${path}`)
      return err.includes('exposed to other users') && err.includes(exposed)
    }
    expect(await warned(createFern)).toBe(why !== undefined)
    for (const line of ['create --id 2 --name Moss', 'list', 'delete 2 --yes'])
      expect([line, await warned(line)]).toEqual([line, false])
    const { code, out } = await user.run(`doctor --store ${path}`)
    const found = parseObjects(out).find(({ check }) => check === `store ${path}`)
    expect([code, found?.['state']]).toEqual([0, why === undefined ? 'ok' : 'warning'])
    if (why !== undefined) expect(found?.['message']).toContain(exposed)
  },
)
