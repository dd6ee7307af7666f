import { chmodSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { Hostile } from '../../helpers/hostile.js'
import { token } from '../../helpers/http-store.js'
import { resultOf } from '../../helpers/process.js'
import { canDropRights, startWithoutRights } from '../../helpers/stranger.js'
import { Disk, findingsOf } from '../../helpers/users.js'

test('each finding comes at once, and Ctrl-C ends the wait for the next', async () => {
  const service = await Hostile.listen({ posts: [() => child.kill('SIGINT')] })
  const disk = await Disk.build({ stores: { team: { address: service.url } } })
  const child = disk.start('doctor --store team', { env: { PLANTS_TOKEN: token } })
  const { exitCode, stdout, stderr } = await child
  const checks = findingsOf(String(stdout)).map(({ check }) => check)
  expect([exitCode, checks]).toEqual([130, ['runtime', 'sqlite', 'settings']])
  expect(String(stderr)).toMatch(/^plants: Interrupted/)
})

describe.runIf(canDropRights)('a store that this user cannot write to', () => {
  /** What is wrong, as the doctor of a user without rights has it; and the error of a create. */
  async function illFor(disk: Disk, env: Record<string, string>, flags = '') {
    const run = (line: string) =>
      resultOf(startWithoutRights(disk, line, { env: { ...disk.env, ...env } }))
    const { ill } = await disk.examine(flags, {}, run)
    return { ill, created: await run(`create --id 1 --name Fern${flags && ` ${flags}`}`) }
  }

  test('is a warning, because it can be read', async () => {
    const disk = await Disk.build()
    const message = expect.stringContaining('cannot be written by this user')
    const warning = { check: 'store local', state: 'warning', message }
    chmodSync(disk.store, 0o400)
    expect((await illFor(disk, {})).ill).toMatchObject([warning])
  })
})

test.runIf(canDropRights)('a store that this user cannot read fails', async () => {
  const disk = await Disk.build()
  chmodSync(disk.store, 0o000)
  const message = expect.stringContaining(`The store ${disk.store} could not be used: `)
  const { ill } = await disk.examine('', {}, (line) => resultOf(startWithoutRights(disk, line)))
  expect(ill).toMatchObject([{ check: 'store local', state: 'failed', message }])
})
