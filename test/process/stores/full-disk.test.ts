import { spawnSync } from 'node:child_process'
import { cpSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  buildPlantLines,
  parseCounts,
  shuffle,
  writeLines,
} from '../../helpers/sandbox/import-sandbox.js'
import { canMount, mountSmallDisk } from '../../helpers/sandbox/linux.js'
import type { ProcessResult } from '../../helpers/sandbox/process.js'
import { Sandbox, toTextResult } from '../../helpers/sandbox/sandbox.js'
import { readIds } from '../../helpers/sandbox/sqlite-file.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'

/** A user who also has a disk of 256 KiB, which only their processes see as `folder`, and others as `inside`. */
class DiskUser extends Sandbox {
  readonly folder: string
  readonly inside: string
  readonly #enter: string[]

  constructor({ folder, inside, enter }: Awaited<ReturnType<typeof mountSmallDisk>>) {
    super()
    this.folder = folder
    this.inside = inside
    this.#enter = [...enter, `--wdns=${this.home}`]
  }

  /** Runs a command line at a store that is on the disk. */
  on(line: string, more: NodeJS.ProcessEnv = {}): Promise<ProcessResult> {
    const env = { PLANTS_STORE: `${this.folder}/plants.db`, ...more }
    return this.spawn(line, { env }, ...this.#enter)
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
    const [program = '', ...args] = this.#enter
    const mount = ['mount', '-o', `remount,size=${size}`, 'tmpfs', this.folder]
    expect(spawnSync(program, [...args, ...mount]).status).toBe(0)
  }

  ids(): number[] {
    const copy = createTemporaryFolder()
    cpSync(this.inside, copy, { recursive: true })
    return readIds(join(copy, 'plants.db'))
  }
}

describe.runIf(canMount)('on a disk that is full (a tmpfs, needs unshare)', () => {
  test('a create is stored or fails with a reason, and the store stays intact', async () => {
    const user = new DiskUser(await mountSmallDisk())
    expect((await user.on('create --id 0 --name Fern')).code).toBe(0)
    const [ids, codes] = [[0], new Set<number | undefined>()]
    for (const left of [60, 52, 44, 36, 28, 8, 0]) {
      const id = 100 - left
      user.fillUp(left)
      const result = await user.on(`create --id ${id} --name Oak --output json`)
      user.clear()
      codes.add(result.code)
      if (result.code === 0) {
        ids.push(id)
        expect(result).toEqual(toTextResult('{"name":"Oak"}\n'))
      } else {
        const { error, retryable, hint } = JSON.parse(result.err)
        expect([result.code, result.out, error, retryable]).toEqual([4, '', 503, true])
        expect(hint).toBe('Free some space on its disk')
      }
      expect([(await user.on('count')).out, user.ids()]).toEqual([`${ids.length}\n`, ids])
    }
    expect(codes).toEqual(new Set([0, 4]))
    expect((await user.on('create --id 1 --name Yew')).code).toBe(0)
  })

  test('an import is repeated when there is space again', async () => {
    const lines = buildPlantLines(40_000)
    const user = new DiskUser(await mountSmallDisk())
    writeLines(user.home, shuffle(lines))
    const atomic = await user.on('import plants.ndjson --atomic')
    expect(atomic.err).toMatch(/ {2}Free some space on its disk\n$/)
    user.grow('2500k')
    const full = await user.on('import plants.ndjson')
    expect(full.code).toBe(4)
    const { created = 0 } = parseCounts(full.out)
    expect(created).toBeGreaterThan(0)
    expect(full.err).toContain('full')
    expect(full.err).toMatch(/run the same command again\n$/)
    user.grow('64m')
    const { code, out } = await user.on('import plants.ndjson')
    const counts = { created: lines.length - created, skipped: created }
    expect([code, parseCounts(out)]).toEqual([0, counts])
    expect((await user.on('export')).out === `${lines.join('\n')}\n`).toBe(true)
    expect(user.ids()).toHaveLength(lines.length)
  })

  test('a backup without enough space leaves no file', async () => {
    const user = new DiskUser(await mountSmallDisk())
    const env = { PLANTS_STORE: `${user.home}/large.db` }
    await importLongNames(user, env)
    user.grow('2m')
    const { code, err } = await user.on(`backup ${user.folder}/backup.db`, env)
    const message = `plants: The backup ${user.folder}/backup.db could not be used: `
    expect([code, err]).toEqual([4, expect.stringContaining(message)])
    expect(err).toMatch(/ full\n {2}Free some space on its disk\n$/)
    expect(readdirSync(user.inside)).toEqual([])
    user.grow('30m')
    expect((await user.on(`backup ${user.folder}/backup.db`, env)).code).toBe(0)
    expect(readdirSync(user.inside)).toEqual(['backup.db'])
  })

  test('a restore without enough space changes nothing', async () => {
    const user = new DiskUser(await mountSmallDisk())
    const env = { PLANTS_STORE: `${user.home}/large.db` }
    await importLongNames(user, env)
    expect((await user.on(`backup ${user.home}/backup.db`, env)).code).toBe(0)
    expect((await user.on('create --id 1 --name Fern')).code).toBe(0)
    user.grow('2m')
    const restore = `restore ${user.home}/backup.db --yes`
    const { code, err } = await user.on(restore)
    expect([code, err]).toEqual([4, expect.stringMatching(/\n {2}Free some space on its disk\n$/)])
    expect([readdirSync(user.inside), user.ids()]).toEqual([['plants.db'], [1]])
    user.grow('48m')
    expect((await user.on(restore)).code).toBe(0)
    expect(user.ids()).toHaveLength(24)
  })

  test('the error of an export says which disk is full', async () => {
    const user = new DiskUser(await mountSmallDisk())
    const env = { PLANTS_STORE: `${user.home}/large.db` }
    await importLongNames(user, env)
    const { code, err } = await user.on(`export ${user.folder}/plants.csv`, env)
    const reason = 'could not be written: no space left on device\n  Free some space on its disk\n'
    expect([code, err]).toEqual([74, `plants: ${user.folder}/plants.csv ${reason}`])
    expect(readdirSync(user.inside)).toEqual([])
  })

  test('a sort without enough space for temporary files fails', async () => {
    const user = new DiskUser(await mountSmallDisk())
    const env = { PLANTS_STORE: `${user.home}/names.db` }
    await importLongNames(user, env)
    const sorted = 'export plants.csv --sort name'
    const { code, err } = await user.on(sorted, { ...env, SQLITE_TMPDIR: user.folder })
    expect([code, err]).toEqual([4, expect.stringContaining(' full\n')])
  })
})

/** Imports 24 plants with names of a megabyte each into the store of `env`. */
async function importLongNames(user: DiskUser, env: NodeJS.ProcessEnv): Promise<void> {
  const plants = Array.from({ length: 24 }, (_, id) => ({ id, name: 'x'.repeat(1e6 - id) }))
  writeLines(
    user.home,
    plants.map((plant) => JSON.stringify(plant)),
  )
  expect((await user.on('import plants.ndjson', env)).code).toBe(0)
}
