import { once } from 'node:events'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fill } from '../../helpers/fill.js'
import { bin } from '../../helpers/process.js'
import type { Result } from '../../helpers/run.js'
import { create, open } from '../../helpers/sqlite-file.js'
import { temporaryFolder } from '../../helpers/temporary.js'

describe('the file of a store', () => {
  test('is used by its real name, beside which its log is, when a link leads to it', async () => {
    const [folder, links] = [await storeIn(temporaryFolder()), temporaryFolder()]
    symlinkSync(join(folder, 'plants.db'), join(links, 'link.db'))
    open(join(folder, 'plants.db')).prepare('SELECT count(*) FROM plants').get()
    readOnlyFolder(links)
    await create(join(links, 'link.db'), '2')
    expect((await unprivileged(['list', '--store', join(links, 'link.db')])).out).toBe(
      '{"id":1,"name":"Fern"}\n{"id":2,"name":"Fern"}\n',
    )
  })
})

describe('a file that cannot be a store is refused, and left as it is:', () => {
  test('a store with a second name', async () => {
    const folder = await storeIn(temporaryFolder())
    const [path, other] = [join(folder, 'plants.db'), join(folder, 'other.db')]
    linkSync(path, other)
    const err = `plants: ${other} has more than one hard link, and each would have its own write-ahead log\n  Copy the file instead\n`
    expect(await create(other, '2')).toEqual({ code: 4, out: '', err })
    unlinkSync(path)
    expect((await create(other, '2')).code).toBe(0)
  })
})

// Root may write anywhere, so root's rights are taken away for these.
const setpriv = ['setpriv', '--bounding-set', '-all', '--inh-caps', '-all']
const isRoot = process.getuid?.() === 0
const canDropRights = process.platform !== 'win32' && (!isRoot || existsSync('/usr/bin/setpriv'))

const permissions = 'Change the permissions of the file and its directory, or choose another file with --store PATH'

