import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { beforeEach, expect, test } from 'vitest'
import { parseObjects, Sandbox } from '../../../helpers/sandbox/sandbox.js'
import { insertPlants, queryFile } from '../../../helpers/sandbox/sqlite-file.js'
import { endConnections } from '../../../helpers/sandbox/store.js'

let user: Sandbox

/** 10,000 plants, with the ids from 0 to 9999. */
beforeEach(async () => {
  user = new Sandbox()
  await user.run('create --id 0 --name Fern --tag shade')
  await user.run('tokens create')
  insertPlants(user.store, 9999)
  await endConnections()
})

const pageSize = 4096

function overwrite(change: (bytes: Buffer) => void): void {
  const bytes = readFileSync(user.store)
  change(bytes)
  writeFileSync(user.store, bytes)
}

/** The root page of a table or an index. */
function rootOf(name: string, bytes: Buffer): Buffer {
  const sql = `SELECT rootpage FROM sqlite_schema WHERE name = '${name}'`
  const root = Number(queryFile(user.store, sql)[0]?.['rootpage'])
  return bytes.subarray((root - 1) * pageSize, root * pageSize)
}

test.each<[what: string, damage: (bytes: Buffer) => unknown, why: RegExp]>([
  [
    'a page in the middle',
    (bytes) => bytes.fill(0xff, 20 * pageSize, 21 * pageSize),
    /: Tree 2 page 21: /,
  ],
  [
    'an id out of order',
    // The rows below the first child of the root have ids up to that of its cell.
    (bytes) => {
      const page = rootOf('plants', bytes)
      page.writeUInt8(1, page.readUInt16BE(12) + 4)
    },
    /: Tree 2 page \d+ cell \d+: Rowid \d+ out of order$/,
  ],
  [
    'a token that is not in its index',
    // The last byte of the page is that of the only digest.
    (bytes) => {
      const page = rootOf('sqlite_autoindex_tokens_1', bytes)
      page.writeUInt8(page.readUInt8(pageSize - 1) ^ 1, pageSize - 1)
    },
    /: row 1 missing from index sqlite_autoindex_tokens_1$/,
  ],
])('doctor finds damage in the contents: %s', async (_, damage, why) => {
  overwrite(damage)
  await endConnections()
  const { code, out } = await user.run('doctor')
  const found = parseObjects(out).find(({ check }) => check === 'contents')
  expect([code, found]).toMatchObject([1, { state: 'failed', hint: expect.any(String) }])
  expect(found?.['message']).toMatch(why)
})

test('a store whose file was cut cannot be opened', async () => {
  truncateSync(user.store, 20 * pageSize)
  const { code, out } = await user.run('doctor')
  expect([code, out]).toEqual([1, expect.stringContaining('plants.db is damaged, or its disk')])
})
