import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa, type Options } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  allCreated,
  type Counts,
  countOf,
  countsOf,
  digestOf,
  integrityOf,
  peakOf,
  plantLines,
  shuffled,
  storeIn,
  writeLines,
} from '../../helpers/import.js'
import { canMount, isLinux, smallDisk } from '../../helpers/linux.js'
import { bin, type ProcessResult, plants, start } from '../../helpers/process.js'
import { isSoak, rounds } from '../../helpers/rounds.js'
import { addressOf, startService } from '../../helpers/service-process.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const mebibyte = 1_048_576

describe.runIf(canMount)('an import on a disk that fills up (a tmpfs, needs unshare)', () => {
  const lines = plantLines(80_000)
  const withBad = lines.flatMap((line, index) =>
    index % 10 === 3 ? [line, `bad ${index} ${'and long '.repeat(8)}`] : [line],
  )
  const bad = withBad.filter((line) => line.startsWith('bad'))

  test.each<[string, string[]]>([
    ['ids in order', lines],
    ['ids in no order', shuffled(lines)],
  ])('goes on when there is space again: the store, %s', async (_, input) => {
    const disk = await diskFor(input)
    disk.grow('2500k')
    const args = ['import', 'plants.ndjson', '--store', join(disk.folder, 'plants.db')]
    const full = await disk.plants(args)
    expect(full).toEqual({
      ...{ code: 4, out: '' },
      err: expect.stringMatching(
        /^(plants: (?:Created store|Resuming).*\n)?plants: No space left on the disk of .*plants\.db\n {2}Free some space.*run the same command again\n$/,
      ),
    })
    expect(await disk.plants(args)).toEqual({
      ...full,
      err: expect.stringMatching(/^plants: Resuming an interrupted import: [1-9]/),
    })
    disk.grow('64m')
    const { code, out } = await disk.plants(args)
    expect({ code, counts: out && countsOf(out) }).toEqual({ code: 0, counts: allCreated(lines.length) })
    const exported = await disk.plants(['export', '--store', join(disk.folder, 'plants.db')])
    expect(digestOf(exported.out)).toBe(digestOf(`${lines.join('\n')}\n`))
    expect(disk.integrity()).toBe('ok')
  })

  test('goes on when there is space again: the rejects file', async () => {
    const disk = await diskFor(withBad)
    const rejects = join(disk.folder, 'rejects.ndjson')
    const args = ['import', 'plants.ndjson', '--rejects', rejects]
    const full = await disk.plants(args)
    expect(full).toEqual({
      ...{ code: 74, out: '' },
      err: expect.stringMatching(
        /^(plants: plants\.ndjson:.*\n)*plants: The rejects file .* could not be written: no space left on the disk\n {2}.*free some space.*run the same command again\n$/,
      ),
    })
    expect((await disk.plants(args)).code).toBe(74)
    disk.grow('64m')
    const { code, out } = await disk.plants(args)
    const rejected = { rejected: bad.length, reasons: { 400: bad.length } }
    expect({ code, counts: out && countsOf(out) }).toEqual({
      code: 6,
      counts: { ...allCreated(lines.length), ...rejected },
    })
    expect(digestOf(readFileSync(join(disk.inside, 'rejects.ndjson'), 'utf8'))).toBe(digestOf(`${bad.join('\n')}\n`))
    expect(readFileSync(join(disk.inside, 'rejects.ndjson.reasons'), 'utf8').split('\n')).toHaveLength(bad.length + 2)
    expect(digestOf((await disk.plants(['export'])).out)).toBe(digestOf(`${lines.join('\n')}\n`))
  })

  test('says so before anything is stored: the lock', async () => {
    const disk = await diskFor(lines)
    disk.fillUp()
    const env = { PLANTS_STATE_DIR: disk.folder }
    expect(await disk.plants(['import', 'plants.ndjson'], env)).toEqual({
      ...{ code: 74, out: '' },
      err: expect.stringMatching(
        /^plants: The lock of this import in .* could not be written: no space left on the disk\n {2}Free.*\n$/,
      ),
    })
    expect(countOf(storeIn(disk.home))).toBe(0)
    disk.grow('64m')
    expect((await disk.plants(['import', 'plants.ndjson'], env)).code).toBe(0)
  })
})

/**
 * A disk of 256 KiB, and a program that runs beside a file to import and has only its store, or another file, there.
 */
