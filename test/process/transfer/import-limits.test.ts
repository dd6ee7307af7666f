import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  allCreated,
  countOf,
  countsOf,
  digestOf,
  peakOf,
  plantLines,
  rejectedIn,
  shuffled,
  writeLines,
} from '../../helpers/import.js'
import { isLinux } from '../../helpers/linux.js'
import { isSoak } from '../../helpers/rounds.js'
import { serve, testToken } from '../../helpers/service.js'
import { repeatedRow, rows, workbook } from '../../helpers/workbook.js'
import { World } from '../../helpers/world.js'

const mebibyte = 1_048_576

test('imports and a service write to one store, and no create is refused', async () => {
  const world = new World()
  const size = isSoak ? 250_000 : 12_000
  const all = plantLines(size * 4)
  await world.spawn('create --id 1 --name First')
  const { address } = await serve(['--timeout', '1h'], { folder: world.home })
  const runs = [0, 1, 2, 3].map((part) => {
    const lines = all.filter((_, index) => index % 4 === part)
    const path = writeLines(world.home, part % 2 === 0 ? lines : shuffled(lines), `${part}.ndjson`)
    return world.spawn(['import', '--timeout', '1h', path])
  })
  let isDone = false
  const done = Promise.all(runs).finally(() => {
    isDone = true
  })
  const created: string[] = []
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${testToken}` }
  for (let id = 1_000_001; !isDone; id += 1) {
    const body = `{"id":${id},"name":"New"}`
    expect((await fetch(`${address}/plants`, { method: 'POST', headers, body })).status).toBe(200)
    created.push(body)
  }
  for (const { code, out, err } of await done)
    expect({ code, counts: countsOf(out), err }).toEqual({
      code: 0,
      counts: allCreated(size),
      err: '',
    })
  const exported = (await world.run('export')).out.split('\n').slice(0, -1)
  const expected = [...all, '{"id":1,"name":"First"}', ...created]
  expect(digestOf(exported.toSorted().join())).toBe(digestOf(expected.toSorted().join()))
})

type Run = ReturnType<World['start']>

/** In MiB: less than what any start of the program takes. */
const started = 30

/** Runs an import, with what it reads from stdin, and judges the most memory that it has had. */
async function measured(
  world: World,
  line: string,
  input?: (run: Run) => Iterable<Buffer>,
  maxMebibytes = 200,
) {
  // How much garbage V8 and JavaScriptCore (of the executable) keep before they collect it depends on their versions
  // and on the machine, and would count as memory.
  const env = { NODE_OPTIONS: '--max-semi-space-size=8', BUN_JSC_forceRAMSize: `${256 * mebibyte}` }
  const run = world.start(line, { env, stdin: input ? 'pipe' : 'ignore' })
  onTestFinished(() => void run.kill('SIGKILL'))
  let peak = 0
  // A timer alone could come after the end of a short run.
  for (
    let now = peakOf(run.pid);
    !input && now !== undefined && peak <= started;
    now = peakOf(run.pid)
  ) {
    peak = now
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
  }
  const timer = setInterval(() => {
    peak = peakOf(run.pid) ?? peak
  }, 5)
  if (input && run.stdin)
    await pipeline(Readable.from(input(run)), run.stdin).catch(() => undefined) // it may end before
  const { exitCode, stdout, stderr } = await run
  clearInterval(timer)
  expect(peak).toBeGreaterThan(started)
  expect(peak).toBeLessThan(maxMebibytes)
  return {
    code: exitCode,
    counts: stdout === '' ? undefined : countsOf(String(stdout)),
    err: String(stderr),
  }
}

describe.runIf(isLinux)('the memory of a workbook is bounded', () => {
  test('by what it unpacks to', async () => {
    const world = new World()
    const numbers = repeatedRow(
      rows(['id', 'name']),
      `<row>${'<c><v>1</v></c>'.repeat(1000)}</row>`,
      31_000,
    )
    world.write('numbers.xlsx', workbook({ sheets: { P: numbers } }))
    const { code, err } = await measured(world, 'import numbers.xlsx')
    const hint = 'Save the sheet as CSV, and import that'
    expect([code, err]).toEqual([2, `plants: numbers.xlsx unpacks to too much data\n  ${hint}\n`])
  })

  test('where it has many rows, in a soak as many as a sheet can have', async () => {
    const world = new World()
    const count = isSoak ? 1_048_575 : 150_000
    const row = '<row><c><v>0</v></c><c t="s"><v>0</v></c></row>'
    const numbered = Array.from({ length: count }, (_, id) => row.replace('0', String(id))).join('')
    const sheets = { P: rows(['id', 'name']) + numbered }
    world.write('all.xlsx', workbook({ sheets, sharedStrings: '<si><t>Fern</t></si>' }))
    const { code, counts } = await measured(
      world,
      'import all.xlsx',
      undefined,
      isSoak ? 1200 : 400,
    )
    expect([code, counts]).toEqual([0, allCreated(count)])
    expect(countOf(world.store)).toBe(count)
  })
})

describe.runIf(isLinux)('needs the same memory', () => {
  test('for an input without an end, until Ctrl-C', async () => {
    const world = new World()
    const block = Buffer.from(`${plantLines(2000).join('\n')}\n`)
    const enough = Math.ceil(((isSoak ? 2048 : 16) * mebibyte) / block.length)
    const { code, err } = await measured(world, 'import - --if-exists skip', function* (run) {
      for (let blocks = 0; ; blocks += 1) {
        if (blocks === enough) run.kill('SIGINT')
        yield block
      }
    })
    expect([code, err]).toEqual([
      130,
      expect.stringMatching(/^plants: Interrupted after [\d,]+ plants\n/),
    ])
    expect(countOf(world.store)).toBe(2000)
  })

  test('for a long line, and a plant behind it', async () => {
    const world = new World()
    const { code, counts, err } = await measured(world, 'import - --rejects rejects', function* () {
      yield Buffer.from('{"id":2,"name":"')
      for (let mebibytes = isSoak ? 1024 : 64; mebibytes > 0; mebibytes -= 1)
        yield Buffer.alloc(mebibyte, 'x')
      yield Buffer.from('"}\n{"id":1,"name":"Fern"}')
    })
    expect([code, counts]).toEqual([6, { ...allCreated(1), rejected: 1, reasons: { 413: 1 } }])
    expect(err).toContain('plants: stdin:1: The record is larger than 1 MiB (1048576 bytes)\n')
    expect(countOf(world.store)).toBe(1)
    expect(rejectedIn(world, 'rejects')).toMatchObject([{ line: 1, record: {} }])
  })

  test('for a table of nothing but rows in a quote that is not closed, and makes no store', async () => {
    const world = new World()
    writeFileSync(join(world.home, 'plants.csv'), `"${'\n,'.repeat(30 * mebibyte)}`)
    const err = expect.stringContaining('plants: plants.csv has no row in its first 64 KiB')
    expect(await measured(world, 'import plants.csv')).toEqual({ code: 2, counts: undefined, err })
    expect(world.has('data')).toBe(false)
  })

  test('for many rejected lines', async () => {
    const world = new World()
    const block = Buffer.from('x\n{"id":1}\n'.repeat(5000))
    const blocks = Math.ceil(((isSoak ? 40 : 0.5) * mebibyte) / block.length)
    const { code, counts, err } = await measured(world, 'import - --rejects rejects', function* () {
      // In no order, they are read in larger portions.
      yield Buffer.from(`${shuffled(plantLines(20_000)).join('\n')}\n`)
      for (let count = 0; count < blocks; count += 1) yield block
    })
    expect([code, counts?.rejected, err.split('\n').length]).toEqual([6, blocks * 10_000, 23])
    const lines = readFileSync(join(world.home, 'rejects'), 'utf8').split('\n')
    expect(lines).toHaveLength(blocks * 10_000 + 1)
  })

  test('for many names of unknown fields', async () => {
    const { code, err } = await measured(new World(), 'import - --if-exists skip', function* () {
      const length = (isSoak ? 400 : 15) * mebibyte
      const lineOf = (field: number) => `{"id":1,"name":"Fern","${'f'.repeat(100)}${field}":1}\n`
      for (let field = 0; field * 130 < length; field += 2000)
        yield Buffer.from(
          Array.from({ length: 2000 }, (_, index) => lineOf(field + index)).join(''),
        )
    })
    expect(code).toBe(0)
    expect(err.length).toBeLessThan(100_000)
  })
})
