import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { canTrace } from '../../helpers/linux.js'
import { startUnder } from '../../helpers/process.js'
import { World } from '../../helpers/world.js'

test.runIf(canTrace)('a dry run opens nothing to write to it (needs strace)', async () => {
  const world = new World()
  await world.spawn('create --id 1 --name Fern')
  const log = join(world.home, 'calls')
  const strace = ['-f', '-o', log, '-e', 'trace=openat,unlink,ftruncate,pwrite64']
  const create = 'create --id 2 --name Moss --dry-run'.split(' ')
  const { stdout } = await startUnder('strace', strace, create, world.home, { env: world.env })
  expect(JSON.parse(String(stdout))).toMatchObject({ storeExists: true, creates: true })
  const calls = readFileSync(log, 'utf8').match(/^.*plants\.db.*$/gm) ?? []
  expect(calls.filter((call) => /O_(CREAT|RDWR|WRONLY)|unlink|ftruncate|pwrite/.test(call))).toEqual([])
})

test('a dry run asks on a terminal, and creates nothing then', async () => {
  const world = new World()
  const service = 'https://plants.example.com/v1'
  const session = world.terminal(`create --id 1 --dry-run --store ${service} --no-color`)
  await session.answer(['name', 'Fern\r'], ['tag', '\r'])
  const { code, screen } = await session.ended
  expect([code, screen]).toEqual([0, expect.stringContaining(`Would plant Fern (id 1) at ${service}`)])
  expect(readdirSync(world.home)).toEqual([])
})
