import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { bash, type ProcessResult, pipeIn, resultOf } from '../../helpers/process.js'
import { World } from '../../helpers/world.js'

const two = '{"id":1,"name":"Fern","tag":"shade"}\n{"id":2,"name":"Moss"}\n'

function counts({ code, out, err }: ProcessResult) {
  const { created, skipped } = out === '' ? {} : JSON.parse(out)
  return { code, created, skipped, err }
}

describe('an import as a process of its own', () => {
  test('reads stdin from a pipe and a file, packed or not, and a device', async () => {
    const world = new World()
    const path = join(world.home, world.write('plants', two))
    expect(counts(await world.spawn('import', { input: two }))).toEqual({
      code: 0,
      created: 2,
      skipped: 0,
      err: '',
    })
    const again = 'import - --if-exists same'
    for (const result of [
      await world.spawn(again, { inputFile: path }),
      await world.spawn(again, { input: gzipSync(two) }),
      await bash(world, '"$plants" import /dev/stdin --if-exists same < plants'),
    ])
      expect(counts(result)).toEqual({ code: 0, created: 0, skipped: 2, err: '' })
    for (const path of ['-', '/dev/null']) {
      const err = `plants: warning: The input contains no records\n`
      expect(counts(await world.spawn(`import ${path}`))).toEqual({
        code: 0,
        created: 0,
        skipped: 0,
        err,
      })
    }
  })
})

describe.skipIf(process.platform === 'win32')('an import of a pipe with a name', () => {
  test.each([
    ['packed plants', gzipSync(two), 2],
    ['nothing', Buffer.alloc(0), 0],
  ])('that has %s', async (_, content, created) => {
    const world = new World()
    const pipe = pipeIn(world.home)
    const run = world.start(['import', pipe])
    createWriteStream(pipe).end(content)
    const err = created === 0 ? `plants: warning: The input contains no records\n` : ''
    expect(counts(await resultOf(run))).toEqual({ code: 0, created, skipped: 0, err })
  })

  test('that a shell has made, between files', async () => {
    const world = new World()
    world.write('last', '{"id":3,"name":"Last"}')
    const script = `"$plants" import <(printf '{"id":1,"name":"A"}\\n') <(printf '{"id":2,"name":"B"}\\n{"id":2}') last`
    const err = expect.stringMatching(
      /^plants: \/dev\/fd\/\d+:2: Invalid plant: name must be a string of Unicode text without U\+0000, but is missing\n/,
    )
    expect(counts(await bash(world, script))).toEqual({ code: 6, created: 3, skipped: 0, err })
  })
})
