import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { bin, resultOf } from '../../helpers/process.js'
import { World } from '../../helpers/world.js'

const two = '{"id":1,"name":"Fern","tag":"shade"}\n{"id":2,"name":"Moss"}\n'

interface Ended {
  code: number | undefined
  out: string
  err: string
}

function counts({ code, out, err }: Ended) {
  const { created, skipped } = out === '' ? {} : JSON.parse(out)
  return { code, created, skipped, err }
}

/** Runs a script in which "$0" is the program. A pipe fails when any part of it does. */
async function bash(world: World, script: string, ...words: string[]): Promise<Ended> {
  const env = { ...world.env, PATH: process.env['PATH'], HOME: world.home }
  const options = { reject: false, cwd: world.home, extendEnv: false, env, stdin: 'ignore' } as const
  const { exitCode, stdout, stderr } = await execa('bash', ['-o', 'pipefail', '-c', script, bin, ...words], options)
  return { code: exitCode, out: stdout, err: stderr }
}

describe('an import as a process of its own', () => {
  test('needs an input', async () => {
    const err = 'plants: import needs a file, or plants on stdin\n  For example: plants import plants.ndjson\n'
    expect(await new World().spawn('import')).toEqual({ code: 2, out: '', err })
    for (const [path, name] of [
      ['-', 'stdin'],
      ['/dev/null', '/dev/null'],
    ]) {
      const empty = { code: 0, created: 0, skipped: 0, err: `plants: warning: ${name} is empty\n` }
      expect(counts(await new World().spawn(`import ${path}`))).toEqual(empty)
    }
  })

  test('reads stdin from a pipe and from a file, packed or not', async () => {
    const world = new World()
    const path = join(world.home, world.write('plants', two))
    expect(counts(await world.spawn('import', { input: two }))).toEqual({ code: 0, created: 2, skipped: 0, err: '' })
    const again = 'import - --if-exists same'
    for (const result of [
      await world.spawn(again, { inputFile: path }),
      await world.spawn(again, { input: gzipSync(two) }),
      await bash(world, '"$0" import /dev/stdin --if-exists same < plants'),
    ])
      expect(counts(result)).toEqual({ code: 0, created: 0, skipped: 2, err: '' })
  })

  test('takes what export gives: another store that is identical when exported again', async () => {
    const [least, greatest] = ['-9223372036854775808', '9223372036854775807']
    const odd = `{"id":${least},"name":"","tag":""}\n{"id":${greatest},"name":"a\\u0001\\u2028\\"","tag":"\\r\\n,;\\t"}\n`
    const world = new World()
    await world.spawn('import', { input: two + odd })
    for (const format of ['ndjson', 'json', 'csv', 'tsv']) {
      const copy = join(world.home, `${format}.db`)
      const script = `"$0" export --output ${format} | "$0" import --store "$1"`
      const err = `plants: Created store ${copy}`
      expect(counts(await bash(world, script, copy))).toEqual({ code: 0, created: 4, skipped: 0, err })
      expect(await world.run(`export --store ${copy}`)).toEqual(await world.run('export'))
    }
  })

  test.skipIf(process.getuid?.() === 0)(
    'names a file that it may not read (needs a user that is not root)',
    async () => {
      const world = new World()
      world.write('plants', two, 0o000)
      const err = expect.stringContaining('permission denied')
      expect(await world.spawn('import plants')).toMatchObject({ code: 2, err })
    },
  )

  test('keeps rejects by their name relative to the working directory, or absolute', async () => {
    const world = new World()
    const bad = '{"id":1}\n'
    await world.spawn('import --rejects bad', { input: two + bad })
    const worse = join(world.home, 'worse')
    await world.spawn(`import --rejects ${worse} --if-exists skip`, { input: two + bad, cwd: '/' })
    expect([world.read('bad'), world.read('worse')]).toEqual([bad, bad])
  })
})

describe.skipIf(process.platform === 'win32')('an import of a pipe with a name', () => {
  test.each([
    ['plants', Buffer.from(two), 2],
    ['packed plants', gzipSync(two), 2],
    ['nothing', Buffer.alloc(0), 0],
  ])('that has %s', async (_, content, created) => {
    const world = new World()
    const pipe = join(world.home, 'pipe')
    await execa('mkfifo', [pipe])
    const run = world.start(['import', pipe])
    createWriteStream(pipe).end(content)
    const err = created === 0 ? `plants: warning: ${pipe} is empty\n` : ''
    expect(counts(await resultOf(run))).toEqual({ code: 0, created, skipped: 0, err })
  })

  test('that a shell has made, between files', async () => {
    const world = new World()
    world.write('last', '{"id":3,"name":"Last"}')
    const script = `"$0" import <(printf '{"id":1,"name":"A"}\\n') <(printf '{"id":2,"name":"B"}\\n{"id":2}') last`
    const err = expect.stringMatching(
      /^plants: \/dev\/fd\/\d+:2: Invalid plant: name must be a string, but is missing\n/,
    )
    expect(counts(await bash(world, script))).toEqual({ code: 6, created: 3, skipped: 0, err })
  })
})
