import { expect, test } from 'vitest'
import type { NewPlant } from '../../../src/plant/plant.js'
import type { DirectStore, Transaction } from '../../../src/stores/store.js'
import { createPlant, deletePlant, gather, toCreates } from '../../helpers/sandbox/store.js'
import {
  buildFern,
  buildPlants,
  difficultStrings,
  fern,
  ivy,
  moss,
  type OpenEmpty,
  otherFern,
  readStatus,
  toCreate,
  toDelete,
  toUpdate,
  wetMoss,
  writeForStatuses,
} from './fixtures.js'

export function describeTransactions(open: OpenEmpty<DirectStore>): void {
  describeSnapshots(open)
  describeCommits(open)
}

/** Reads the first page of a store. The function that it returns reads the rest. */
async function beginRead(store: DirectStore): Promise<() => Promise<NewPlant[]>> {
  const reader = store.read()[Symbol.asyncIterator]()
  const pages = [await reader.next()]
  return async () => {
    while (pages.at(-1)?.done === false) pages.push(await reader.next())
    return pages.flatMap(({ value }): NewPlant[] => value ?? [])
  }
}

function describeSnapshots(open: OpenEmpty<DirectStore>): void {
  test('each reader sees one snapshot while others read and write', async () => {
    const { store } = await open()
    // Names of this length make several pages.
    const plants = buildPlants(1500, (index) => ({
      name: `${difficultStrings[index % difficultStrings.length]} `.repeat(100),
    }))
    await store.write(toCreates(plants))
    const finishBefore = await beginRead(store)
    const last = buildFern(1500n)
    await createPlant(store, last)
    const finishAfter = await beginRead(store)
    await deletePlant(store, 1500n)
    expect([await store.count(), await store.get([1500n])]).toEqual([1500n, new Map()])
    const created = createPlant(store, buildFern(6000n))
    const [before, after] = await Promise.all([finishBefore(), finishAfter(), created])
    expect(before).toStrictEqual(plants)
    expect(after).toStrictEqual([...plants, last])
  })
}

function describeCommits(open: OpenEmpty<DirectStore>): void {
  const statuses = ['created', 'created', 409, 'updated', 'deleted']

  /** Creates Ivy, and gives what creates Fern and Moss, then wets Moss and deletes Ivy. */
  async function openWithIvy() {
    const { store, readBack } = await open()
    await createPlant(store, ivy)
    const work = async ({ write }: Transaction) => {
      const creates = await write(toCreates([fern, moss]))
      expect(await readBack(1n)).toBeUndefined()
      const changes = await write([toCreate(fern), toUpdate({ id: 2n, tag: 'wet' }), toDelete(3n)])
      return [...creates, ...changes].map(readStatus)
    }
    return { store, work }
  }

  async function expectOnlyIvy(store: DirectStore): Promise<void> {
    expect(await gather(store.read())).toStrictEqual([ivy])
    expect(await writeForStatuses(store, toCreate(fern))).toEqual(['created'])
  }

  test('a transaction that should commit stores its changes', async () => {
    const { store, work } = await openWithIvy()
    const asked: unknown[] = []
    const shouldCommit = (result: unknown) => {
      asked.push(result)
      return true
    }
    expect(await store.transaction(work, { shouldCommit })).toEqual(statuses)
    expect(asked).toEqual([statuses])
    expect(await gather(store.read())).toStrictEqual([fern, wetMoss])
    expect(await writeForStatuses(store, toCreate(fern))).toEqual([409])
  })

  test('a transaction that should not commit reports its outcomes and stores nothing', async () => {
    const { store, work } = await openWithIvy()
    const asked: unknown[] = []
    const shouldCommit = (result: unknown) => {
      asked.push(result)
      return false
    }
    expect(await store.transaction(work, { shouldCommit })).toEqual(statuses)
    expect(asked).toEqual([statuses])
    await expectOnlyIvy(store)
  })

  test('a transaction that throws stores nothing, without the question whether to commit', async () => {
    const { store, work } = await openWithIvy()
    const asked: unknown[] = []
    const fail = async (transaction: Transaction) => {
      await work(transaction)
      throw new Error('failed')
    }
    const shouldCommit = (result: unknown) => {
      asked.push(result)
      return true
    }
    await expect(store.transaction(fail, { shouldCommit })).rejects.toThrow('failed')
    expect(asked).toEqual([])
    await expectOnlyIvy(store)
  })

  test('a create waits for a transaction, and stays stored after its rollback', async () => {
    const { store } = await open()
    const ends: string[] = []
    let create: Promise<unknown> = Promise.resolve()
    const failed = store.transaction(async ({ write }) => {
      await write([toCreate(fern)])
      create = createPlant(store, otherFern).then(() => ends.push('created'))
      for (const start of [0, 1000, 2000])
        await write(toCreates(buildPlants(1000, (index) => ({ id: BigInt(10 + start + index) }))))
      ends.push('rejected')
      throw new Error('rejected')
    })
    // The transaction may be reported later than the create: each has its own connection.
    await expect(failed).rejects.toThrow('rejected')
    await create
    expect(ends).toEqual(['rejected', 'created'])
    expect(await gather(store.read())).toStrictEqual([otherFern])
  })
}
