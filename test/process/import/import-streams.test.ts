import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { gzipSync } from 'node:zlib'
import type { Options } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  buildPlantLine,
  buildPlantLines,
  countPlants,
  ImportSandbox,
  parseCounts,
  readPeakMemory,
  shuffle,
  writeLines,
} from '../../helpers/sandbox/import-sandbox.js'
import { isLinux } from '../../helpers/sandbox/linux.js'
import {
  bin,
  launch,
  type ProcessResult,
  runBash,
  waitForResult,
} from '../../helpers/sandbox/process.js'
import { isSoak } from '../../helpers/sandbox/rounds.js'
import { isWindows, Sandbox } from '../../helpers/sandbox/sandbox.js'
import { queryFile } from '../../helpers/sandbox/sqlite-file.js'
import { serve, testToken } from '../../helpers/scripted-server/service.js'

const two = buildPlantLine(1, 'Fern') + buildPlantLine(2, 'Moss')

function counts({ code, out, err }: ProcessResult) {
  const { created, skipped } = out === '' ? {} : JSON.parse(out)
  return { code, created, skipped, err }
}

test('an import reads stdin from a pipe, a file or a device, compressed or not', async () => {
  const sandbox = new Sandbox()
  const inputFile = join(sandbox.home, sandbox.write('plants', two))
  const run = async (options: Options) => counts(await sandbox.spawn('import', options))
  expect(await run({ input: two })).toEqual({ code: 0, created: 2, skipped: 0, err: '' })
  for (const result of [
    await run({ inputFile }),
    await run({ input: gzipSync(two) }),
    counts(await runBash(sandbox, '"$plants" import /dev/stdin < plants')),
  ])
    expect(result).toEqual({ code: 0, created: 0, skipped: 2, err: '' })
  expect(counts(await sandbox.spawn('import /dev/null'))).toMatchObject({ code: 0, created: 0 })
})

test.skipIf(isWindows)(
  'an import ends when a program writes to the file that is its stdin',
  async () => {
    const sandbox = new Sandbox()
    const lines = buildPlantLines(300_000)
    const path = writeLines(sandbox.home, lines)
    const run = launch(sandbox, ['sh', '-c', 'exec "$0" import - < "$1"', bin, path])
    await expect.poll(() => countPlants(sandbox.store), { interval: 10 }).toBeGreaterThan(0)
    run.kill('SIGSTOP')
    const newLines = lines.map((line) => line.replace('"name":"', '"name":"New '))
    writeFileSync(path, newLines.join('\n'), { flag: 'r+' })
    run.kill('SIGCONT')
    const err = expect.stringContaining('stdin was changed while it was read\n')
    expect(await waitForResult(run)).toMatchObject({ code: 2, err })
    const newPlants = "SELECT count(*) AS count FROM plants WHERE name LIKE '%New %'"
    expect(queryFile(sandbox.store, newPlants)).toEqual([{ count: 0 }])
  },
)

test.skipIf(isWindows)(
  'an import reads pipes that a shell has made together with files',
  async () => {
    const sandbox = new Sandbox()
    sandbox.write('last', buildPlantLine(3))
    const script = `"$plants" import <(printf '{"id":1,"name":"A"}\\n') <(printf '{"id":2,"name":"B"}\\n{"id":2}') last`
    const err = expect.stringMatching(/^plants: \/dev\/fd\/\d+:2: Invalid plant: the name /)
    expect(counts(await runBash(sandbox, script))).toEqual({ code: 6, created: 3, skipped: 0, err })
  },
)

test('only one of three imports writes to a shared rejects file, and no record is lost', async () => {
  const user = new ImportSandbox()
  const names = ['one', 'two', 'three']
  for (const name of names) user.write(`${name}.ndjson`, `${name} is no plant\n`)
  const run = (name: string) => user.spawn(`import ${name}.ndjson --rejects bad --store ${name}.db`)
  const results = await Promise.all(names.map(run))
  // One of them names the file. Another finds it at its start (2) or at its end (74).
  const codes = results.map(({ code }) => code)
  expect(codes.filter((code) => code === 6)).toHaveLength(1)
  expect(codes.every((code) => [2, 6, 74].includes(Number(code)))).toBe(true)
  const winner = names[results.findIndex(({ code }) => code === 6)]
  expect(user.readRejected('bad')).toMatchObject([{ line: 1, record: `${winner} is no plant` }])
})

