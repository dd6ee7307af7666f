import { expect, test } from 'vitest'
import { shareDatabase } from '../../helpers/postgres/database.js'
import { buildPlantLine, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { openForged } from './forged-server.js'

// What an import does if the server does not accept its COPY.

const getDatabase = shareDatabase()
/** So many plants are inserted by COPY. */
const count = 300

async function prepareImport(copyError: string) {
  const database = await getDatabase()
  const { url, forge } = await openForged(database)
  forge({ copyError })
  const user = new ImportSandbox()
  Object.assign(user.env, { ...database.env, PLANTS_STORE: url })
  const lines = Array.from({ length: count }, (_, index) => buildPlantLine(index))
  user.write('list', lines.join(''))
  return { user, forge }
}

test.each([
  ['XX000', 'as Citus reports an id that exists'],
  ['0A000', 'as under row-level security'],
  ['23514', 'as a constraint'],
])('a COPY that fails with %s, %s, is repeated by statements', async (copyError) => {
  const { user } = await prepareImport(copyError)
  expect(await user.import('list')).toMatchObject({ code: 0, created: count })
  expect(await user.import('list')).toMatchObject({ code: 0, skipped: count })
})

test.each([
  ['55P03', 'another session keeps a lock'],
  ['57014', 'the statement was canceled'],
  ['42501', 'the role lacks a right'],
  ['42P01', 'the table is missing'],
  ['40001', 'another transaction was faster'],
  ['53100', 'the disk is full'],
])('a COPY that fails with %s, because %s, ends the import', async (copyError) => {
  const { user, forge } = await prepareImport(copyError)
  const { code, err } = await user.import('list --timeout 1s')
  expect([code, err]).toEqual([4, expect.stringContaining('plants: ')])
  expect((await user.run('count')).out).toBe('0\n')
  forge({})
  expect(await user.import('list')).toMatchObject({ code: 0, created: count })
})
