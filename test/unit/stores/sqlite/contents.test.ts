import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { must } from '../../../../src/platform/errors.js'
import { Connection } from '../../../../src/stores/sqlite/connection.js'
import { readPlants } from '../../../../src/stores/sqlite/read.js'
import { SqliteStore } from '../../../../src/stores/sqlite/store.js'
import { fill } from '../../../helpers/crafted-files.js'
import { DatabaseSync } from '../../../helpers/database.js'
import { findingsOf } from '../../../helpers/doctor.js'
import { runPlants } from '../../../helpers/run.js'
import { query } from '../../../helpers/sqlite-file.js'
import { endConnections, fileAddress, gathered, openOptions } from '../../../helpers/store.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

let path: string

/** 10,000 plants, with the ids from 0 to 9999. */
beforeEach(async () => {
  path = join(temporaryFolder(), 'garden.db')
  const store = await SqliteStore.open(fileAddress(path), openOptions())
  await store.write([
    { type: 'create', plant: { id: 0n, name: 'Fern', tag: 'shade' }, key: 'key-of-fern' },
  ])
  await store.close()
  fill(path, 9999)
  await endConnections()
})

/** Runs statements on a table that does not say what may be in its columns, as a STRICT table does. */
function loosely(table: string, sql: string): void {
  const [{ sql: strict } = {}] = query(
    path,
    `SELECT sql FROM sqlite_schema WHERE name = '${table}'`,
  )
  const db = new DatabaseSync(path, { defensive: false })
  const pretend = (text: string) =>
    db.exec(`PRAGMA writable_schema=1;
      UPDATE sqlite_schema SET sql = '${text}' WHERE name = '${table}';
      PRAGMA writable_schema=RESET`)
  pretend(
    String(strict)
      .replace(' STRICT', '')
      .replaceAll(/ TEXT| NOT NULL/g, ''),
  )
  db.exec(sql)
  pretend(String(strict))
  db.close()
}

async function overwrite(change: (bytes: Buffer) => void): Promise<void> {
  await endConnections() // the file is complete
  const bytes = readFileSync(path)
  change(bytes)
  writeFileSync(path, bytes)
}

const pageSize = 4096

/** Overwrites a part of the root page of a table or an index. */
function overwriteRoot(name: string, change: (page: Buffer) => void): Promise<void> {
  const [{ rootpage } = {}] = query(
    path,
    `SELECT rootpage FROM sqlite_schema WHERE name = '${name}'`,
  )
  return overwrite((bytes) =>
    change(bytes.subarray((Number(rootpage) - 1) * pageSize, Number(rootpage) * pageSize)),
  )
}

const malformed = /^Tree 2 page 21: btreeInitPage\(\) returns error code 11$/

test('a file that is cut cannot be opened', async () => {
  truncateSync(path, 20 * pageSize)
  const { code, out } = await runPlants(['doctor', '--quick', '--store', path])
  expect([code, out]).toEqual([1, expect.stringContaining('garden.db is damaged: ')])
})

describe('damage fails the check of the contents:', () => {
  test.each<[what: string, damage: () => unknown, why: RegExp]>([
    [
      'a page in the middle',
      () => overwrite((bytes) => bytes.fill(0xff, 20 * pageSize, 21 * pageSize)),
      malformed,
    ],
    [
      'a blob',
      () => loosely('plants', "UPDATE plants SET name = x'00ff' WHERE id = 9998"),
      /^non-TEXT value in plants.name$/,
    ],
    [
      'no name',
      () => loosely('plants', 'UPDATE plants SET name = NULL WHERE id = 1'),
      /^NULL value in plants.name$/,
    ],
    [
      'an id out of order',
      // The rows below the first child of the root have ids up to that of its cell.
      () => overwriteRoot('plants', (page) => page.writeUInt8(1, page.readUInt16BE(12) + 4)),
      /^Tree 2 page \d+ cell \d+: Rowid \d+ out of order$/,
    ],
    [
      'a key that is not in its index',
      () =>
        overwriteRoot('plants_idempotency_key', (page) =>
          page.write('key-of-moss', page.indexOf('key-of-fern')),
        ),
      /^row 1 missing from index plants_idempotency_key$/,
    ],
    [
      'a token whose note is a number',
      () =>
        loosely(
          'tokens',
          "INSERT INTO tokens (digest, note, created_at, rights) VALUES (x'00', 7, 1, 'read')",
        ),
      /^non-TEXT value in tokens.note$/,
    ],
  ])('%s', async (_, damage, why) => {
    await damage()
    await endConnections()
    const { code, out } = await runPlants(['doctor', '--store', path])
    const {
      state,
      message = '',
      hint,
    } = findingsOf(out).find((finding) => finding.check === 'contents') ?? {}
    const [place, reason] = message.split(' is damaged: ')
    expect([code, state, place, reason]).toEqual([
      1,
      'failed',
      `The store ${path}`,
      expect.stringMatching(why),
    ])
    expect(hint).toEqual(expect.any(String))
    expect((await runPlants(['doctor', '--quick', '--store', path])).code).toBe(0)
  })
})

test('a step of a list that finds the store in use is read again', async () => {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA journal_mode = DELETE') // as a backup has it: a writer locks out readers
  db.close()
  const connection = must(await Connection.open(path, openOptions()))
  const writer = new DatabaseSync(path)
  let locks = 0
  const { prepare } = connection
  const prepareInUse = (sql: string) => {
    if (sql.startsWith('SELECT id, name, tag') && locks === 0) {
      locks += 1
      writer.exec('BEGIN EXCLUSIVE')
      setImmediate(() => writer.exec('ROLLBACK'))
    }
    return prepare(sql)
  }
  Object.assign(connection, { prepare: prepareInUse })
  const found = await gathered(readPlants(connection, {}))
  connection.close()
  writer.close()
  expect([locks, found.length]).toEqual([1, 10_000])
})
