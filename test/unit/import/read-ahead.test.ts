import { expect, test } from 'vitest'
import { ReadAhead } from '../../../src/import/read-ahead.js'

const failure = new Error('The second item cannot be read')

async function* failSecond(): AsyncGenerator<number> {
  yield 1
  throw failure
}

test('an item that could not be read ahead throws when it is requested', async () => {
  const items = new ReadAhead(failSecond())
  expect(await items.read()).toBe(1)
  items.prepare()
  items.prepare()
  await new Promise(setImmediate)
  await expect(items.read()).rejects.toBe(failure)
  expect(await items.read()).toBeUndefined()
})

test('closing a reader does not wait for an item that never arrives', async () => {
  const never = new Promise<void>(() => {})
  async function* wait(): AsyncGenerator<number> {
    await never
    yield 1
  }
  const items = new ReadAhead(wait())
  items.prepare()
  expect(await items.end()).toBeUndefined()
})
