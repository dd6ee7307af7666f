import { statSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { must } from '../../../src/platform/errors.js'
import { hang } from '../../helpers/hang.mjs'
import {
  allCreated,
  computedBy,
  countOf,
  countsOf,
  digestOf,
  grouped,
  journalsOf,
  plantLines,
  writeLines,
} from '../../helpers/import.js'
import { isLinux } from '../../helpers/linux.js'
import { resultOf } from '../../helpers/process.js'
import { idsIn } from '../../helpers/sqlite-file.js'
import { repeatedRow, rows, workbook } from '../../helpers/workbook.js'
import { World } from '../../helpers/world.js'

const soon = { interval: 10 }
const nothing = 'Interrupted, nothing was changed'
const resume = 'To resume, run the same command again'

describe.skipIf(process.platform === 'win32')('an import that a signal stops', () => {
  test.each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
    ['SIGHUP', 143, 'Terminated'],
    ['SIGKILL', undefined, undefined],
  ] as const)('by %s goes on where it was', async (signal, code, word) => {
    const world = new World()
    const lines = plantLines(300_000)
    writeLines(world.home, lines)
    const run = world.start('import plants.ndjson')
    await expect.poll(() => countOf(world.store), soon).toBeGreaterThan(0)
    run.kill(signal)
    const ended = await resultOf(run)
    const done = countOf(world.store)
    const err = word ? `plants: ${word} after ${grouped(done)} plants\n  ${resume}\n` : ''
    expect(ended).toEqual({ code, out: '', err })
    expect(done).toBeLessThan(lines.length)
    const { out, ...again } = await world.run('import plants.ndjson')
    expect(again).toEqual({
      code: 0,
      err: `plants: Resuming an interrupted import after ${grouped(done)} plants\n`,
    })
    expect([countsOf(out), journalsOf(world)]).toEqual([allCreated(lines.length), []])
    expect(digestOf((await world.run('export')).out)).toBe(digestOf(`${lines.join('\n')}\n`))
  })

  test('of all plants or none rolls back', async () => {
    const world = new World()
    await world.spawn('create --id 1 --name Fern')
    writeLines(world.home, plantLines(300_000))
    const run = world.start('import plants.ndjson --atomic')
    const size = () => statSync(`${world.store}-wal`, { throwIfNoEntry: false })?.size ?? 0
    await expect.poll(size, soon).toBeGreaterThan(100_000) // the transaction is open
    run.kill('SIGINT')
    expect(await resultOf(run)).toEqual({ code: 130, out: '', err: `plants: ${nothing}\n` })
    expect(idsIn(world.store)).toEqual([1])
  })
})

describe.runIf(isLinux)(
  'an import of a small file that unpacks to gigabytes, or to a sheet of blank cells,',
  () => {
    const lines = () =>
      Buffer.concat(Array<Buffer>(512).fill(gzipSync(Buffer.alloc(16_777_216, '\n'))))
    const cells = () =>
      repeatedRow(rows(['id', 'name']), `<row>${'<c><v/></c>'.repeat(1000)}</row>`, 14_000)

    test.each([
      ['blank.ndjson.gz --id-from next', '', lines],
      ['blank.xlsx', '', () => workbook({ sheets: { P: cells() } })],
    ])('ends on a signal while it is read: %s', async (args, first, content) => {
      const world = new World()
      const words = args.split(' ')
      world.write(must(words[0]), content())
      world.write('header.csv', 'id,name\n')
      for (const [signal, code, message] of [
        ['SIGINT', 130, /^plants: Interrupted(?:, nothing was changed)?\n$/],
        ['SIGTERM', 143, /^plants: Terminated(?:, nothing was changed)?\n$/],
      ] as const) {
        const run = world.start(['import', ...(first ? [first] : []), ...words], {
          timeout: hang.wait,
          killSignal: 'SIGKILL',
        })
        await expect.poll(() => computedBy(run.pid), soon).toBeGreaterThan(1) // it has begun to read the file
        run.kill(signal)
        const { exitCode, stderr } = await run
        expect({ exitCode, stderr }).toEqual({
          exitCode: code,
          stderr: expect.stringMatching(message),
        })
      }
    })
  },
)

describe.runIf(isLinux)('an import that waits', () => {
  test.each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
  ] as const)('ends on %s with %i where its stdin stops', async (signal, code, word) => {
    const world = new World()
    const run = world.start('import -', {
      stdin: 'pipe',
      timeout: hang.wait,
      killSignal: 'SIGKILL',
    })
    // More than a pipe holds: once it is written, the import has begun to read.
    const input = `{"id":1,"name":"${'x'.repeat(700_000)}`
    await new Promise((resolve) => run.stdin?.write(input, resolve))
    run.kill(signal)
    const { exitCode, stderr } = await run
    expect({ exitCode, stderr }).toEqual({
      exitCode: code,
      stderr: expect.stringMatching(`^plants: ${word}(?:, nothing was changed)?\n$`),
    })
  })
})
