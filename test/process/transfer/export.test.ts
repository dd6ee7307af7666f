import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { DatabaseSync } from '../../helpers/database.js'
import { fill } from '../../helpers/fill.js'
import { peakOf } from '../../helpers/import.js'
import { isLinux } from '../../helpers/linux.js'
import { bin, plants, start } from '../../helpers/process.js'
import { temporaryFolder } from '../../helpers/temporary.js'

test('an export is of one moment, and holds up nobody who writes meanwhile', async () => {
  const folder = await storeOf(100_000)
  const before = (await plants(['list'], folder)).out
  const { reader, stdout } = startReading(['export'], folder)
  await once(stdout, 'readable') // the pipe is full long before the end
  expect((await plants(['create', '--id', '100001', '--name', 'New'], folder)).code).toBe(0)
  expect((await plants(['create', '--id=-1', '--name', 'New'], folder)).code).toBe(0)
  expect((await plants(['delete', '99999', '--yes'], folder)).code).toBe(0)
  let out = ''
  for await (const chunk of stdout.setEncoding('utf8')) out += chunk
  expect((await reader).exitCode).toBe(0)
  expect(out === before).toBe(true)
  const after = (await plants(['export'], folder)).out
  expect(after.split('\n').slice(0, -1)).toHaveLength(100_001)
  expect(after === (await plants(['list'], folder)).out).toBe(true)
})

test.runIf(isLinux)('an export needs the same memory for any number of plants', async () => {
  const peaks: number[] = []
  for (const count of [50_000, 200_000]) {
    const folder = await storeOf(count)
    const db = new DatabaseSync(join(folder, 'data/plants.db'))
    db.exec(`UPDATE plants SET tag = '${'long tag '.repeat(30)}'`)
    db.close()
    const { reader, stdout } = startReading(['export', '--output', 'json'], folder)
    let [length, peak] = [0, 0]
    for await (const chunk of stdout) {
      length += chunk.length
      peak = peakOf(reader.pid) ?? peak
    }
    expect(length).toBeGreaterThan(count * 300)
    peaks.push(peak)
  }
  const [few = 0, many = 0] = peaks
  expect(few).toBeGreaterThan(20) // it was measured
  expect(many - few).toBeLessThan(40)
})

describe('an export to a file', () => {
  test.each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
  ] as const)('that %s stops leaves the old file and nothing else', async (signal, exitCode, word) => {
    const { folder, out, run } = await startExport()
    run.kill(signal)
    const { exitCode: code, stdout, stderr } = await run
    expect({ code, stdout, stderr }).toEqual({
      code: exitCode,
      stdout: '',
      stderr: `plants: ${word}, ${out} was not changed\n`,
    })
    expect([readFileSync(out, 'utf8'), temporaryFiles(folder)]).toEqual(['old', []])
  })

  test('that is killed leaves the old file, and the next one replaces it', async () => {
    const { folder, out, run } = await startExport()
    run.kill('SIGKILL')
    expect((await run).signal).toBe('SIGKILL')
    expect(readFileSync(out, 'utf8')).toBe('old')
    expect((await plants(['export', '--limit', '1', '--out', out], folder)).code).toBe(0)
    expect(spawnSync('gzip', ['-dc', out]).stdout.toString()).toBe('id,name,tag\n1,Plant 1,\n')
  })
})

describe.skipIf(process.platform === 'win32')('an export to a pipe with a name', () => {
  test('gives its reader all plants', async () => {
    const folder = await storeOf(30_000)
    const pipe = pipeIn(folder)
    const reader = execa('cat', [pipe], { stripFinalNewline: false })
    const { code, out } = await plants(['export', '--out', pipe], folder)
    const { stdout } = await reader
    expect(stdout === (await plants(['list'], folder)).out).toBe(true)
    expect({ code, out }).toEqual({
      code: 0,
      out: `{"file":"${pipe}","plants":30000,"bytes":${Buffer.byteLength(stdout)}}\n`,
    })
  })

  test('ends quietly when its reader leaves', async () => {
    const folder = await storeOf(30_000)
    const pipe = pipeIn(folder)
    const reader = execa('head', ['-n', '1', pipe])
    expect(await plants(['export', '--out', pipe], folder)).toEqual({ code: 0, out: '', err: '' })
    expect((await reader).stdout).toBe('{"id":1,"name":"Plant 1"}')
  })
})

test.runIf(isLinux)('an export to a descriptor goes behind what is there', async () => {
  const folder = await storeOf(1)
  const { stdout, stderr } = await bash('echo before > log; "$0" export --out /dev/fd/3 3>> log; cat log', folder)
  expect({ stdout, stderr }).toEqual({
    stdout: '{"file":"/dev/fd/3","plants":1,"bytes":26}\nbefore\n{"id":1,"name":"Plant 1"}',
    stderr: '',
  })
})

test('an export ends quietly when the reader of stdout leaves', async () => {
  const { stdout, stderr } = await bash('"$0" export | head -n 1', await storeOf(30_000))
  expect({ stdout, stderr }).toEqual({ stdout: '{"id":1,"name":"Plant 1"}', stderr: '' })
})

/** Runs a script in which "$0" is the program. A pipe fails when any part of it does. */
function bash(script: string, folder: string) {
  const env = { PATH: process.env['PATH'], PLANTS_DATA_DIR: join(folder, 'data') }
  return execa('bash', ['-euo', 'pipefail', '-c', script, bin], { cwd: folder, env, extendEnv: false, stdin: 'ignore' })
}

/** An export whose stdout the test reads itself. */
function startReading(args: string[], folder: string) {
  const reader = start(args, folder, { buffer: false })
  if (!reader.stdout) throw new Error('There is no stdout')
  return { reader, stdout: reader.stdout }
}

/** A folder with a store of so many plants. */
async function storeOf(count: number): Promise<string> {
  const folder = temporaryFolder()
  await plants(['create', '--id', '1', '--name', 'Plant 1'], folder)
  fill(join(folder, 'data/plants.db'), count)
  return folder
}

/** An export that is in the middle of its work, which takes it a second or more. */
async function startExport() {
  const folder = await storeOf(500_000)
  const out = join(folder, 'out.csv.gz')
  writeFileSync(out, 'old')
  const run = start(['export', '--out', out], folder)
  await expect.poll(() => temporaryFiles(folder), { interval: 1, timeout: 30_000 }).toHaveLength(1)
  return { folder, out, run }
}

function temporaryFiles(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.endsWith('.tmp'))
}

function pipeIn(folder: string): string {
  const path = join(folder, 'pipe')
  expect(spawnSync('mkfifo', [path]).status).toBe(0)
  return path
}
