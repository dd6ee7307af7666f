import { chmodSync, copyFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { buildPlantLine, ImportSandbox, nextChunk } from '../../helpers/sandbox/import-sandbox.js'
import { isWindows, readMode } from '../../helpers/sandbox/sandbox.js'
import { queryFile } from '../../helpers/sandbox/sqlite-file.js'

// The rejects file of an import that is interrupted and resumed.

let sandbox: ImportSandbox

beforeEach(() => {
  sandbox = new ImportSandbox()
})

const resolvePath = (name: string) => join(sandbox.home, name)

describe('the rejects file of an interrupted import', () => {
  const command = 'plants --rejects rejects --max-errors 1'

  beforeEach(async () => {
    sandbox.write(
      'plants',
      `{bad 1}\n${buildPlantLine(1)}${nextChunk}{bad 2}\n${buildPlantLine(2)}`,
    )
    expect(await sandbox.import(command)).toMatchObject({ code: 6, created: 1 })
  })

  test('is not overwritten after somebody changed it', async () => {
    const original = sandbox.read('rejects')
    const expectKept = async () => {
      const content = sandbox.read('rejects')
      const err = expect.stringContaining('rejects has changed since the import wrote it')
      expect(await sandbox.import(command)).toMatchObject({ code: 2, err })
      expect(sandbox.read('rejects')).toBe(content)
    }
    sandbox.write('rejects', original.slice(0, -5))
    await expectKept()
    sandbox.write('rejects', original.replace('bad 1', '{"id":7,"name":"Fern"}'))
    await expectKept()
    sandbox.write('rejects', original)
    copyFileSync(resolvePath('rejects'), resolvePath('new'))
    // A copy has the same contents, but is another file.
    renameSync(resolvePath('new'), resolvePath('rejects'))
    await expectKept()
    const withOtherFile = 'plants --rejects other --max-errors 1'
    const err = expect.stringContaining(`. Its rejected records are in ${resolvePath('rejects')}\n`)
    expect(await sandbox.import(withOtherFile)).toMatchObject({
      created: 2,
      rejects: resolvePath('other'),
      err,
    })
    expect(sandbox.readRejected('other')).toMatchObject([{ record: '{bad 2}' }])
  })

  test.each([
    { keptBytes: 0, path: 'rejects' },
    { keptBytes: 9, path: 'rejects' },
    { keptBytes: Infinity, path: 'rejects' },
    { keptBytes: 9, path: 'other' },
  ])(
    'has each record once after a kill that left $keptBytes bytes, resumed with --rejects $path',
    async ({ keptBytes, path }) => {
      // The checkpoint has the rows that were not written, as after a kill.
      const rows = sandbox.read('rejects')
      const rejects = JSON.stringify({ path: resolvePath('rejects'), length: 0, rows })
      const json = `json('${rejects.replaceAll("'", "''")}')`
      queryFile(
        sandbox.store,
        `UPDATE imports SET state = json_set(state, '$.position.rejects', ${json})`,
      )
      if (keptBytes > 0) sandbox.write('rejects', rows.slice(0, keptBytes))
      else rmSync(resolvePath('rejects'))
      const result = { created: 2, rejected: { 400: 2 }, rejects: resolvePath(path) }
      expect(await sandbox.import(`plants --rejects ${path}`)).toMatchObject(result)
      const first = { record: '{bad 1}' }
      const second = { record: '{bad 2}' }
      if (path === 'rejects') {
        expect(sandbox.readRejected('rejects')).toMatchObject([first, second])
      } else {
        expect(sandbox.readRejected('rejects')).toMatchObject([first])
        expect(sandbox.readRejected(path)).toMatchObject([second])
      }
    },
  )

  test.skipIf(isWindows)(
    'is readable only by its owner when the import resumes (needs modes)',
    async () => {
      chmodSync(resolvePath('rejects'), 0o664)
      expect(await sandbox.import(command)).toMatchObject({ created: 2 })
      expect(readMode(resolvePath('rejects'))).toBe('600')
    },
  )

  test('is not overwritten by --restart', async () => {
    const err = expect.stringContaining('rejects already exists')
    expect(await sandbox.import(`${command} --restart`)).toEqual({ code: 2, err })
    rmSync(resolvePath('rejects'))
    expect(await sandbox.import('plants --rejects rejects --restart')).toMatchObject({
      created: 1,
      skipped: 1,
    })
    expect(sandbox.readRejected('rejects')).toMatchObject([
      { record: '{bad 1}' },
      { record: '{bad 2}' },
    ])
  })
})
