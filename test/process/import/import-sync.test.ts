import { expect, test } from 'vitest'
import { countPlants, fillChunk, ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { waitForResult } from '../../helpers/sandbox/process.js'
import { queryFile } from '../../helpers/sandbox/sqlite-file.js'
import { serve } from '../../helpers/scripted-server/service.js'

// A list becomes the store beside a running service.

const firstMonth = '{"id":1,"name":"Lavender"}\n{"id":2,"name":"Rose"}\n'
const secondMonth = `${fillChunk('{"id":3,"name":"Dill"}')}{"id":4,"name":"Thyme"}\n`

test('a killed and repeated --sync is undone beside a service, where a revoked token stays revoked', async () => {
  const user = new ImportSandbox()
  const { address, token } = await serve([], { folder: user.home, rights: 'create,read' })
  const createToken = async (note: string) =>
    (await user.run(`tokens create --note ${note} --allow read`)).out.trim()
  const revokedToken = await createToken('revoked')
  const otherToken = await createToken('other')
  const readPlants = async (bearer: string) => {
    const headers = { Authorization: `Bearer ${bearer}` }
    const response = await fetch(`${address}/plants`, { headers })
    return response.status === 200 ? response.json() : response.status
  }
  user.write('list.ndjson', firstMonth)
  expect(await user.import('list.ndjson')).toMatchObject({ code: 0, created: 2 })
  const before = await readPlants(token)
  expect(await readPlants(revokedToken)).toEqual(before)

  // The second chunk never ends, so the import is killed between its first change and its last.
  queryFile(
    user.store,
    'CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n',
  )
  queryFile(
    user.store,
    'CREATE TRIGGER stop AFTER INSERT ON plants WHEN NEW.id = 4 BEGIN SELECT count(*) FROM endless; END',
  )
  user.write('list.ndjson', secondMonth)
  const run = user.start('import list.ndjson --sync --yes')
  await expect.poll(() => countPlants(user.store), { interval: 10 }).toBe(3)
  run.kill('SIGKILL')
  const killed = await waitForResult(run)
  expect(killed).toMatchObject({ code: undefined, out: '' })
  queryFile(user.store, 'DROP TRIGGER stop')
  // The first copy has the token as it was before.
  expect((await user.run('tokens revoke revoked')).code).toBe(0)
  await expect.poll(() => readPlants(revokedToken)).toBe(401)
  const tokens = await user.run('tokens list')
  const repeated = await user.import('list.ndjson --sync --yes')
  expect(repeated).toMatchObject({ code: 0, created: 1, skipped: 1, deleted: 2 })

  const [, undo = ''] = /^plants: To undo, .*: plants (restore .*)\n/.exec(killed.err) ?? []
  expect((await user.run(undo)).code).toBe(0)
  expect(await user.run('tokens list')).toEqual(tokens)
  for (const validToken of [token, otherToken]) expect(await readPlants(validToken)).toEqual(before)
  expect(await readPlants(revokedToken)).toBe(401)
})
