import { appendFileSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  allCreated,
  caughtImport,
  countOf,
  countsOf,
  digestOf,
  importAgain,
  inputLines,
  journalsIn,
  judgeDone,
  storeIn,
  writeLines,
} from '../../helpers/import.js'
import { plants } from '../../helpers/process.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const goingOn = /^plants: Resuming an interrupted import: ([\d,]+) plants are done\n$/

describe('an import that was stopped, and whose file', () => {
  const rest = inputLines.slice(-1)[0] ?? ''
  test.each<[string, (path: string) => void]>([
    [
      'is another one of the same content',
      (path) => {
        renameSync(path, `${path}.old`)
        writeFileSync(path, readFileSync(`${path}.old`))
      },
    ],
    [
      'was changed in the part that is not done',
      (path) => replaceIn(path, rest, rest.replace('"name":"', '"name":"N')),
    ],
    [
      'was cut short in the part that is not done',
      (path) => truncateSync(path, statSync(path).size - Buffer.byteLength(rest) - 1),
    ],
    ['has grown', (path) => appendFileSync(path, '{"id":9223372036854775807,"name":"New"}\n')],
  ])('%s, goes on', async (_, change) => {
    const { folder } = await stopped()
    change(join(folder, 'plants.ndjson'))
    const { code, out, err } = await importAgain(folder)
    const lines = readFileSync(join(folder, 'plants.ndjson'), 'utf8')
    expect({ code, counts: countsOf(out) }).toEqual({ code: 0, counts: allCreated(lines.split('\n').length - 1) })
    expect(err).toMatch(goingOn)
    expect(digestOf((await plants(['export'], folder)).out)).toBe(digestOf(lines))
    expect(journalsIn(folder)).toEqual([])
  })

  test('was changed in the part that is done, is rejected, until it is as it was', async () => {
    const { folder, done } = await stopped()
    const path = join(folder, 'plants.ndjson')
    const line = inputLines[3] ?? ''
    const changes: [string, () => void][] = [
      ['another name', () => replaceIn(path, line, line.replace('"name":"', '"name":"N'))],
      ['a byte less', () => replaceIn(path, 'Fern 0', 'Fen 0')],
      ['cut short', () => truncateSync(path, 1000)],
      ['empty', () => truncateSync(path, 0)],
    ]
    for (const [what, change] of changes) {
      change()
      const { code, out, err } = await importAgain(folder)
      expect({ what, code, out, err, count: countOf(storeIn(folder)) }).toEqual({
        ...{ what, code: 2, out: '', count: done },
        err: expect.stringMatching(
          /plants: plants\.ndjson was changed since its import was interrupted\n {2}.*--restart/,
        ),
      })
      writeLines(folder, inputLines)
    }
    await judgeDone(folder, await importAgain(folder))
  })

  test('is gone, says so, and goes on when it is back', async () => {
    const { folder } = await stopped()
    const path = join(folder, 'plants.ndjson')
    renameSync(path, `${path}.away`)
    expect((await importAgain(folder)).code).toBe(2)
    renameSync(`${path}.away`, path)
    await judgeDone(folder, await importAgain(folder))
  })
})

describe('the checkpoint', () => {
  test('needs a directory for its lock, which is said before anything is stored', async () => {
    const folder = temporaryFolder()
    writeLines(folder, inputLines.slice(0, 3))
    writeFileSync(join(folder, 'file'), '')
    const env = { PLANTS_STATE_DIR: join(folder, 'file') }
    expect(await plants(['import', 'plants.ndjson'], folder, { cwd: folder, env })).toEqual({
      ...{ code: 74, out: '' },
      err: expect.stringMatching(
        /^plants: The lock of this import in .*file.imports could not be written: .*\n {2}.*PLANTS_STATE_DIR\n$/,
      ),
    })
    expect(countOf(storeIn(folder))).toBe(0)
  })

  test('of another file says nothing about this one', async () => {
    const { folder } = await stopped()
    writeLines(folder, ['{"id":1,"name":"Other"}'], 'other.ndjson')
    const other = await plants(['import', 'other.ndjson'], folder, { cwd: folder })
    expect({ code: other.code, err: other.err }).toEqual({ code: 0, err: '' })
    expect((await importAgain(folder)).err).toMatch(goingOn)
  })

  test('with --restart begins again, and writes the rejects file anew', async () => {
    const lines = inputLines.flatMap((line, index) => (index % 4000 === 0 ? [line, `bad ${index}`] : [line]))
    const { folder, stop } = await caughtImport(lines, '--rejects', 'rejects.ndjson')
    await stop('SIGKILL')
    const again = await importAgain(folder, '--rejects', 'rejects.ndjson', '--restart', '--if-exists', 'same')
    expect(again.code).toBe(6)
    expect(again.err).not.toContain('Resuming')
    expect(readFileSync(join(folder, 'rejects.ndjson'), 'utf8')).toBe(
      lines
        .filter((line) => line.startsWith('bad'))
        .map((line) => `${line}\n`)
        .join(''),
    )
    expect(digestOf((await plants(['export'], folder)).out)).toBe(digestOf(`${inputLines.join('\n')}\n`))
  })

  test('begins again when the store has been deleted between', async () => {
    const { folder } = await stopped()
    rmSync(join(folder, 'data'), { recursive: true })
    await judgeDone(folder, await importAgain(folder))
  })
})

/** An import that was stopped before its last portion. */
async function stopped(): Promise<{ folder: string; done: number }> {
  const { folder, stop } = await caughtImport(inputLines)
  expect((await stop('SIGINT')).code).toBe(130)
  const done = countOf(storeIn(folder))
  expect(done).toBeLessThan(inputLines.length * 0.8)
  return { folder, done }
}

function replaceIn(path: string, text: string, other: string): void {
  writeFileSync(path, readFileSync(path, 'utf8').replace(text, other))
}