test('imports and a service write to one store at the same time, and no create is rejected', async () => {
  const sandbox = new Sandbox()
  const size = isSoak ? 250_000 : 12_000
  const all = buildPlantLines(size * 2)
  await sandbox.spawn('create --id 1 --name First')
  const { address } = await serve(['--timeout', '1h'], { folder: sandbox.home })
  const runs = [0, 1].map((part) => {
    const lines = all.filter((_, index) => index % 2 === part)
    const path = writeLines(sandbox.home, part === 0 ? lines : shuffle(lines), `${part}.ndjson`)
    return sandbox.spawn(['import', '--timeout', '1h', path])
  })
  let isDone = false
  const done = Promise.all(runs).finally(() => {
    isDone = true
  })
  const created = ['{"id":1,"name":"First"}']
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${testToken}` }
  for (let id = 1_000_001; !isDone; id += 1) {
    const body = `{"id":${id},"name":"New"}`
    expect((await fetch(`${address}/plants`, { method: 'POST', headers, body })).status).toBe(200)
    created.push(body)
  }
  for (const { code, out } of await done)
    expect([code, parseCounts(out)]).toEqual([0, { created: size }])
  const exported = (await sandbox.run('export')).out.trimEnd().split('\n').toSorted()
  expect(exported.join() === [...all, ...created].toSorted().join()).toBe(true)
})

const mebibyte = 1_048_576
type Run = ReturnType<Sandbox['start']>

/** Runs an import, with what it reads from stdin, and judges the most memory that it has had. */
async function measured(sandbox: Sandbox, line: string, input: (run: Run) => Iterable<Buffer>) {
  // How much garbage V8 and JavaScriptCore (of the executable) keep before they collect it depends
  // on their versions and on the machine, and would count as memory.
  const env = { NODE_OPTIONS: '--max-semi-space-size=8', BUN_JSC_forceRAMSize: `${256 * mebibyte}` }
  const run = sandbox.start(line, { env, stdin: 'pipe' })
  onTestFinished(() => void run.kill('SIGKILL'))
  let peak = 0
  if (!run.stdin) throw new Error('There is no stdin')
  async function* observed() {
    for (const block of input(run)) {
      peak = readPeakMemory(run.pid) ?? peak
      yield block
    }
  }
  await pipeline(Readable.from(observed()), run.stdin).catch(() => undefined) // it may end before
  const end = await waitForResult(run)
  expect(peak).toBeGreaterThan(30) // it was measured
  expect(peak).toBeLessThan(200)
  return end
}

describe.runIf(isLinux)('an import needs constant memory', () => {
  test('for an input without an end, until Ctrl-C', async () => {
    const sandbox = new Sandbox()
    const block = Buffer.from(`${buildPlantLines(2000).join('\n')}\n`)
    const enough = Math.ceil(((isSoak ? 2048 : 4) * mebibyte) / block.length)
    const { code } = await measured(sandbox, 'import -', function* (run) {
      for (let blocks = 0; ; blocks += 1) {
        if (blocks === enough) run.kill('SIGINT')
        yield block
      }
    })
    expect([code, countPlants(sandbox.store)]).toEqual([130, 2000])
  })

  test('for many rejected lines, and shows twenty of them', async () => {
    const sandbox = new Sandbox()
    const block = Buffer.from('x\n{"id":1,"name":1}\n'.repeat(5000))
    const blocks = isSoak ? 760 : 5
    const { code, err } = await measured(
      sandbox,
      'import --format ndjson --rejects bad',
      function* () {
        for (let count = 0; count < blocks; count += 1) yield block
      },
    )
    expect([code, err.match(/stdin:/g)?.length]).toEqual([6, 20])
    expect(sandbox.read('bad').split('\n')).toHaveLength(blocks * 10_000 + 1)
  })
})