describe.runIf(canDropRights)('a place that may not be written', () => {
  test('can still be read', async () => {
    const folder = readOnlyFolder(await storeIn(temporaryFolder()))
    expect(await unprivileged(['list', '--store', join(folder, 'plants.db')])).toEqual({
      code: 0,
      out: '{"id":1,"name":"Fern"}\n',
      err: '',
    })
    expect(readdirSync(folder)).toEqual(['plants.db'])
  })

  test('can still be exported, and to a file that may not be written nothing is', async () => {
    const folder = readOnlyFolder(await storeIn(temporaryFolder()))
    const store = join(folder, 'plants.db')
    expect(await unprivileged(['export', '--store', store])).toEqual({
      code: 0,
      out: '{"id":1,"name":"Fern"}\n',
      err: '',
    })
    const out = join(temporaryFolder(), 'out.csv')
    writeFileSync(out, 'old', { mode: 0o400 })
    for (const path of [out, join(folder, 'out.csv')]) {
      const err = `plants: ${path} could not be written: permission denied\n  Choose another file with --out FILE\n`
      expect(await unprivileged(['export', '--store', store, '--out', path])).toEqual({ code: 74, out: '', err })
    }
    expect([readFileSync(out, 'utf8'), readdirSync(folder)]).toEqual(['old', ['plants.db']])
  })

  test('takes no plant, and says why', async () => {
    const folder = readOnlyFolder(await storeIn(temporaryFolder()))
    const err = (file: string) =>
      `plants: The store ${folder}/${file} cannot be written by this user\n  ${permissions}\n`
    expect(await unprivileged(['create', '--id', '2', '--name', 'Moss', '--store', `${folder}/plants.db`])).toEqual({
      code: 4,
      out: '',
      err: err('plants.db'),
    })
    expect(await unprivileged(['create', '--id', '2', '--name', 'Moss', '--store', `${folder}/new.db`])).toEqual({
      code: 4,
      out: '',
      err: err('new.db'),
    })
    expect(readdirSync(folder)).toEqual(['plants.db'])
  })

  test('can be read while its owner has it open', async () => {
    const folder = await storeIn(temporaryFolder())
    open(join(folder, 'plants.db')).exec("INSERT INTO plants (id, name) VALUES (2, 'Moss')")
    readOnlyFolder(folder)
    const out = '{"id":1,"name":"Fern"}\n{"id":2,"name":"Moss"}\n'
    expect(await unprivileged(['list', '--store', join(folder, 'plants.db')])).toEqual({ code: 0, out, err: '' })
  })

  test('tells when it was changed while it was read', async () => {
    const folder = await storeIn(temporaryFolder())
    const path = join(folder, 'plants.db')
    fill(path, 100_000)
    readOnlyFolder(folder)
    const [command = '', ...prefix] = isRoot ? [...setpriv, bin] : [bin]
    const reader = execa(command, [...prefix, 'list', '--store', path], {
      reject: false,
      buffer: { stdout: false },
      stripFinalNewline: false,
    })
    await once(reader.stdout, 'readable')
    if (!isRoot) chmodSync(folder, 0o700)
    open(path).exec('DELETE FROM plants WHERE id > 50000')
    reader.stdout.resume()
    const { exitCode, stderr } = await reader
    expect({ exitCode, stderr }).toEqual({
      exitCode: 4,
      stderr: `plants: ${path} was changed while it was read\n  Try again\n`,
    })
  })

  test('is named when its log was left there by a crash', async () => {
    const [source, folder] = [await storeIn(temporaryFolder()), temporaryFolder()]
    open(join(source, 'plants.db')).exec("INSERT INTO plants (id, name) VALUES (2, 'Moss')")
    for (const name of ['plants.db', 'plants.db-wal']) copyFileSync(join(source, name), join(folder, name))
    readOnlyFolder(folder)
    const path = join(folder, 'plants.db')
    const why = `its last changes are in ${path}-wal, which can only be read in a writable directory`
    const err = `plants: ${path} was not closed: ${why}\n  Copy both files to such a directory\n`
    expect(await unprivileged(['list', '--store', path])).toEqual({ code: 4, out: '', err })
  })

  test.each([
    [0o400, 'cannot be written by this user'],
    [0o000, 'cannot be read by this user'],
  ])('may be the file itself, with mode %o', async (mode, why) => {
    const path = join(await storeIn(temporaryFolder()), 'plants.db')
    chmodSync(path, mode)
    expect(await unprivileged(['create', '--id', '2', '--name', 'Moss', '--store', path])).toEqual({
      code: 4,
      out: '',
      err: `plants: The store ${path} ${why}\n  ${permissions}\n`,
    })
  })

  test.each(['list', 'create --id 2 --name Moss'])(
    'is said to be closed to %s, and not read-only, where a folder or the log is',
    async (line) => {
      const [hidden, inUse] = [await storeIn(temporaryFolder()), await storeIn(temporaryFolder())]
      chmodSync(hidden, 0o000)
      onTestFinished(() => chmodSync(hidden, 0o700))
      open(join(inUse, 'plants.db')).exec("INSERT INTO plants (id, name) VALUES (3, 'Ivy')")
      for (const suffix of ['-wal', '-shm']) chmodSync(join(inUse, `plants.db${suffix}`), 0o000)
      for (const [path, why] of [
        [join(hidden, 'plants.db'), 'cannot be read by this user'],
        [join(hidden, 'missing.db'), 'cannot be read by this user'],
        [join(hidden, 'missing/plants.db'), 'cannot be read by this user'],
        [join(inUse, 'plants.db'), 'cannot be read by this user'],
      ] as const) {
        const err = `plants: The store ${path} ${why}\n  ${permissions}\n`
        expect(await unprivileged([...line.split(' '), '--store', path])).toEqual({ code: 4, out: '', err })
      }
    },
  )

  test('is no data directory either', async () => {
    const folder = readOnlyFolder(temporaryFolder())
    const { code, err } = await unprivileged(['create', '--id', '1', '--name', 'Fern'], {
      PLANTS_DATA_DIR: join(folder, 'data'),
    })
    expect({ code, err }).toEqual({
      code: 4,
      err: `plants: The store ${folder}/data/plants.db cannot be written by this user\n  ${permissions}\n`,
    })
  })
})

async function unprivileged(argv: string[], env: Record<string, string> = {}): Promise<Result> {
  const [command = '', ...prefix] = isRoot ? [...setpriv, bin] : [bin]
  const options = {
    reject: false,
    stripFinalNewline: false,
    stdin: 'ignore',
    extendEnv: false,
    env: { PATH: process.env['PATH'], ...env },
  } as const
  const { exitCode = -1, stdout, stderr } = await execa(command, [...prefix, ...argv], options)
  return { code: exitCode, out: stdout, err: stderr }
}

function readOnlyFolder(folder: string): string {
  chmodSync(folder, 0o500)
  onTestFinished(() => chmodSync(folder, 0o700))
  return folder
}

/** A folder with a store that holds one plant, written by a process that has ended: no log is left beside it. */
async function storeIn(folder: string): Promise<string> {
  await execa(bin, ['create', '--id', '1', '--name', 'Fern', '--store', join(folder, 'plants.db')])
  return folder
}
