import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { serve } from '../../helpers/service.js'
import { query } from '../../helpers/sqlite-file.js'
import { World } from '../../helpers/world.js'

// The file was made by version 0.1.0, before checkpoints had a version 2.

const tokens = {
  kept: 'plants_PuUJtfUmr6mfdSlIGpltaPOxaVYRxDlQtpHFy-F_-kA',
  revoked: 'plants_qpfgov0b3-k8hVUFeKj7_rWtPIUAodU2SXFuxzEc-gI',
}

const plants = [
  '{"id":-9223372036854775808,"name":"Smallest"}',
  '{"id":0,"name":"","tag":""}',
  '{"id":7,"name":"Keyed","tag":"shade"}',
  '{"id":101,"name":"Of the import"}',
  '{"id":102,"name":"Also","tag":"x"}',
  '{"id":9007199254740993,"name":"共🌱 \\"quoted\\"\\nline"}',
  '{"id":9223372036854775807,"name":"Largest 🌵","tag":"köy 🇹🇷"}',
]

function oldStore(): World {
  const world = new World()
  mkdirSync(world.data, { mode: 0o700 })
  const store = join(import.meta.dirname, '../../data/version-0.1.db.gz')
  writeFileSync(world.store, gunzipSync(readFileSync(store)))
  return world
}

test('a store of an older version has its plants and its idempotency keys', async () => {
  const world = oldStore()
  expect((await world.run('list')).out).toBe(plants.map((plant) => `${plant}\n`).join(''))
  const create = (name: string) =>
    `create --id 7 --name ${name} --tag shade --idempotency-key a-key-of-0.1.0`
  expect(await world.run(create('Keyed'))).toEqual({
    code: 0,
    out: '{"name":"Keyed","tag":"shade"}\n',
    err: '',
  })
  expect(await world.run(create('Other'))).toMatchObject({ code: 1 })
  expect((await world.run('count')).out).toContain('7')
})

test('a store of an older version has its tokens, also those that were revoked', async () => {
  const world = oldStore()
  const { address } = await serve([], {
    folder: world.home,
    env: { PLANTS_SERVE_TOKEN: '' },
    token: tokens.kept,
  })
  const statusOf = async (token: string) =>
    (await fetch(`${address}/plants/7`, { headers: { Authorization: `Bearer ${token}` } })).status
  expect([await statusOf(tokens.kept), await statusOf(tokens.revoked)]).toEqual([200, 401])
})

test('an import that an older version began is not resumed', async () => {
  const world = oldStore()
  world.write('plants.ndjson', '{"id":101,"name":"Of the import"}\n{"id":104,"name":"New"}\n')
  await world.run('import plants.ndjson --max-errors 1') // the id of its checkpoint
  const [{ id } = {}] = query(
    world.store,
    'SELECT id FROM imports WHERE state LIKE \'%"version":2%\'',
  )
  query(world.store, `DELETE FROM imports WHERE id = '${id}'`)
  query(world.store, `UPDATE imports SET id = '${id}'`)
  const message = 'An older version of plants began this import: 2 created, 0 updated'
  const err = `plants: ${message}\n  To begin again, add --restart --if-exists same\n`
  expect(await world.run('import plants.ndjson')).toEqual({ code: 2, out: '', err })
  expect(await world.run('import plants.ndjson --restart --if-exists same')).toMatchObject({
    code: 0,
  })
  expect(query(world.store, 'SELECT * FROM imports')).toEqual([])
  expect((await world.run('get 104')).out).toBe('{"id":104,"name":"New"}\n')
})
