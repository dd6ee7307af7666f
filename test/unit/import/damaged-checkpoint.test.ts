import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { buildPlantLine, ImportSandbox, nextChunk } from '../../helpers/sandbox/import-sandbox.js'
import { queryFile } from '../../helpers/sandbox/sqlite-file.js'
import { serveFile, token } from '../../helpers/scripted-server/service.js'

interface InterruptedImport {
  user: ImportSandbox
  /** Has one plant, a line that is not JSON, and in the next chunk another plant. */
  file: string
  /** The file that keeps the checkpoint. */
  database: string
}

async function interrupt(user: ImportSandbox, database: string): Promise<InterruptedImport> {
  const file = user.write('plants', `${buildPlantLine(1)}bad\n${nextChunk}${buildPlantLine(2)}`)
  expect(await user.import(`${file} --max-errors 1`)).toMatchObject({ code: 6, created: 1 })
  return { user, file, database }
}

const keepers = {
  'a store': async () => {
    const user = new ImportSandbox()
    return interrupt(user, user.store)
  },
  'the journal of a service': async () => {
    const user = new ImportSandbox()
    const store = await serveFile(join(user.home, 'service.db'))
    Object.assign(user.env, { PLANTS_STORE: store, PLANTS_TOKEN: token })
    return interrupt(user, join(user.state, 'imports.db'))
  },
}

const restartHint = /plants: The checkpoint of this import .*\n *Start over with --restart\n$/
const isCheckpoint = "state LIKE '{%'"

describe.each(Object.entries(keepers))('a checkpoint in %s is not resumed', (_, begin) => {
  test.each([
    ['it is empty', "''"],
    ['it is no JSON', "'x'"],
    ['it is a list', "'[]'"],
    ['its position is no object', "json_set(state, '$.position', 2)"],
    ['its position is within a record', "json_set(state, '$.position.records', 1.5)"],
    ['it counts fewer records', "json_set(state, '$.position.counts.created', 0)"],
    ['its position has no next id', "json_set(state, '$.firstId', '7')"],
    ['its import has no id', "json_set(state, '$.importId', '')"],
    [
      'its position is beyond the end of its file',
      "json_set(state, '$.position.records', 9, '$.position.counts.created', 8)",
    ],
    ['its position is in a second file', "json_set(state, '$.position.input', 1)"],
  ])('if %s, and --restart begins again', async (_damage, state) => {
    const { user, file, database } = await begin()
    queryFile(database, `UPDATE imports SET state = ${state} WHERE ${isCheckpoint}`)
    const err = expect.stringMatching(restartHint)
    expect(await user.import(file)).toEqual({ code: 4, err })
    const restarted = { code: 6, created: 1, skipped: 1, rejected: { 400: 1 } }
    expect(await user.import(`${file} --restart`)).toMatchObject(restarted)
    expect(queryFile(database, 'SELECT id FROM imports')).toEqual([])
  })

  test('if --restart began it and its position is beyond the end', async () => {
    const { user, file, database } = await begin()
    await user.import(`${file} --restart --max-errors 1`)
    const position = "'$.position.records', 9, '$.position.counts.created', 7"
    queryFile(database, `UPDATE imports SET state = json_set(state, ${position})`)
    const err = expect.stringMatching(/plants: The checkpoint .*\n *Run the same command again\n$/)
    expect(await user.import(`${file} --restart`)).toEqual({ code: 4, err })
    expect(await user.import(`${file} --restart`)).toMatchObject({ code: 6, skipped: 1 })
  })
})

const beyondTheEnd = "'$.position.records', 9, '$.position.counts.created', 8"
const onlyNewNames = 'To import only plants with new names, add --match name\n'

describe.each([
  ['is empty', "''"],
  ['is beyond the end of its file', `json_set(state, ${beyondTheEnd})`],
])('a checkpoint of an import that generates ids, which %s,', (_damage, state) => {
  test.each([
    ['--id-from next', onlyNewNames, '--id-from next --match name'],
    ['--id-from next --match name', undefined, '--id-from next --match name'],
  ])('leads to no second copy of a plant with %s', async (options, hint, nextOptions) => {
    const user = new ImportSandbox()
    const file = user.write('plants', `{"name":"A"}\nbad\n${nextChunk}{"name":"B"}\n`)
    const command = `${file} ${options}`
    expect(await user.import(`${command} --max-errors 1`)).toMatchObject({ code: 6, created: 1 })
    queryFile(user.store, `UPDATE imports SET state = ${state} WHERE ${isCheckpoint}`)
    const isBegunAgain = hint === undefined && state === "''"
    const err = expect.stringContaining(hint ?? 'Run the same command again\n')
    if (!isBegunAgain) expect(await user.import(command)).toEqual({ code: 4, err })
    const begunAgain = { created: 1, skipped: 1, rejected: { 400: 1 } }
    expect(await user.import(`${file} ${nextOptions}`)).toMatchObject(begunAgain)
    expect(await user.list()).toBe(buildPlantLine(1, 'A') + buildPlantLine(2, 'B'))
  })
})

test.each([
  ['--encoding latin1', '--encoding has changed since'],
  ['--map tag=x --sheet 2', '--map and --sheet have changed since'],
  ['--atomic', '--atomic cannot resume it'],
])('the error of an interrupted import with %s says that %s', async (options, difference) => {
  const { user, file } = await keepers['a store']()
  const err = expect.stringContaining(`This import was interrupted, and ${difference}\n`)
  expect(await user.import(`${file} ${options}`)).toEqual({ code: 2, err })
})

test('the error of an interrupted import names the file that has changed since', async () => {
  const user = new ImportSandbox()
  user.write('one', `${buildPlantLine(1)}bad\n${nextChunk}${buildPlantLine(2)}`)
  user.write('other', buildPlantLine(3))
  expect(await user.import('one other --max-errors 1')).toMatchObject({ code: 6, created: 1 })
  user.write('other', buildPlantLine(4))
  const err = expect.stringContaining('This import was interrupted, and other has changed since\n')
  expect(await user.import('one other')).toEqual({ code: 2, err })
})
