import { spawnSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fill } from '../../helpers/crafted-files.js'
import {
  allCreated,
  countsOf,
  digestOf,
  plantLines,
  shuffled,
  writeLines,
} from '../../helpers/import.js'
import { canMount, type SmallDisk, smallDisk } from '../../helpers/linux.js'
import { type ProcessResult, resultOf, startUnder } from '../../helpers/process.js'
import { idsIn } from '../../helpers/sqlite-file.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { World } from '../../helpers/world.js'

/** A user who also has a disk of 256 KiB, which only their processes see as `folder`, and others as `inside`. */
class DiskUser extends World {
  readonly folder: string
  readonly inside: string
  readonly #enter: string[]

  constructor({ folder, inside, owner }: SmallDisk) {
    super()
    this.folder = folder
    this.inside = inside
    this.#enter = ['-t', `${owner}`, '-U', '-m', '--preserve-credentials', `--wdns=${this.home}`]
  }

  on(line: string, env: Record<string, string> = {}): Promise<ProcessResult> {
    return resultOf(
      startUnder('nsenter', this.#enter, line.split(' '), this.home, {
        env: { ...this.env, ...env },
      }),
    )
  }

  /** @param left how much stays free, in KiB */
  fillUp(left = 0): void {
    const { bavail, bsize } = statfsSync(this.inside)
    writeFileSync(join(this.inside, 'filler'), Buffer.alloc(bavail * bsize - left * 1024))
  }

  clear(): void {
    rmSync(join(this.inside, 'filler'))
  }

  grow(size: string): void {
    const mount = ['mount', '-o', `remount,size=${size}`, 'tmpfs', this.folder]
    expect(spawnSync('nsenter', [...this.#enter, ...mount]).status).toBe(0)
  }

  ids(): number[] {
    const copy = temporaryFolder()
    cpSync(this.inside, copy, { recursive: true })
    return idsIn(join(copy, 'plants.db'))
  }
}

describe.runIf(canMount)('on a disk that is full (a tmpfs, needs unshare)', () => {
  test('a create is stored or says why not, and the store stays whole', async () => {
    const user = new DiskUser(await smallDisk())
    const env = { PLANTS_DATA_DIR: user.folder }
    const store = `${user.folder}/plants.db`
    const full = [
      [
        `The store ${store} could not be used: database or disk is full`,
        'Free some space, then try again',
      ],
      // The index of the log needs space before anything is written.
      [
        `The store ${store} could not be used: disk I/O error`,
        'Check the disk and its free space, then try again',
      ],
    ].map(([message, hint]) => ({ error: 503, message, hint, retryable: true }))
    expect((await user.on('create --id 0 --name Fern', env)).code).toBe(0)
    const [ids, codes] = [[0], new Set<number | undefined>()]
    for (const left of [60, 52, 44, 36, 28, 8, 0]) {
      const id = 100 - left
      user.fillUp(left)
      const { code, out, err } = await user.on(`create --id ${id} --name Oak --output json`, env)
      user.clear()
      const listed = await user.on('count', env)
      codes.add(code)
      if (code === 0) ids.push(id)
      if (code === 0) expect([out, err]).toEqual(['{"name":"Oak"}\n', ''])
      else expect([code, out, full]).toEqual([4, '', expect.arrayContaining([JSON.parse(err)])])
      expect([listed.out, user.ids()]).toEqual([`${ids.length}\n`, ids])
    }
    expect(codes).toEqual(new Set([0, 4]))
    expect((await user.on('create --id 1 --name Yew', env)).code).toBe(0)
  })

  const lines = plantLines(80_000)

  test('an import goes on when there is space again', async () => {
    const user = new DiskUser(await smallDisk())
    writeLines(user.home, shuffled(lines))
    user.grow('2500k')
    const at = ` --store ${user.folder}/plants.db`
    const full = await user.on(`import plants.ndjson${at}`)
    const err =
      /plants: The store .*plants\.db could not be used: database or disk is full\n {2}Free some.*run the same command again\n$/
    expect(full).toEqual({ code: 4, out: '', err: expect.stringMatching(err) })
    const again = expect.stringMatching(
      `^plants: Resuming an interrupted import after [1-9].*\n${err.source}`,
    )
    expect(await user.on(`import plants.ndjson${at}`)).toEqual({ ...full, err: again })
    user.grow('64m')
    const { code, out } = await user.on(`import plants.ndjson${at}`)
    expect({ code, counts: countsOf(out) }).toEqual({ code: 0, counts: allCreated(lines.length) })
    expect(digestOf((await user.on(`export${at}`)).out)).toBe(digestOf(`${lines.join('\n')}\n`))
    expect(user.ids()).toHaveLength(lines.length)
  })

  test('a backup leaves the older one, and a restore the store', async () => {
    const user = new DiskUser(await smallDisk())
    const { folder, inside } = user
    await user.on('create --id 1 --name Fern')
    const [backup, store] = ['plants.bak', 'plants.db'].map((name) => join(folder, name))
    expect((await user.on(`backup ${backup}`)).code).toBe(0)
    await user.on(`create --id 2 --name Moss --store ${store}`)
    fill(user.store, 20_000)
    const bytes = readFileSync(join(inside, 'plants.bak'))
    const full = expect.stringMatching(
      /^plants: The store .* could not be used: .*(full|no space).*\n {2}Free some/,
    )
    expect(await user.on(`backup ${backup}`)).toEqual({ code: 4, out: '', err: full })
    expect(readFileSync(join(inside, 'plants.bak')).equals(bytes)).toBe(true)
    await user.on('backup large.bak')
    const restored = await user.on(`restore large.bak --store ${store} --yes`)
    expect(restored.err).toContain('could not be used: database or disk is full')
    user.fillUp()
    expect((await user.on(`restore ${backup} --store ${store} --yes`)).code).toBeOneOf([4, 74])
    const left = readdirSync(inside).filter((name) => !/-(wal|shm)$/.test(name))
    expect(left.toSorted()).toEqual(['filler', 'plants.bak', 'plants.db'])
    user.clear()
    expect((await user.on(`list --store ${store}`)).out).toBe('{"id":2,"name":"Moss"}\n')
  })
})
