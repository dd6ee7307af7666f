import { createWriteStream, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { bin, plants, start } from '../../helpers/process.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const two = '{"id":1,"name":"Fern","tag":"shade"}\n{"id":2,"name":"Moss"}\n'
const isRoot = process.getuid?.() === 0

describe('an import as a process of its own', () => {
  test.each([
    ['with nothing on stdin', [], 2],
    ['of stdin, which is /dev/null', ['-'], 0],
    ['of /dev/null', ['/dev/null'], 0],
  ])('%s', async (_, argv, code) => {
    const folder = temporaryFolder()
    const result = await plants(['import', ...argv], folder)
    expect({ code: result.code, created: result.out && JSON.parse(result.out).created, err: result.err }).toEqual(
      code === 0
        ? { code, created: 0, err: `plants: warning: ${argv[0] === '-' ? 'stdin' : '/dev/null'} is empty\n` }
        : {
            code,
            created: '',
            err: 'plants: import needs a file, or plants on stdin\n  For example: plants import plants.ndjson\n',
          },
    )
  })

  test('reads stdin from a pipe and from a file', async () => {
    const folder = temporaryFolder()
    const path = join(folder, 'plants')
    writeFileSync(path, two)
    expect(counts(await plants(['import'], folder, { input: two }))).toEqual([0, 2, 0])
    expect(counts(await plants(['import', '--if-exists', 'same'], folder, { inputFile: path }))).toEqual([0, 0, 2])
    const redirected = await execa(
      'bash',
      ['-c', '"$0" import /dev/stdin --if-exists same < plants', bin],
      inFolder(folder),
    )
    expect(counts({ code: redirected.exitCode, out: redirected.stdout, err: redirected.stderr })).toEqual([0, 0, 2])
    expect(counts(await plants(['import', '-', '--if-exists', 'same'], folder, { input: gzipSync(two) }))).toEqual([
      0, 0, 2,
    ])
  })

  test('leaves nothing in the state folder when it is done', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'plants'), two)
    const { code } = await plants(['import', join(folder, 'plants')], folder)
    const { stdout } = await execa('find', [folder, '-path', '*imports*', '-type', 'f'])
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
  })

  test('takes what export gives: another store that is identical when exported again', async () => {
    const folder = temporaryFolder()
    const odd = `${two}{"id":-9223372036854775808,"name":"","tag":""}\n{"id":9223372036854775807,"name":"a\\u0001\\u2028\\"","tag":"\\r\\n,;\\t"}\n`
    await plants(['import'], folder, { input: odd })
    for (const format of ['ndjson', 'json', 'csv', 'tsv']) {
      const other = join(temporaryFolder(), 'copy.db')
      const script = `set -o pipefail; "$0" export --output ${format} | "$0" import --store "$1"`
      const { exitCode, stdout, stderr } = await execa('bash', ['-c', script, bin, other], inFolder(folder))
      expect({ format, exitCode, created: JSON.parse(stdout).created, stderr }).toEqual({
        format,
        exitCode: 0,
        created: 4,
        stderr: `plants: Created store ${other}\n`,
      })
      const [one, copy] = [await plants(['export'], folder), await plants(['export', '--store', other], folder)]
      expect(copy).toEqual(one)
    }
  })

  test.skipIf(isRoot)('tells of a file that it may not read (needs a user that is not root)', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'plants'), two, { mode: 0o000 })
    const { code, err } = await plants(['import', join(folder, 'plants')], folder)
    expect({ code, told: err.includes('permission denied') }).toEqual({ code: 2, told: true })
  })
})

describe.skipIf(process.platform === 'win32')('an import of a pipe with a name', () => {
  test.each([
    ['plants', Buffer.from(two), 0, [0, 2, 0]],
    ['packed plants', gzipSync(two), 0, [0, 2, 0]],
    ['nothing', Buffer.alloc(0), 0, [0, 0, 0]],
  ])('that has %s', async (_, content, code, expected) => {
    const folder = temporaryFolder()
    const pipe = join(folder, 'pipe')
    await execa('mkfifo', [pipe])
    const run = start(['import', pipe], folder)
    createWriteStream(pipe).end(content)
    const { exitCode, stdout, stderr } = await run
    const err = String(stderr).replace(`plants: warning: ${pipe} is empty\n`, '')
    expect(counts({ code: exitCode, out: String(stdout), err })).toEqual(expected)
    expect(exitCode).toBe(code)
  })

  test('that a shell has made, between files', async () => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'last'), '{"id":3,"name":"Last"}')
    const script = `"$0" import <(printf '{"id":1,"name":"A"}\\n') <(printf '{"id":2,"name":"B"}\\n{"id":2}') last`
    const { exitCode, stdout, stderr } = await execa('bash', ['-c', script, bin], inFolder(folder))
    expect({ exitCode, created: JSON.parse(stdout).created }).toEqual({ exitCode: 6, created: 3 })
    expect(stderr).toMatch(/^plants: \/dev\/fd\/\d+:2: Invalid plant: name must be a string, but is missing\n/)
  })
})

test('rejects are kept by their name relative to the folder one is in, or absolute', async () => {
  const folder = temporaryFolder()
  const bad = '{"id":1}\n'
  await plants(['import', '--rejects', 'bad'], folder, { cwd: folder, input: two + bad })
  await plants(['import', '--rejects', join(folder, 'worse'), '--if-exists', 'skip'], folder, { input: two + bad })
  expect([readFileSync(join(folder, 'bad'), 'utf8'), readFileSync(join(folder, 'worse'), 'utf8')]).toEqual([bad, bad])
})

function counts({ code, out, err }: { code: number | undefined; out: string; err: string }) {
  expect(err).toBe('')
  const { created, skipped } = JSON.parse(out)
  return [code, created, skipped]
}

function inFolder(folder: string) {
  const env = { PATH: process.env['PATH'], HOME: folder, PLANTS_DATA_DIR: join(folder, 'data') }
  return { reject: false, stripFinalNewline: false, cwd: folder, extendEnv: false, env, stdin: 'ignore' } as const
}
