import { copyFileSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { beforeEach, describe, expect, test } from 'vitest'
import { run } from '../../../src/cli/program/run.js'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { CapturedOutput, createIo } from '../../helpers/sandbox/run.js'
import { queryFile } from '../../helpers/sandbox/sqlite-file.js'

// An import that generated ids would create its plants a second time, so it is not repeated unless
// the user asks for it.

let sandbox: ImportSandbox

beforeEach(() => {
  sandbox = new ImportSandbox()
})

const resolvePath = (name: string) => join(sandbox.home, name)
const readCheckpoints = () => queryFile(sandbox.store, 'SELECT * FROM imports')

describe('a complete import that generated ids', () => {
  const repeatedError = {
    code: 2,
    err: expect.stringMatching(/^plants: The same input was imported /),
  }

  test('is not repeated by accident', async () => {
    sandbox.write('plants', '{"name":"A"}\n{"name":"B"}\n')
    const command = 'plants --id-from next'
    expect(await sandbox.import(command)).toMatchObject({ code: 0, created: 2 })
    utimesSync(resolvePath('plants'), 1, 1)
    copyFileSync(resolvePath('plants'), resolvePath('copy'))
    for (const again of [
      ...['', ' --rejects bad', ' --if-exists update', ' --atomic'].map((flags) => command + flags),
      'plants --id-from 7',
      'copy --id-from next --format ndjson',
    ])
      expect(await sandbox.import(again)).toEqual(repeatedError)
    expect(await sandbox.import(`${command} --restart`)).toMatchObject({ code: 0, created: 2 })
    sandbox.write('plants', '{"name":"C"}\n')
    expect(await sandbox.import(command)).toMatchObject({ code: 0, created: 1 })
    const stored = ['A', 'B', 'A', 'B', 'C'].map((name, index) => buildPlantLine(index + 1, name))
    expect(await sandbox.list()).toBe(stored.join(''))
  })

  test('is recognized by each of its files, compressed or not', async () => {
    sandbox.write('one.csv', 'name\nA\n')
    sandbox.write('other.csv', 'name\nB\n')
    sandbox.write('one.csv.gz', gzipSync('name\nA\n'))
    const flags = '--id-from next'
    expect(await sandbox.import(`one.csv other.csv ${flags}`)).toMatchObject({ created: 2 })
    for (const files of ['other.csv one.csv', 'other.csv', 'one.csv.gz'])
      expect(await sandbox.import(`${files} ${flags}`)).toEqual(repeatedError)
  })

  test('is recognized although its summary could not be written', async () => {
    const io = createIo({ cwd: sandbox.home, env: sandbox.env })
    const stdout = new CapturedOutput({}, 'stdout')
    stdout.write = () => Promise.reject(Object.assign(new Error('EPIPE'), { code: 'EPIPE' }))
    sandbox.write('plants', '{"name":"A"}\n')
    const command = 'plants --id-from next --atomic'
    expect(await run(['import', ...command.split(' ')], { ...io, stdout })).toBe(0)
    expect(await sandbox.import(command)).toEqual(repeatedError)
    expect(await sandbox.list()).toBe(buildPlantLine(1, 'A'))
  })

  test('with --atomic is recognized only after it created plants', async () => {
    const command = 'plants --id-from next --atomic'
    sandbox.write('plants', '{"name":"A"}\nbad\n')
    expect(await sandbox.import(command)).toMatchObject({ code: 6, rejected: { 400: 1 } })
    expect(readCheckpoints()).toEqual([])
    sandbox.write('plants', '{"name":"A"}\n')
    expect(await sandbox.import(command)).toMatchObject({ code: 0, created: 1 })
    for (const again of [command, 'plants --id-from next'])
      expect(await sandbox.import(again)).toEqual(repeatedError)
  })

  test('with --match name may be repeated only with --match name', async () => {
    sandbox.write('plants', `${buildPlantLine(1, 'A')}{"name":"B"}\n`)
    const byName = 'plants --id-from next --match name'
    expect(await sandbox.import(byName)).toMatchObject({ code: 0, created: 2 })
    expect(await sandbox.import(byName)).toMatchObject({ code: 0, skipped: 2 })
    expect(await sandbox.import('plants --id-from next')).toEqual(repeatedError)
  })

  test('is not recognized if its generated ids existed, so that nothing was stored', async () => {
    await sandbox.run('create --id 5 --name Fern')
    sandbox.write('plants', '{"name":"A"}\n')
    expect(await sandbox.import('plants --id-from 5')).toMatchObject({ code: 6 })
    expect(await sandbox.import('plants --id-from 6')).toMatchObject({ code: 0, created: 1 })
  })

  test('is not recognized if no plant needed a generated id', async () => {
    sandbox.write('plants', buildPlantLine(1, 'A'))
    expect(await sandbox.import('plants --id-from next')).toMatchObject({ code: 0, created: 1 })
    expect(readCheckpoints()).toEqual([])
  })
})
