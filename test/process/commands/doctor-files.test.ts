import { chmodSync, cpSync, existsSync, readdirSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { DatabaseSync } from '../../helpers/database.js'
import { Disk, findingsOf } from '../../helpers/doctor.js'
import { canMount, smallDisk } from '../../helpers/linux.js'
import { bin, type ProcessResult, startUnder, withoutCache } from '../../helpers/process.js'
import { temporaryFolder } from '../../helpers/temporary.js'

describe('a store in a file', () => {
  test('that is no database fails', async () => {
    const disk = await Disk.build()
    const path = join(disk.data, 'plants.db')
    writeFileSync(path, 'Dear diary, '.repeat(1000))
    expect((await disk.examine()).ill).toEqual([
      {
        check: 'store local',
        state: 'failed',
        message: `${path} is not a store: it is not an SQLite file`,
        hint: 'Choose another file with --store PATH',
      },
    ])
  })

  test('that was cut off fails', async () => {
    const disk = await Disk.build()
    const path = join(disk.data, 'plants.db')
    truncateSync(path, 5000)
    expect((await disk.examine()).ill).toMatchObject([
      { check: 'store local', state: 'failed', message: expect.stringContaining(`The store ${path} is damaged`) },
    ])
  })

  test('whose folder is missing fails, and tells how to make it', async () => {
    const disk = await Disk.build()
    const path = join(disk.root, 'none/garden.db')
    const { ill } = await disk.examine(['--store', path])
    const { err } = await disk.run(['create', '--id', '1', '--name', 'Fern', '--store', path, '--output', 'json'])
    const { message, hint } = JSON.parse(err)
    expect(ill).toEqual([{ check: `store ${path}`, state: 'failed', message, hint }])
  })

  test('that is a folder fails', async () => {
    const disk = await Disk.build({ stores: { garden: { address: `sqlite:${temporaryFolder()}` } } })
    expect((await disk.examine()).ill).toMatchObject([
      {
        check: 'store garden',
        state: 'failed',
        message: expect.stringContaining('could not be opened: it is a directory'),
      },
    ])
  })

  test('that a crash has left open is looked at, and left as it is', async () => {
    const disk = await Disk.build()
    const running = temporaryFolder()
    cpSync(disk.data, running, { recursive: true })
    const db = new DatabaseSync(join(running, 'plants.db'))
    db.exec("INSERT INTO plants (id, name) VALUES (2, 'Moss')")
    cpSync(running, disk.data, { recursive: true }) // with its log
    db.close()
    expect((await disk.examine()).ill).toEqual([])
    expect((await disk.run(['get', '2'])).out).toBe('{"id":2,"name":"Moss"}\n')
  })

  test('that another process is using is well', async () => {
    const disk = await Disk.build()
    const db = new DatabaseSync(join(disk.data, 'plants.db'))
    onTestFinished(() => db.close())
    db.exec('BEGIN IMMEDIATE')
    const { code, out } = await disk.run(['doctor', '--timeout', '200ms'])
    expect({ code, ill: findingsOf(out).filter(({ state }) => state !== 'ok') }).toEqual({ code: 0, ill: [] })
  })

  // Root may write anywhere, so root's rights are taken away.
  const isRoot = process.getuid?.() === 0
  const canDropRights = process.platform !== 'win32' && (!isRoot || existsSync('/usr/bin/setpriv'))
  const bare = ['--bounding-set', '-all', '--inh-caps', '-all']

  test.runIf(canDropRights)('that is read-only is warned of, and one that cannot be made fails', async () => {
    const disk = await Disk.build()
    const unprivileged = async (argv: string[]): Promise<ProcessResult> => {
      if (!isRoot) return disk.run(argv)
      const { exitCode, stdout, stderr } = await startUnder('setpriv', bare, argv, disk.root, { env: disk.env })
      return { code: exitCode, out: String(stdout), err: String(stderr) }
    }
    chmodSync(disk.data, 0o500)
    onTestFinished(() => chmodSync(disk.data, 0o700))
    expect((await disk.examine([], unprivileged)).ill).toEqual([
      {
        check: 'store local',
        state: 'warning',
        message: `${join(disk.data, 'plants.db')} cannot be written`,
        hint: expect.stringContaining('ermissions'),
      },
    ])
    const { ill } = await disk.examine(['--store', join(disk.data, 'new.db')], unprivileged)
    expect(ill).toMatchObject([
      { check: `store ${join(disk.data, 'new.db')}`, state: 'failed' },
      { check: 'store local', state: 'warning' },
    ])
    chmodSync(disk.data, 0o700)
    chmodSync(join(disk.data, 'plants.db'), 0o400)
    expect((await disk.examine([], unprivileged)).ill).toMatchObject([{ check: 'store local', state: 'warning' }])
    chmodSync(join(disk.data, 'plants.db'), 0o000)
    expect((await disk.examine([], unprivileged)).ill).toMatchObject([
      { check: 'store local', state: 'failed', message: expect.stringContaining('cannot be read by this user') },
    ])
  })

  test.runIf(canMount)('on a full disk fails (a tmpfs, needs unshare)', async () => {
    const disk = await Disk.build()
    const { folder, owner, inside } = await smallDisk()
    const enter = ['-t', `${owner}`, '-U', '-m', '--preserve-credentials', bin]
    const within = async (argv: string[]): Promise<ProcessResult> => {
      const env = { PATH: process.env['PATH'], HOME: disk.root, PLANTS_DATA_DIR: folder, ...withoutCache, ...disk.env }
      const options = { reject: false, stripFinalNewline: false, stdin: 'ignore', extendEnv: false, env } as const
      const { exitCode, stdout, stderr } = await execa('nsenter', [...enter, ...argv], options)
      return { code: exitCode, out: stdout, err: stderr }
    }
    for (const isThere of [false, true]) {
      if (isThere) expect((await within(['create', '--id', '1', '--name', 'Fern'])).code).toBe(0)
      const { bavail, bsize } = statfsSync(inside)
      writeFileSync(join(inside, 'filler'), Buffer.alloc(bavail * bsize))
      const before = readdirSync(inside)
      expect((await disk.examine([], within)).ill).toEqual([
        {
          check: 'store local',
          state: 'failed',
          message: expect.stringMatching(/plants\.db.*: no space left on its disk$/),
          hint: expect.any(String),
        },
      ])
      expect(readdirSync(inside)).toEqual(before)
      rmSync(join(inside, 'filler'))
    }
  })
})
