import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { canTrace } from '../../helpers/linux.js'
import { plants, startUnder } from '../../helpers/process.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'

const fern = ['create', '--id', '1', '--name', 'Fern', '--tag', 'shade']
const service = 'https://plants.example.com/v1'

test.runIf(canTrace)(
  'a dry run opens nothing to write to it, and makes nothing for a while either (needs strace)',
  async () => {
    const folder = temporaryFolder()
    await plants(fern, folder)
    const log = join(folder, 'calls')
    const calls = ['-f', '-o', log, '-e', 'trace=openat,unlink,ftruncate,pwrite64']
    const { stdout } = await startUnder('strace', calls, ['create', '--id', '2', '--name', 'Moss', '--dry-run'], folder)
    expect(JSON.parse(String(stdout))).toMatchObject({ storeExists: true, creates: true })
    const traces = readFileSync(log, 'utf8').split('\n')
    expect(
      traces.filter((call) => call.includes('plants.db') && /O_(CREAT|RDWR|WRONLY)|unlink|ftruncate|pwrite/.test(call)),
    ).toEqual([])
  },
)

test('asks on a terminal, and creates nothing then', async () => {
  const folder = temporaryFolder()
  const session = terminal(['create', '--id', '1', '--dry-run', '--store', service, '--no-color'], folder)
  await session.answer(['name', 'Fern\r'], ['tag', '\r'])
  const { code, screen } = await session.ended
  expect(code).toBe(0)
  expect(screen).toContain(`Would plant Fern (id 1) at ${service}`)
  expect(readdirSync(folder)).toEqual([])
})

test('a process leaves nothing behind', async () => {
  const folder = temporaryFolder()
  const shown = await plants([...fern, '--dry-run'], folder)
  expect(shown).toMatchObject({ code: 0, err: '' })
  expect((await plants([...fern, '--dry-run', '--store', './a.db'], folder, { cwd: folder })).code).toBe(0)
  expect(readdirSync(folder)).toEqual([])
})
