import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { hangLimitsMs } from '../../helpers/sandbox/hang.mjs'
import {
  buildPlantLines,
  countPlants,
  parseCounts,
  writeLines,
} from '../../helpers/sandbox/import-sandbox.js'
import { isLinux } from '../../helpers/sandbox/linux.js'
import { waitForResult } from '../../helpers/sandbox/process.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { readIds } from '../../helpers/sandbox/sqlite-file.js'

const soon = { interval: 10 }

describe.skipIf(process.platform === 'win32')('an import that a signal stops', () => {
  test.each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
  ] as const)('by %s counts what is stored, and is repeated', async (signal, code, word) => {
    const sandbox = new Sandbox()
    const lines = buildPlantLines(150_000)
    writeLines(sandbox.home, lines)
    const run = sandbox.start('import plants.ndjson')
    await expect.poll(() => countPlants(sandbox.store), soon).toBeGreaterThan(0)
    run.kill(signal)
    const ended = await waitForResult(run)
    const done = countPlants(sandbox.store)
    const end = `after ${done.toLocaleString('en')} plants\n`
    expect(ended).toMatchObject({ code, err: expect.stringContaining(`${word} ${end}`) })
    expect(parseCounts(ended.out)).toEqual({ created: done })
    expect(done).toBeLessThan(lines.length)
    const { out, ...again } = await sandbox.run('import plants.ndjson')
    expect(again).toEqual({ code: 0, err: '' })
    expect(parseCounts(out)).toEqual({ created: lines.length - done, skipped: done })
    expect((await sandbox.run('export')).out === `${lines.join('\n')}\n`).toBe(true)
  })

  test('with --atomic is rolled back', async () => {
    const sandbox = new Sandbox()
    await sandbox.spawn('create --id 1 --name Fern')
    const run = sandbox.start('import - --atomic --rejects r.ndjson', { stdin: 'pipe' })
    const [first, ...others] = buildPlantLines(300_000)
    run.stdin?.write([first, 'no JSON', ...others].join('\n'))
    const size = () => statSync(`${sandbox.store}-wal`, { throwIfNoEntry: false })?.size ?? 0
    await expect.poll(size, soon).toBeGreaterThan(100_000) // the transaction is open
    run.kill('SIGINT')
    expect(await waitForResult(run)).toMatchObject({ code: 130, out: '' })
    expect(readIds(sandbox.store)).toEqual([1])
    expect(existsSync(join(sandbox.home, 'r.ndjson'))).toBe(false)
  })
})

test.runIf(isLinux)(
  'an import ends on a signal while it decompresses gigabytes from a small file',
  async () => {
    const sandbox = new Sandbox()
    const lines = gzipSync(Buffer.alloc(16_777_216, '\n'))
    sandbox.write('blank.ndjson.gz', Buffer.concat(Array<Buffer>(512).fill(lines)))
    const run = sandbox.start('import blank.ndjson.gz', {
      timeout: hangLimitsMs.wait,
      killSignal: 'SIGKILL',
    })
    await expect.poll(() => computedBy(run.pid), soon).toBeGreaterThan(60) // it has begun to read
    run.kill('SIGTERM')
    expect(await waitForResult(run)).toMatchObject({ code: 143, out: '' })
  },
)

/** How long a process has computed, in ticks: utime and stime of proc(5). */
function computedBy(pid: number | undefined): number {
  const [, times] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')
  const fields = times?.split(' ') ?? []
  return Number(fields[11]) + Number(fields[12])
}
