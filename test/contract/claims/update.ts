import { expect, test } from 'vitest'
import type { Store } from '../../../src/stores/store.js'
import { createPlant, gather } from '../../helpers/sandbox/store.js'
import {
  buildFern,
  expectOutcomes,
  fern,
  ivy,
  moss,
  type OpenEmpty,
  type OutcomeRow,
  toCreate,
  toUpdate,
  wetMoss,
  writeForStatuses,
  writeModes,
} from './fixtures.js'

export function describeUpdates(open: OpenEmpty<Store>): void {
  test('two concurrent updates of one plant are both stored', async () => {
    const { store, readBack } = await open()
    await createPlant(store, moss)
    const changes = [toUpdate({ id: 2n, name: 'Fern' }), toUpdate({ id: 2n, tag: 'wet' })]
    const statuses = await Promise.all(changes.map((change) => writeForStatuses(store, change)))
    expect(statuses).toEqual([['updated'], ['updated']])
    expect(await readBack(2n)).toStrictEqual({ ...wetMoss, name: 'Fern' })
  })

  test.each(writeModes)('a plant has at most 1 MiB as JSON, $mode', async ({ write }) => {
    const { store } = await open()
    const largest = { id: 1n, name: '\u0001', tag: 'x'.repeat(1_048_576 - 33) }
    const table: OutcomeRow[] = [
      { change: toCreate(moss), outcome: 'created' },
      { change: toCreate(largest), outcome: 'created' },
      { change: toCreate({ ...largest, id: 10n }), outcome: 413 },
      { change: toCreate(ivy), outcome: 'created' },
      { change: toUpdate({ id: 1n, name: '\u0001x' }), outcome: 413 },
      { change: toUpdate({ ...largest, id: 11n }, { ifMissing: 'create' }), outcome: 413 },
      { change: toUpdate({ id: 1n, name: 'Fern' }), outcome: 'updated' },
    ]
    await expectOutcomes(table, (changes) => write(store, changes))
    const plants = [{ ...largest, name: 'Fern' }, moss, ivy]
    expect(await gather(store.read())).toStrictEqual(plants)
  })

  test.each(writeModes)(
    'an update with an expected name is rejected if the plant has been renamed, $mode',
    async ({ write }) => {
      const { store } = await open()
      for (const plant of [fern, moss, ivy]) await createPlant(store, plant, `key-${plant.id}`)
      const orCreate = (expectedName: string) => ({ ifMissing: 'create', expectedName }) as const
      const table: OutcomeRow[] = [
        { change: toUpdate({ ...fern, tag: 'wet' }, orCreate('Fern')), outcome: 'updated' },
        { change: toUpdate({ ...wetMoss, name: 'Fern' }, orCreate('Fern')), outcome: 409 },
        { change: toUpdate(ivy, orCreate('Ivy')), outcome: 'updated' },
        { change: toUpdate(buildFern(4n), orCreate('Fern')), outcome: 'created' },
        { change: toUpdate({ ...wetMoss, id: 4n }, orCreate('Moss')), outcome: 409 },
        {
          change: toUpdate({ ...buildFern(5n), name: 'FERN' }, orCreate('Fern')),
          outcome: 'created',
        },
        // After a lost answer, the update is sent again.
        {
          change: toUpdate({ ...buildFern(5n), name: 'FERN' }, orCreate('Fern')),
          outcome: 'updated',
        },
      ]
      await expectOutcomes(table, (changes) => write(store, changes))
      const renamed = { ...buildFern(5n), name: 'FERN' }
      const plants = [{ ...fern, tag: 'wet' }, moss, ivy, buildFern(4n), renamed]
      expect(await gather(store.read())).toStrictEqual(plants)
      // The update to what Ivy was already has left it its key.
      expect(await writeForStatuses(store, toCreate(ivy, { key: 'key-3' }))).toEqual(['created'])
    },
  )
}
