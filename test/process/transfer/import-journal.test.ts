import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  allCreated,
  caughtImport,
  countOf,
  countsOf,
  digestOf,
  grouped,
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
    ['was changed in the part that is not done', (path) => replaceIn(path, rest, rest.replace('"name":"', '"name":"N'))],
    ['was cut short in the part that is not done', (path) => truncateSync(path, statSync(path).size - Buffer.byteLength(rest) - 1)],
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
        err: expect.stringMatching(/plants: plants\.ndjson was changed since its import was interrupted\n {2}.*--restart/),
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

describe('the journal', () => {
  test('is asked for in words when it is broken, and --restart begins again', async () => {
    const { folder, done } = await stopped()
    const path = join(folder, '.local/state/plants/imports', journalsIn(folder)[0] ?? '')
    const saved = readFileSync(path, 'utf8')
    const fields = [{ version: '4' }, { inputs: 5 }, { flags: null }, { store: null }, { id: '' }]
    const others = fields.map((field) => JSON.stringify({ ...(JSON.parse(saved) as object), ...field }))
    for (const broken of ['', '{', 'null', '[]', '{"id":5}', saved.slice(0, -20), '\0'.repeat(500), ...others]) {
      writeFileSync(path, broken)
      const { code, out, err } = await importAgain(folder)
      expect({ broken, code, out, err }).toEqual({
        ...{ broken, code: 2, out: '' },
        err: `plants: The journal ${path} is not the journal of an import\n  Choose another file with --journal, or start again with --restart\n`,
      })
    }
    const again = await importAgain(folder, '--restart', '--if-exists', 'same')
    await judgeDone(folder, again, { ...allCreated(inputLines.length - done), skipped: done })
  })

  test('belongs to one import: other flags, inputs and stores are rejected', async () => {
    const { folder, stop } = await caughtImport(inputLines, '--journal', 'j.json')
    await stop('SIGINT')
    writeLines(folder, ['{"id":1,"name":"Other"}'], 'other.ndjson')
    const others = [
      ['other.ndjson'],
      ['plants.ndjson', 'other.ndjson'],
      ['plants.ndjson', '--id-from', '1'],
      ['plants.ndjson', '--map', 'name=title'],
      ['plants.ndjson', '--rejects', 'rejects.ndjson'],
      ['plants.ndjson', '--store', './other.db'],
    ]
    for (const args of others) {
      const { code, out, err } = await plants(['import', ...args, '--journal', 'j.json'], folder, { cwd: folder })
      expect({ args, code, out, err }).toEqual({
        ...{ args, code: 2, out: '' },
        err: expect.stringMatching(/^plants: This import was started with .*\n {2}Use the same flags, or start again with --restart\n$/),
      })
    }
    expect([existsSync(join(folder, 'other.db')), existsSync(join(folder, 'rejects.ndjson'))]).toEqual([false, false])
    await judgeDone(folder, await importAgain(folder, '--journal', 'j.json'))
    expect([existsSync(join(folder, 'j.json')), existsSync(join(folder, 'j.json.lock'))]).toEqual([false, false])
  })

  test('that cannot be written is said before anything is stored', async () => {
    const folder = temporaryFolder()
    writeLines(folder, inputLines.slice(0, 3))
    writeFileSync(join(folder, 'file'), '')
    const inFile = await plants(['import', 'plants.ndjson'], folder, { cwd: folder, env: { PLANTS_STATE_DIR: join(folder, 'file') } })
    const inFolder = await importAgain(folder, '--journal', folder)
    const nowhere = await importAgain(folder, '--journal', '/proc/journal.json')
    for (const { code, out, err } of [inFile, inFolder, nowhere]) {
      expect({ code: code === 2 || code === 4 || code === 74, out, err }).toEqual({
        ...{ code: true, out: '' },
        err: expect.stringMatching(/^plants: The journal .*\n {2}.*--journal/),
      })
    }
    expect(countOf(storeIn(folder))).toBe(0)
    expect((await importAgain(folder, '--no-journal')).code).toBe(0)
  })

  test('is left out with --no-journal: what was stopped begins again', async () => {
    const { folder, stop } = await caughtImport(inputLines, '--no-journal')
    const { code, err } = await stop('SIGINT')
    const done = countOf(storeIn(folder))
    expect({ code, err }).toEqual({ code: 130, err: expect.stringContaining(`Interrupted after ${grouped(done)} plants\n`) })
    expect(journalsIn(folder)).toEqual([])
    const again = await importAgain(folder, '--no-journal', '--if-exists', 'same')
    expect(countsOf(again.out)).toEqual({ ...allCreated(inputLines.length - done), skipped: done })
  })

  test('of another file says nothing about this one', async () => {
    const { folder } = await stopped()
    writeLines(folder, ['{"id":1,"name":"Other"}'], 'other.ndjson')
    const other = await plants(['import', 'other.ndjson'], folder, { cwd: folder })
    expect({ code: other.code, err: other.err }).toEqual({ code: 0, err: '' })
    expect(journalsIn(folder)).toHaveLength(1)
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
    const lines = inputLines.flatMap((line, index) => (index % 4000 === 0 ? [line, `bad ${index}`] : [line]))
    const { folder, stop } = await caughtImport(lines, '--rejects', 'rejects.ndjson')
    await stop('SIGKILL')
    rmSync(join(folder, 'data'), { recursive: true })
    const again = await importAgain(folder, '--rejects', 'rejects.ndjson')
    expect(readFileSync(join(folder, 'rejects.ndjson'), 'utf8').split('\n')).toHaveLength(21)
    await judgeDone(folder, again, { ...allCreated(inputLines.length), rejected: 20, reasons: { 400: 20 } })
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
