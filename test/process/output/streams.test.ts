import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, createReadStream, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { DatabaseSync } from '../../helpers/database.js'
import { canMount, isLinux, smallDisk } from '../../helpers/linux.js'
import { bin, type ProcessResult, plants, start } from '../../helpers/process.js'
import { rounds } from '../../helpers/rounds.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const repeated = { repeats: rounds(1) - 1 }
const patience = { timeout: 20_000, interval: 5 }

describe.runIf(isLinux)('a stdout that takes no more', () => {
  const unwritten = (hint: string) => `plants: Could not write to stdout: no space left on the disk\n  ${hint}\n`

  test('does not undo a create, which tells that the plant is stored', async () => {
    const folder = temporaryFolder()
    const err = unwritten('The plant is stored. Show it with: plants get 1')
    expect(await bash('"$plants" create --id 1 --name Fern > /dev/full', folder)).toEqual({ code: 74, out: '', err })
    expect(await plants(['list'], folder)).toEqual({ code: 0, out: '{"id":1,"name":"Fern"}\n', err: '' })
  })

  test.each(['list', 'list --output text', 'get 0', '--help', '--version'])(
    'ends "plants %s" with 74',
    async (command) => {
      const { folder } = await storeOf(10)
      expect(await bash(`"$plants" ${command} > /dev/full`, folder)).toEqual({
        code: 74,
        out: '',
        err: unwritten('Run it again'),
      })
    },
  )

  test.runIf(canMount)('is noticed in the middle of a list (a tmpfs, needs unshare)', async () => {
    const { folder, text } = await storeOf(20_000)
    const file = join((await smallDisk()).inside, 'list')
    expect(await bash('"$plants" list > "$1"', folder, file)).toEqual({
      code: 74,
      out: '',
      err: unwritten('Run it again'),
    })
    expect(readFileSync(file, 'utf8') === text.slice(0, 256 * 1024)).toBe(true)
  })
})

describe('a reader', () => {
  test('that leaves after the first line ends a list quietly', repeated, async () => {
    const { folder } = await storeOf(20_000)
    const out = '{"id":0,"name":"Fern 0","tag":"shade"}\n0 0\n'
    expect(await bash(`"$plants" list | head -1; echo "\${PIPESTATUS[@]}"`, folder)).toEqual({ code: 0, out, err: '' })
  })

  test('that never came changes nothing about a create', repeated, async () => {
    const folder = temporaryFolder()
    const out = '0 0\n{"id":1,"name":"Fern"}\n'
    const script = `"$plants" create --id 1 --name Fern | true; echo "\${PIPESTATUS[@]}"; "$plants" list`
    expect(await bash(script, folder)).toEqual({ code: 0, out, err: '' })
  })
})

describe.runIf(isLinux)('a pipe, and one that another program has made non-blocking (seen through /proc):', () => {
  const pipes: [string, string, (pid: number | undefined) => boolean][] = [
    ['blocking', '', (pid) => /pipe_write/.test(proc(pid, 'wchan'))],
    [
      'non-blocking',
      unblock,
      (pid) =>
        /flags:\s\d*4\d{3}\n/.test(proc(pid, 'fdinfo/1')) && Number(/wchar: (\d+)/.exec(proc(pid, 'io'))?.[1]) > 50_000,
    ],
  ]

  test.each(pipes)('%s: a slow reader gets every byte', repeated, async (_, before, isFull) => {
    const { folder, text } = await storeOf(40_000)
    const { writer, read } = listIntoPipe(folder, before)
    await expect.poll(() => isFull(writer.pid), patience).toBe(true)
    const hash = createHash('sha256')
    for await (const chunk of read(1000)) hash.update(chunk)
    const { exitCode, stderr } = await writer
    const whole = createHash('sha256').update(text).digest('hex')
    expect({ exitCode, stderr, sha256: hash.digest('hex') }).toEqual({ exitCode: 0, stderr: '', sha256: whole })
  })

  test.each(pipes)('%s: a signal ends a list that nobody reads', repeated, async (_, before, isFull) => {
    const { folder } = await storeOf(10_000)
    for (const name of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) {
      const { writer } = listIntoPipe(folder, before)
      await expect.poll(() => isFull(writer.pid), patience).toBe(true)
      const sent = performance.now()
      writer.kill(name)
      const { exitCode, signal } = await writer
      expect(signal ?? exitCode).toBeOneOf([name, 128 + constants.signals[name]])
      expect(performance.now() - sent).toBeLessThan(2000)
    }
  })

  test('a list of 200000 plants needs less than 150 MiB of memory', repeated, async () => {
    const { folder, text } = await storeOf(200_000)
    const { writer, read } = listIntoPipe(folder)
    await expect.poll(() => /pipe_write/.test(proc(writer.pid, 'wchan')), patience).toBe(true)
    let length = 0
    let peak = Infinity
    for await (const chunk of read(65_536)) {
      length += chunk.length
      peak = Number(/VmHWM:\s+(\d+) kB/.exec(proc(writer.pid, 'status'))?.[1] ?? peak)
    }
    expect(length).toBe(text.length)
    expect(peak / 1024).toBeLessThan(150)
  })
})

