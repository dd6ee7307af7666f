import { spawnSync } from 'node:child_process'
import { createWriteStream, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { DatabaseSync } from '../../helpers/database.js'
import {
  allCreated,
  caughtImport,
  countOf,
  countsOf,
  digestOf,
  grouped,
  importAgain,
  inputLines,
  integrityOf,
  journalsIn,
  judgeDone,
  plantLines,
  shuffled,
  storeIn,
  writeLines,
} from '../../helpers/import.js'
import { isLinux } from '../../helpers/linux.js'
import { plants, start } from '../../helpers/process.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'

describe('an import that a signal stops', () => {
  test.each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
  ] as const)('by %s says how far it came, and the same command goes on there', async (signal, exitCode, word) => {
    const { folder, stop } = await caughtImport(shuffled(inputLines))
    const result = await stop(signal)
    const done = countOf(storeIn(folder))
    const err = `plants: ${word} after ${grouped(done)} plants\n  To resume, run the same command again\n`
    expect(result).toEqual({ code: exitCode, out: '', err })
    expect(journalsIn(folder)).toEqual([])
    expect(done).toBeLessThan(inputLines.length)
    const again = await importAgain(folder)
    expect(again.err).toBe(`plants: Resuming an interrupted import: ${grouped(done)} plants are done\n`)
    await judgeDone(folder, again)
  })

  test('twice in the same moment by Ctrl-C goes on as well', async () => {
    const { folder, stop } = await caughtImport(inputLines)
    expect((await stop('SIGINT', 'SIGINT')).code).toBe(130)
    await judgeDone(folder, await importAgain(folder))
  })

  test.runIf(isLinux)('while another holds the store says so, and goes on', async () => {
    const folder = temporaryFolder()
    writeLines(folder, inputLines)
    await plants(['import', '-'], folder, { input: '' })
    const other = new DatabaseSync(storeIn(folder))
    other.exec('BEGIN IMMEDIATE')
    const run = start(['import', 'plants.ndjson', '--timeout', '1h'], folder, { cwd: folder })
    await isIdle(run.pid)
    run.kill('SIGINT')
    const { exitCode, stderr } = await run
    other.exec('ROLLBACK')
    other.close()
    expect({ exitCode, stderr }).toEqual({ exitCode: 130, stderr: 'plants: Interrupted, nothing was changed\n' })
    await judgeDone(folder, await importAgain(folder))
  })

  test.runIf(isLinux).each([
    ['before the end of the first record', '{"id":1,', 'Interrupted, nothing was changed'],
    ['in an array', '[{"id":1,"name":"Fern"},\n{"id":2,', 'Interrupted after 1 plant'],
    ['in a row', 'id,name\n1,Fern\n2,"Mo', 'Interrupted after 1 plant'],
  ])('ends where its stdin stops %s, and waited without work', async (_, input, message) => {
    const run = start(['import', '-'], temporaryFolder(), { stdin: 'pipe', timeout: 50_000, killSignal: 'SIGKILL' })
    run.stdin?.write(input)
    await isIdle(run.pid)
    run.kill('SIGINT')
    const { exitCode, stderr } = await run
    expect({ exitCode, stderr }).toEqual({ exitCode: 130, stderr: expect.stringContaining(`plants: ${message}\n`) })
  })

  test.each(['SIGINT', 'SIGTERM'] as const)('by %s ends although nothing more comes on its stdin', async (signal) => {
    const folder = temporaryFolder()
    const run = start(['import', '-'], folder, { stdin: 'pipe', timeout: 20_000, killSignal: 'SIGKILL' })
    run.stdin?.write('{"id":1,"name":"Fern"}\n')
    await expect.poll(() => countOf(storeIn(folder)), { interval: 20, timeout: 5000 }).toBe(1)
    run.kill(signal)
    expect((await run).exitCode).toBe(signal === 'SIGINT' ? 130 : 143)
  })

  test.runIf(isLinux)('ends although nobody writes to its pipe', async () => {
    const folder = temporaryFolder()
    expect(spawnSync('mkfifo', [join(folder, 'pipe')]).status).toBe(0)
    const run = start(['import', 'pipe'], folder, { cwd: folder, timeout: 50_000, killSignal: 'SIGKILL' })
    await isIdle(run.pid)
    run.kill('SIGINT')
    const { exitCode, signal } = await run
    expect(exitCode ?? signal).toBeOneOf([130, 'SIGINT'])
  })
})

