import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chownSync,
  closeSync,
  constants,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { readPeakMemory } from '../../helpers/sandbox/import-sandbox.js'
import { isLinux, isRoot, stranger } from '../../helpers/sandbox/linux.js'
import { runBash } from '../../helpers/sandbox/process.js'
import { Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'
import { insertPlants, queryFile } from '../../helpers/sandbox/sqlite-file.js'
import { openTerminal } from '../../helpers/sandbox/terminal.js'

async function storeOf(count: number): Promise<Sandbox> {
  const sandbox = new Sandbox()
  await sandbox.spawn(['create', '--id', '1', '--name', 'Plant 1'])
  insertPlants(sandbox.store, count)
  return sandbox
}

test.runIf(isLinux).each(['list', 'export --output json'])(
  'plants %s needs the same memory for any number of plants',
  async (line) => {
    const peaks: number[] = []
    for (const count of [2000, 20_000]) {
      const sandbox = await storeOf(count)
      queryFile(sandbox.store, `UPDATE plants SET tag = '${'long tag '.repeat(300)}'`)
      const { pid, stdout } = sandbox.start(line, { buffer: false })
      if (!stdout) throw new Error('There is no stdout')
      await once(stdout, 'readable') // the pipe is full
      let [length, peak] = [0, 0]
      for await (const chunk of stdout) {
        length += chunk.length
        peak = readPeakMemory(pid) ?? peak
      }
      expect(length).toBeGreaterThan(count * 2700)
      peaks.push(peak)
    }
    const [few = 0, many = 0] = peaks
    expect(few).toBeGreaterThan(20) // it was measured
    expect(many - few).toBeLessThan(40)
  },
)

test.each([
  ['SIGTERM', 143],
  ['SIGKILL', undefined],
] as const)('an export that is stopped by %s leaves the old file', async (signal, code) => {
  const sandbox = await storeOf(200_000)
  sandbox.write('out.csv.gz', 'old')
  const temporary = () => readdirSync(sandbox.home).filter((name) => name.endsWith('.tmp'))
  const run = sandbox.start('export out.csv.gz --yes')
  await expect.poll(temporary, { interval: 1 }).toHaveLength(1)
  run.kill(signal)
  expect((await run).exitCode).toBe(code)
  expect(sandbox.read('out.csv.gz')).toBe('old')
  if (code !== undefined) expect(temporary()).toEqual([])
  expect((await sandbox.spawn('export --limit 1 out.csv.gz --yes')).code).toBe(0)
  const now = gunzipSync(readFileSync(join(sandbox.home, 'out.csv.gz'))).toString()
  expect(now).toBe('id,name,tag\n1,Plant 1,\n')
})

describe.skipIf(process.platform === 'win32')('an export', () => {
  test('follows the umask with the mode of a new file, but a backup does not', async () => {
    const sandbox = await storeOf(1)
    const lines =
      'umask 027; "$plants" export a.csv; umask 002; "$plants" export b.csv; "$plants" backup c.bak'
    await runBash(sandbox, lines)
    const modes = ['a.csv', 'b.csv', 'c.bak'].map((name) =>
      (statSync(join(sandbox.home, name)).mode & 0o777).toString(8),
    )
    expect(modes).toEqual(['640', '664', '600'])
  })

  test('writes all plants into a named pipe', async () => {
    const sandbox = await storeOf(30_000)
    const file = join(sandbox.home, 'pipe')
    execFileSync('mkfifo', [file])
    const reading = execa('cat', [file], { stripFinalNewline: false })
    const result = await sandbox.spawn(['export', file])
    const all = (await sandbox.run('export')).out
    expect((await reading).stdout === all).toBe(true)
    expect(result).toEqual(toJsonResult({ file, plants: 30_000, bytes: Buffer.byteLength(all) }))
  })
})

describe.skipIf(!isRoot)('an export into what another user reads (needs root)', () => {
  /** Makes a pipe that another user reads. Its reader finds '' if nothing was written. */
  function makeForeignPipe(path: string): () => string {
    execFileSync('mkfifo', [path])
    chownSync(path, stranger, stranger)
    const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    onTestFinished(() => closeSync(fd))
    const bytes = Buffer.alloc(1000)
    return () => bytes.toString('utf8', 0, readSync(fd, bytes))
  }

  const message = `belongs to another user (uid ${stranger})`
  const rejected = { code: 2, out: '', err: expect.stringContaining(message) }

  test.each(['plants.ndjson', 'plants.json', 'plants.csv', 'plants.tsv.gz', 'plants.xlsx'])(
    'is rejected at a link to a pipe: %s',
    async (name) => {
      const sandbox = await storeOf(1)
      const read = makeForeignPipe(join(sandbox.home, 'pipe'))
      symlinkSync('pipe', join(sandbox.home, name))
      expect(await sandbox.run(`export ${name} --yes`)).toEqual(rejected)
      expect(read()).toBe('')
    },
  )

  test('is rejected at a terminal', async () => {
    const sandbox = await storeOf(1)
    const terminal = openTerminal('sh', ['-c', 'tty; exec cat'], sandbox.home, {})
    await terminal.waitForText('\n')
    const shown = terminal.screen
    const device = shown.trim()
    chownSync(device, stranger, stranger)
    expect(await sandbox.run(`export ${device}`)).toEqual(rejected)
    expect(terminal.screen).toBe(shown)
  })

  test('is rejected at a pipe that replaces a file after the check of the file', async () => {
    const sandbox = await storeOf(1)
    const file = join(sandbox.home, sandbox.write('pipe', ''))
    const terminal = sandbox.terminal('export pipe --output csv')
    await terminal.waitForText('Replace it?')
    rmSync(file)
    const read = makeForeignPipe(file)
    terminal.type('y\r')
    const { code, screen } = await terminal.ended
    expect([code, read()]).toEqual([2, ''])
    expect(screen).toContain(message)
  })
})