describe('stdin', () => {
  test('is left alone when flags were given: one that never ends does not hold up the error', async () => {
    const hint = 'Stdin was not read, because flags were given. Add --name, or read JSON from stdin with --file -'
    const create = start(['create', '--id', '1'], temporaryFolder(), { stdin: 'pipe' })
    const { exitCode, stdout, stderr } = await create
    expect({ code: exitCode, out: stdout, err: stderr }).toEqual({
      code: 2,
      out: '',
      err: `plants: name must be a string, but is missing\n  ${hint}\n`,
    })
  })

  test.each(['create --id $n --name Fern', 'get 0', 'list', 'delete $n --yes'])(
    'is left alone by "%s" in a loop that reads lines',
    async (command) => {
      const folder = temporaryFolder()
      writeFileSync(join(folder, 'lines'), 'one\ntwo\nthree\n')
      const script = `n=0; while read -r line; do "$plants" ${command} >&2; echo "$line"; n=$((n+1)); done < lines`
      const { code, out } = await bash(script, folder)
      expect({ code, out }).toEqual({ code: 0, out: 'one\ntwo\nthree\n' })
    },
  )
})

/** Makes stdout non-blocking for all who share it, as Node does, and leaves it so. */
const unblock = '(node --eval "process.stdout; process.kill(process.pid, 9)"; true) 2> /dev/null;'

/** Lists into a pipe of 64 KiB. Reading may begin when it is full. */
function listIntoPipe(folder: string, before = '') {
  const path = join(temporaryFolder(), 'pipe')
  spawnSync('mkfifo', [path])
  const both = openSync(path, 'r+') // opening one end alone would wait for the other
  const reader = openSync(path, 'r')
  closeSync(both)
  const writer = execa('bash', ['-c', `exec > "$1"; ${before} exec "$0" list`, bin, path], {
    ...inFolder(folder),
    stdin: 'ignore',
  })
  onTestFinished(() => {
    writer.kill('SIGKILL')
    closeSync(reader)
  })
  const read = (highWaterMark: number): AsyncIterable<Buffer> =>
    createReadStream('', { fd: reader, highWaterMark, autoClose: false })
  return { writer, read }
}

function proc(pid: number | undefined, file: string): string {
  const path = `/proc/${pid}/${file}`
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

/** Runs a script in which "$plants" is the program and "$1" the argument. A pipe fails when any part of it does. */
async function bash(script: string, folder: string, argument = ''): Promise<ProcessResult> {
  const args = ['-c', `set -o pipefail; plants=$0; ${script}`, bin, argument]
  const { exitCode, stdout, stderr } = await execa('bash', args, { ...inFolder(folder), stdin: 'ignore' })
  return { code: exitCode, out: stdout, err: stderr }
}

function inFolder(folder: string) {
  const env = { PATH: process.env['PATH'], HOME: folder, PLANTS_DATA_DIR: join(folder, 'data') }
  return { reject: false, stripFinalNewline: false, cwd: folder, extendEnv: false, env } as const
}

/** A store with so many plants, and what a list of them is. */
async function storeOf(count: number): Promise<{ folder: string; text: string }> {
  const folder = temporaryFolder()
  await plants(['create', '--id', '0', '--name', 'Fern 0', '--tag', 'shade'], folder)
  const db = new DatabaseSync(join(folder, 'data/plants.db'))
  db.exec(`
    WITH RECURSIVE numbers (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM numbers WHERE id < ${count - 1})
    INSERT INTO plants (id, name, tag) SELECT id, 'Fern ' || id, 'shade' FROM numbers`)
  db.close()
  const text = Array.from({ length: count }, (_, id) => `{"id":${id},"name":"Fern ${id}","tag":"shade"}\n`).join('')
  return { folder, text }
}