describe('an import of all plants or none', () => {
  const lines = plantLines(200_000)

  /** Stops one into a store with one plant while its transaction is open, which the write-ahead log shows. */
  async function stopped(signal: NodeJS.Signals) {
    for (;;) {
      const folder = temporaryFolder()
      await plants(['create', '--id', '1', '--name', 'Fern'], folder)
      writeLines(folder, lines)
      const run = start(['import', 'plants.ndjson', '--atomic'], folder, { cwd: folder })
      const log = `${storeIn(folder)}-wal`
      await expect
        .poll(() => statSync(log, { throwIfNoEntry: false })?.size ?? 0, { interval: 1 })
        .toBeGreaterThan(100_000)
      run.kill(signal)
      const { exitCode: code, stdout: out, stderr: err } = await run
      if (code !== 0) return { folder, result: { code, out, err } }
      // it was too fast for this machine
    }
  }

  test.each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
  ] as const)('rolls back on %s, and creates all when it is run again', async (signal, code, word) => {
    const { folder, result } = await stopped(signal)
    expect(result).toEqual({ code, out: '', err: `plants: ${word}, nothing was created\n` })
    expect([countOf(storeIn(folder)), integrityOf(storeIn(folder))]).toEqual([1, 'ok'])
    if (signal === 'SIGTERM') return
    expect((await importAgain(folder, '--atomic')).code).toBe(0)
    expect(countOf(storeIn(folder))).toBe(lines.length + 1)
  })
})

describe('on a terminal', () => {
  test('the progress is one line, drawn at most ten times a second, and gone at the end', async () => {
    const folder = temporaryFolder()
    const path = writeLines(folder, shuffled(plantLines(100_000)))
    const began = performance.now()
    const { code, screen } = await terminal(['import', path], folder).ended
    const seconds = (performance.now() - began) / 1000
    const draws = screen.split(' done').length - 1
    expect(code).toBe(0)
    expect(draws).toBeGreaterThan(1)
    expect(draws).toBeLessThanOrEqual(seconds * 10 + 1)
    expect(screen.split('\r\n')).toHaveLength(2)
    expect(shown(screen)).toEqual([
      expect.stringMatching(/^Read 100,000 plants in [\d.]+ s( \([\d,]+\/s\))?: 100,000 created$/),
      '',
    ])
  })

  test('nothing is drawn into what was rejected', async () => {
    const folder = temporaryFolder()
    const path = writeLines(
      folder,
      inputLines.flatMap((line, index) => (index % 8000 === 0 ? [line, 'bad'] : [line])),
    )
    const { code, screen } = await terminal(['import', path, '--no-color'], folder).ended
    const bad = Array.from(
      { length: 10 },
      (_, index) => `${path}:${index * 8001 + 2}: Not JSON: unexpected "b" at column 1`,
    )
    const lines = shown(screen)
      .join('\n')
      .replaceAll(/\n(?!plants:|Read| )/g, '')
    expect(code).toBe(6)
    for (const line of bad) expect(lines).toContain(`plants: ${line}`)
    expect(lines).not.toMatch(/\d %|done/)
  })

  test('nothing is drawn with --output json', async () => {
    const folder = temporaryFolder()
    const { code, screen } = await terminal(['import', writeLines(folder, inputLines), '--output', 'json'], folder)
      .ended
    expect({ code, lines: screen.split('\r\n').length, counts: countsOf(screen) }).toEqual({
      ...{ code: 0, lines: 2 },
      counts: allCreated(inputLines.length),
    })
  })

  test('nothing is drawn where stderr is none', async () => {
    const folder = temporaryFolder()
    const { code, err } = await plants(['import', writeLines(folder, inputLines), '--output', 'text'], folder)
    expect({ code, err }).toEqual({ code: 0, err: '' })
  })

  test('Ctrl-C takes the progress away, and says how to go on', async () => {
    const folder = temporaryFolder()
    const path = writeLines(folder, inputLines)
    const session = terminal(['import', path, '--no-color'], folder)
    await session.answer([' done', '\x03'])
    const { code, screen } = await session.ended
    const done = grouped(countOf(storeIn(folder)))
    expect(code).toBe(130)
    expect(shown(screen).map((line) => line.replace('^C', ''))).toEqual([
      `plants: Interrupted after ${done} plants`,
      '  To resume, run the same command again',
      '',
    ])
    const again = await terminal(['import', path], folder).ended
    expect(stripVTControlCharacters(again.screen)).toContain(`Resuming an interrupted import: ${done} plants are done`)
    expect(again.code).toBe(0)
    await expectAll(folder)
  })
})

