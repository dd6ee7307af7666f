import { statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { SqliteStore } from '../../../../src/stores/sqlite/store.js'
import { closedAfterTest, fileAddress, openOptions } from '../../../helpers/store.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

const limit = 67_108_864

test('the log grows while a snapshot is read, and is truncated when it is emptied', async () => {
  const path = `${temporaryFolder()}/plants.db`
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  const logSize = () => statSync(`${path}-wal`).size
  let id = 0n
  const write = (length: number) => {
    id += 1n
    return store.write([
      { type: 'create', plant: { id, name: 'F'.repeat(length) }, key: undefined },
    ])
  }
  await write(1)
  const snapshot = store.read()[Symbol.asyncIterator]()
  await snapshot.next()
  while (logSize() <= limit) await write(8_000_000)
  await snapshot.return?.(undefined)
  await write(1)
  await write(1)
  expect(logSize()).toBeLessThanOrEqual(limit)
})
