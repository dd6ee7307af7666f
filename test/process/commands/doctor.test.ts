import { chmodSync, mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Disk, findingsOf } from '../../helpers/doctor.js'
import { Hostile } from '../../helpers/hostile.js'
import { token } from '../../helpers/http-store.js'
import { resultOf } from '../../helpers/process.js'
import { canDropRights, startWithoutRights } from '../../helpers/stranger.js'
import { refusal } from '../../helpers/world.js'

test('each finding comes at once, and Ctrl-C ends the wait for the next', async () => {
  const service = await Hostile.listen({ posts: [() => child.kill('SIGINT')] })
  const disk = await Disk.build({ stores: { team: { address: service.url } } })
  const child = disk.start('doctor --store team', { env: { PLANTS_TOKEN: token } })
  const { exitCode, stdout, stderr } = await child
  const checks = findingsOf(String(stdout)).map(({ check }) => check)
  expect([exitCode, checks]).toEqual([130, ['runtime', 'sqlite', 'settings']])
  expect(String(stderr)).toMatch(/^plants: Interrupted/)
})

describe.runIf(canDropRights)('a store that this user cannot create', () => {
  /** What is wrong, as the doctor of a user without rights has it; and the error of a create. */
  async function illFor(disk: Disk, env: Record<string, string>, flags = '') {
    const run = (line: string) =>
      resultOf(startWithoutRights(disk, line, { env: { ...disk.env, ...env } }))
    const { ill } = await disk.examine(flags, {}, run)
    return { ill, created: await run(`create --id 1 --name Fern${flags && ` ${flags}`}`) }
  }

  test.each([
    ['below a closed directory', 'closed/a/b'],
    ['in a closed directory', 'closed'],
    ['below a file', 'file/a'],
  ])('fails: %s', async (_, name) => {
    const disk = new Disk()
    disk.write('file', '')
    mkdirSync(join(disk.home, 'closed'), { mode: 0o500 })
    const folder = resolve(disk.home, name)
    const { ill, created } = await illFor(disk, { PLANTS_DATA_DIR: folder })
    expect(ill).toMatchObject([{ check: 'store local', state: 'failed' }])
    expect(created).toEqual(refusal(ill[0]?.message ?? '', ill[0]?.hint, 4))
  })

  test('is a warning where the store is there to be read', async () => {
    const disk = await Disk.build()
    chmodSync(disk.store, 0o400)
    const message = expect.stringContaining('cannot be written by this user')
    const warning = { check: 'store local', state: 'warning', message }
    expect((await illFor(disk, {})).ill).toMatchObject([warning])
  })
})

test.runIf(canDropRights)('a store that this user cannot read fails', async () => {
  const disk = await Disk.build()
  chmodSync(disk.store, 0o000)
  const message = expect.stringContaining('cannot be read by this user')
  const { ill } = await disk.examine('', {}, (line) => resultOf(startWithoutRights(disk, line)))
  expect(ill).toMatchObject([{ check: 'store local', state: 'failed', message }])
})