test('the same import twice in the same moment: one does it, the other says so', async () => {
  const { folder, stop } = await caughtImport(inputLines)
  const second = await importAgain(folder)
  expect(second).toEqual({
    ...{ code: 4, out: '' },
    err: expect.stringContaining('plants: Another plants process is importing the same inputs into this store\n'),
  })
  await judgeDone(folder, await stop())
})

test('what comes now and then on a pipe is imported as it comes', async () => {
  const folder = temporaryFolder()
  const run = start(['import'], folder, { stdin: 'pipe' })
  for (let id = 1; id <= 5; id += 1) {
    run.stdin?.write(`{"id":${id},"name":"Fern"}\n{"id":${id + 100},"na`)
    await expect.poll(() => countOf(storeIn(folder)), { interval: 10, timeout: 5000 }).toBe(id * 2 - 1)
    run.stdin?.write('me":"Moss"}\n')
    await expect.poll(() => countOf(storeIn(folder)), { interval: 10, timeout: 30_000 }).toBe(id * 2)
  }
  run.stdin?.end('{"id":7,"name":"No line break"}')
  const { exitCode, stdout } = await run
  expect({ exitCode, counts: countsOf(String(stdout)) }).toEqual({ exitCode: 0, counts: allCreated(11) })
})

test('what stdin ends in the middle of is rejected, and all before it is in', async () => {
  const folder = temporaryFolder()
  const { code, out, err } = await plants(['import'], folder, { input: '{"id":1,"name":"Fern"}\n{"id":2,"name":"Mo' })
  expect({ code, counts: countsOf(out) }).toEqual({
    code: 6,
    counts: { ...allCreated(1), rejected: 1, reasons: { 400: 1 } },
  })
  expect(err).toContain('plants: stdin:2: Not JSON')
})

test('a reader of stdout that has left changes nothing', async () => {
  const folder = temporaryFolder()
  writeLines(folder, inputLines)
  const run = start(['import', 'plants.ndjson'], folder, { cwd: folder, buffer: false })
  run.stdout?.destroy()
  const { exitCode } = await run
  expect({ exitCode, journals: journalsIn(folder) }).toEqual({ exitCode: 0, journals: [] })
  await expectAll(folder)
})

test.runIf(isLinux)('a pipe with a name can be stopped and gone on with as a file', async () => {
  const folder = temporaryFolder()
  const pipe = join(folder, 'plants.ndjson')
  expect(spawnSync('mkfifo', [pipe]).status).toBe(0)
  const run = start(['import', 'plants.ndjson'], folder, { cwd: folder })
  const writer = createWriteStream(pipe)
  const half = `${inputLines.slice(0, 40_000).join('\n')}\n`
  writer.write(half)
  await expect.poll(() => countOf(storeIn(folder)), { interval: 10, timeout: 30_000 }).toBe(40_000)
  run.kill('SIGKILL')
  await run
  writer.on('error', () => undefined).destroy()
  rmSync(pipe)
  writeLines(folder, inputLines)
  await judgeDone(folder, await importAgain(folder))
})

/** All of the input is there, and nothing else. */
async function expectAll(folder: string): Promise<void> {
  expect(digestOf((await plants(['export'], folder)).out)).toBe(digestOf(`${inputLines.join('\n')}\n`))
}

/** The lines that stay on a screen, where each is drawn over from its start. */
function shown(screen: string): string[] {
  return screen.split('\r\n').map((line) => stripVTControlCharacters(line.split('\r').at(-1) ?? ''))
}

/**
 * Resolves when no thread of a process has run, or wanted to, for a while: one that waits for a processor has something
 * to do.
 */
async function isIdle(pid: number | undefined): Promise<void> {
  let [before, same] = ['', 0]
  const look = () => {
    const stats = readdirSync(`/proc/${pid}/task`).map((task) => readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8'))
    const tasks = stats.map((stat) => stat.slice(stat.lastIndexOf(')') + 2).split(' ')) // state first
    const now = tasks.map((fields) => fields.slice(11, 13).join()).join(' ')
    same = now === before && tasks.every(([state]) => state === 'S') ? same + 1 : 0
    before = now
    return same
  }
  await expect.poll(look, { interval: 50, timeout: 30_000 }).toBeGreaterThan(10)
}