async function diskFor(lines: readonly string[]) {
  const { folder, owner, inside } = await smallDisk()
  const home = temporaryFolder()
  writeLines(home, lines)
  const enter = ['-t', `${owner}`, '-U', '-m', '--preserve-credentials']
  return {
    ...{ folder, inside, home },
    async plants(args: string[], variables = {}): Promise<ProcessResult> {
      const env = { PATH: process.env['PATH'], HOME: home, PLANTS_DATA_DIR: join(home, 'data'), ...variables }
      const options = { reject: false, stripFinalNewline: false, stdin: 'ignore', extendEnv: false, env } as const
      // Entering a process's mounts leaves the working directory behind.
      const { exitCode, stdout, stderr } = await execa('nsenter', [...enter, `--wdns=${home}`, bin, ...args], options)
      return { code: exitCode, out: stdout, err: stderr }
    },
    grow(size: string): void {
      expect(spawnSync('nsenter', [...enter, 'mount', '-o', `remount,size=${size}`, 'tmpfs', folder]).status).toBe(0)
    },
    fillUp(): void {
      const { bavail, bsize } = statfsSync(inside)
      writeFileSync(join(inside, 'filler'), Buffer.alloc(bavail * bsize))
    },
    integrity(): unknown {
      const copy = temporaryFolder()
      cpSync(inside, copy, { recursive: true })
      return integrityOf(join(copy, 'plants.db'))
    },
  }
}

