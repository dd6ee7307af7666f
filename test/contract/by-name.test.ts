import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createFixedTokenSource } from '../../src/server/authenticate.js'
import { createDatabase } from '../helpers/postgres/database.js'
import { installations } from '../helpers/postgres/server.js'
import { buildPlantLine, ImportSandbox } from '../helpers/sandbox/import-sandbox.js'
import { openFile } from '../helpers/sandbox/store.js'
import { serveFile, serveInProcess, token } from '../helpers/scripted-server/service.js'

// How names are found is shown with a file: test/commands/import/random-months.test.ts.

const stored =
  buildPlantLine(5, 'Hortensie', 'Busch') +
  buildPlantLine(7, 'Weide', 'Baum') +
  buildPlantLine(9, 'Hortensie')
const list = 'name,tag\nAhorn,Baum\nAhorn,Busch\nHortensie,Busch\nWeide,\n'

test.for(['service', 'database (needs PostgreSQL)'])(
  'an import with --by-name creates and updates plants by their names in a %s',
  async (kind, { skip }) => {
    skip(kind !== 'service' && installations.length === 0)
    const user = new ImportSandbox()
    const file = join(user.home, 'garden.db')
    const { url, env } =
      kind === 'service'
        ? { url: await serveFile(file), env: { PLANTS_TOKEN: token } }
        : await createDatabase()
    Object.assign(user.env, env, { PLANTS_STORE: url })
    await user.import('', stored)
    const imported = async (flags: string) => {
      const { err: _, ...counts } = await user.import(`--format csv --by-name ${flags}`, list)
      return counts
    }
    const plants = async () => (await user.run('export -o ndjson')).out
    const flags = '--if-exists update'
    expect(await imported(flags)).toMatchObject({ code: 0, created: 2, updated: 1, skipped: 1 })
    const now =
      stored.replace(',"tag":"Baum"', '') +
      buildPlantLine(10, 'Ahorn', 'Baum') +
      buildPlantLine(11, 'Ahorn', 'Busch')
    expect(await plants()).toBe(now)
    await imported(flags)
    expect(await plants()).toBe(now)
  },
)

test('an import with --by-name needs the right to read', async () => {
  const user = new ImportSandbox()
  const path = join(user.home, 'garden.db')
  const { address: store } = await serveInProcess({
    openStore: (events) => openFile(path, events),
    openTokenSource: async () =>
      createFixedTokenSource(token, { name: 'test', rights: ['create'] }),
  })
  Object.assign(user.env, { PLANTS_TOKEN: token, PLANTS_STORE: store })
  const { code, err } = await user.import('--by-name', '{"name":"Ahorn"}\n')
  expect([code, err]).toEqual([3, expect.stringContaining('no right to read')])
})