test('while a service and three other imports write to the same store, all finish, and no create waits long', async () => {
  const folder = temporaryFolder()
  const size = isSoak ? 250_000 : 12_000
  const all = plantLines(size * 4)
  const parts = [0, 1, 2, 3].map((part) => all.filter((_, index) => index % 4 === part))
  await plants(['create', '--id', '1', '--name', 'First'], folder)
  const env = { PLANTS_SERVE_TOKEN: 's3cret-of-this-test', PLANTS_TOKEN: 's3cret-of-this-test' }
  const address = await addressOf(startService(['--port', '0'], folder, { env }))
  const runs = parts.map((lines, index) => {
    const path = writeLines(folder, index % 2 === 0 ? lines : shuffled(lines), `${index}.ndjson`)
    return plants(['import', path], folder)
  })
  let isDone = false
  const done = Promise.all(runs).finally(() => {
    isDone = true
  })
  const waits = { service: 0, file: 0 }
  const created: string[] = []
  const send = async (id: number): Promise<number> => {
    const began = performance.now()
    const { status } = await fetch(`${address}/plants`, {
      ...{
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${env.PLANTS_TOKEN}` },
      },
      body: JSON.stringify({ id, name: 'By the service' }),
    })
    expect(status).toBe(200)
    created.push(`{"id":${id},"name":"By the service"}`)
    return performance.now() - began
  }
  const useService = async () => {
    for (let id = 1_000_001; !isDone; id += 1) waits.service = Math.max(waits.service, await send(id))
  }
  const useFile = async () => {
    for (let id = 2_000_001; !isDone; id += 1) {
      const began = performance.now()
      const { code, err } = await plants(['create', '--id', `${id}`, '--name', 'By hand'], folder)
      waits.file = Math.max(waits.file, performance.now() - began)
      expect({ code, err }).toEqual({ code: 0, err: '' })
      created.push(`{"id":${id},"name":"By hand"}`)
    }
  }
  await Promise.all([useService(), useFile()])
  for (const { code, out, err } of await done) {
    expect({ code, counts: out && countsOf(out), err }).toEqual({ code: 0, counts: allCreated(size), err: '' })
  }
  process.stdout.write(
    `The longest wait of ${created.length} creates: ${Math.round(waits.service)} ms of the service, ${Math.round(waits.file)} ms of a process\n`,
  )
  expect(Math.max(waits.service, waits.file)).toBeLessThan(5000)
  const expected = [...all, '{"id":1,"name":"First"}', ...created].toSorted(byId)
  expect(digestOf((await plants(['export'], folder)).out)).toBe(digestOf(`${expected.join('\n')}\n`))
})

function byId(line: string, other: string): number {
  const [a, b] = [line, other].map((text) => BigInt(/^\{"id":(-?\d+)/.exec(text)?.[1] ?? ''))
  return a === undefined || b === undefined || a === b ? 0 : a < b ? -1 : 1
}

describe.runIf(isLinux)('needs the same memory', () => {
  test('for an input that does not end, until Ctrl-C stops it', async () => {
    const folder = temporaryFolder()
    const wanted = (isSoak ? 2048 : 64) * mebibyte
    const run = startMeasured(['import', '-', '--if-exists', 'skip'], folder, { stdin: 'pipe' })
    const block = Buffer.from(`${plantLines(2000).join('\n')}\n`)
    const { written, peak } = await feed(run, block, (bytes) => bytes < wanted)
    run.kill('SIGINT')
    run.stdin?.on('error', () => undefined)
    await feed(run, block, () => true)
    const { exitCode, stderr } = await run
    expect({ exitCode, stderr }).toEqual({
      exitCode: 130,
      stderr: expect.stringMatching(/^plants: Interrupted after [\d,]+ plants\n/),
    })
    expect(written).toBeGreaterThanOrEqual(wanted)
    expect(countOf(storeIn(folder))).toBe(2000)
    judgePeak(peak)
  })

  test.each<[string, string[], Partial<Counts>]>([
    ['a long line', [], { reasons: { 413: 1 }, rejected: 1 }],
    ['a long line that goes to a rejects file', ['--rejects', 'rejects.ndjson'], { reasons: { 413: 1 }, rejected: 1 }],
  ])('for %s, which is one error', async (_, flags, rejected) => {
    const folder = temporaryFolder()
    const length = (isSoak ? 1024 : 64) * mebibyte
    const run = startMeasured(['import', '-', ...flags], folder, { stdin: 'pipe', cwd: folder })
    run.stdin?.write('{"id":1,"name":"Before"}\n{"id":2,"name":"')
    const { peak } = await feed(run, Buffer.alloc(mebibyte, 'x'), (bytes) => bytes < length)
    run.stdin?.end('"}\n{"id":3,"name":"Behind"}\n')
    const { exitCode, stdout, stderr } = await run
    expect({ exitCode, counts: stdout && countsOf(String(stdout)) }).toEqual({
      exitCode: 6,
      counts: { ...allCreated(2), ...rejected },
    })
    expect(String(stderr)).toMatch(/^plants: stdin:2: The record is larger than 1 MiB \(1048576 bytes\)\n/)
    expect((await plants(['list'], folder)).out).toBe('{"id":1,"name":"Before"}\n{"id":3,"name":"Behind"}\n')
    if (flags.length > 0) {
      expect(existsSync(join(folder, 'rejects.ndjson'))).toBe(false)
      expect(readFileSync(join(folder, 'rejects.ndjson.reasons'), 'utf8').split('\n')).toHaveLength(3)
    }
    judgePeak(peak)
  })

  test('for a long line in a file, wherever it stands', async () => {
    const folder = temporaryFolder()
    const length = (isSoak ? 1024 : 64) * mebibyte
    for (const where of ['first', 'last'] as const) {
      const path = join(folder, `${where}.ndjson`)
      const script = `import { openSync, writeSync } from 'node:fs'
        const fd = openSync(process.argv[1], 'w'), block = Buffer.alloc(${mebibyte}, 'x')
        writeSync(fd, '${where === 'last' ? '{"id":1,"name":"Before"}\\n' : ''}{"id":2,"name":"')
        for (let at = 0; at < ${length}; at += block.length) writeSync(fd, block)
        if ('${where}' === 'first') writeSync(fd, '"}\\n{"id":3,"name":"Behind"}')`
      expect(spawnSync(process.execPath, ['--input-type=module', '-e', script, path]).status).toBe(0)
      const run = startMeasured(['import', path], folder)
      const peak = await watchPeak(run)
      const { exitCode, stdout } = await run
      expect({ where, exitCode, counts: stdout && countsOf(String(stdout)) }).toEqual({
        ...{ where, exitCode: 6, counts: { ...allCreated(1), rejected: 1, reasons: { 413: 1 } } },
      })
      judgePeak(peak)
      rmSync(path)
    }
  })

  test.each<[string, string, string]>([
    ['commas', ',', ''],
    ['tabs', '\t', 'a'],
    ['letters in a quote that is not closed', 'x', '"'],
    ['rows in a quote that is not closed', '\n,', '"'],
  ])('for a table of nothing but %s, which is an error before a store is made', async (_, text, head) => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'plants.csv'), head + text.repeat((60 * mebibyte) / text.length))
    const run = startMeasured(['import', 'plants.csv'], folder, { cwd: folder })
    const peak = await watchPeak(run)
    const { exitCode, stdout, stderr } = await run
    expect({ exitCode, stdout: String(stdout), stderr: String(stderr) }).toEqual({
      ...{ exitCode: 2, stdout: '' },
      stderr: expect.stringMatching(
        /^plants: plants.csv: The header in line 1 cannot be read: (The record is larger|Not CSV: a quote)/,
      ),
    })
    judgePeak(peak)
  })

  test.each([
    ['that are not JSON', 'x\n'],
    ['without a name', '{"id":1}\n'],
  ])('for many rejected lines %s, on one screen and in one file', { timeout: rounds(120_000) }, async (_, line) => {
    const folder = temporaryFolder()
    const run = startMeasured(['import', '-', '--rejects', 'rejects.ndjson'], folder, { stdin: 'pipe', cwd: folder })
    // In no order, they are read in larger portions.
    run.stdin?.write(`${shuffled(plantLines(20_000)).join('\n')}\n`)
    const { written, peak } = await feed(
      run,
      Buffer.from(line.repeat(10_000)),
      (bytes) => bytes < (isSoak ? 40 : 0.5) * mebibyte,
    )
    run.stdin?.end()
    const highest = Math.max(peak, await watchPeak(run))
    const { exitCode, stdout, stderr } = await run
    expect({ exitCode, rejected: stdout && countsOf(String(stdout)).rejected }).toEqual({
      exitCode: 6,
      rejected: written / line.length,
    })
    expect(String(stderr).split('\n')).toHaveLength(24)
    expect(readFileSync(join(folder, 'rejects.ndjson'))).toHaveLength(written)
    judgePeak(highest)
  })

  test('for many names of unknown fields', async () => {
    const folder = temporaryFolder()
    const run = startMeasured(['import', '-', '--if-exists', 'skip'], folder, { stdin: 'pipe' })
    let field = 0
    const nextField = () => {
      field += 1
      return field
    }
    const makeBlock = () => {
      const lines = Array.from({ length: 2000 }, () => `{"id":1,"name":"Fern","${'f'.repeat(100)}${nextField()}":1}\n`)
      return Buffer.from(lines.join(''))
    }
    const { peak } = await feed(run, makeBlock, (bytes) => bytes < (isSoak ? 400 : 30) * mebibyte)
    run.stdin?.end()
    const { exitCode, stderr } = await run
    expect(exitCode).toBe(0)
    expect(String(stderr).length).toBeLessThan(100_000)
    judgePeak(peak)
  })
})

type Run = ReturnType<typeof start>

/**
 * How much garbage V8 and JavaScriptCore (of the single file) keep before they collect it depends on their versions and
 * on the machine, and would count as memory.
 */
const env = { NODE_OPTIONS: '--max-semi-space-size=8', BUN_JSC_forceRAMSize: `${256 * mebibyte}` }

function startMeasured(args: string[], folder: string, options: Options = {}): Run {
  return start(args, folder, { env, ...options })
}

/** Writes blocks to a run's stdin, as fast as it takes them, and tells the most memory it had meanwhile. */
async function feed(run: Run, block: Buffer | (() => Buffer), isWanted: (written: number) => boolean) {
  onTestFinished(() => void run.kill('SIGKILL'))
  const [written, peaks] = [{ bytes: 0 }, [0]]
  while (isWanted(written.bytes)) {
    const bytes = typeof block === 'function' ? block() : block
    written.bytes += bytes.length
    if (run.stdin?.write(bytes) === false) await Promise.race([once(run.stdin, 'drain').catch(() => undefined), run])
    if (run.exitCode !== null || run.signalCode !== null) break
    peaks.push(peakOf(run.pid) ?? 0)
  }
  return { written: written.bytes, peak: Math.max(...peaks) }
}

/** The most memory of a run, until it ends. */
async function watchPeak(run: Run): Promise<number> {
  let peak = 0
  const timer = setInterval(() => {
    peak = peakOf(run.pid) ?? peak
  }, 5)
  await run
  clearInterval(timer)
  return peak
}

function judgePeak(peak: number): void {
  expect(peak).toBeGreaterThan(30) // it was measured
  expect(peak).toBeLessThan(200)
}
