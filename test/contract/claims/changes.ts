import { expect, test } from 'vitest'
import { assertDefined } from '../../../src/errors.js'
import type { NewPlant } from '../../../src/plant/plant.js'
import type { Store } from '../../../src/stores/store.js'
import { fc } from '../../helpers/expect/arbitraries.js'
import { scaleRounds, seed } from '../../helpers/sandbox/rounds.js'
import { createPlant, gather, toCreates } from '../../helpers/sandbox/store.js'
import { anyChanges, Model } from '../model.js'
import {
  buildFern,
  buildPlants,
  buildUpdatedOutcome,
  expectOutcomes,
  fern,
  ivy,
  moss,
  type OpenEmpty,
  type OutcomeRow,
  otherFern,
  readStatus,
  toCreate,
  toDelete,
  toUpdate,
  writeForStatuses,
  writeModes,
} from './fixtures.js'

/** A change, its outcome, and the plant that is stored then. */
interface Case extends OutcomeRow {
  stored?: NewPlant
}

/** The kinds of changes that a writer may make to the plant that it has created before. */
function buildCase(store: Store, plant: NewPlant, kind: number): Case {
  const { id } = plant
  const mossWithId = { ...moss, id }
  const tagged = { ...plant, tag: 'x' }
  const cases: Case[] = [
    {
      change: toUpdate(mossWithId),
      outcome: buildUpdatedOutcome(store, mossWithId, plant),
      stored: mossWithId,
    },
    {
      change: toUpdate({ id, tag: 'x' }),
      outcome: buildUpdatedOutcome(store, tagged, plant),
      stored: tagged,
    },
    {
      change: toUpdate({ ...mossWithId, tag: null }),
      outcome: buildUpdatedOutcome(store, mossWithId, plant),
      stored: mossWithId,
    },
    { change: toUpdate({ ...moss, id: id + 1000n }), outcome: 404, stored: plant },
    { change: toDelete(id), outcome: { type: 'deleted', plant } },
    { change: toCreate(plant), outcome: 409, stored: plant },
  ]
  return assertDefined(cases[kind % cases.length])
}

export function describeChanges(open: OpenEmpty<Store>): void {
  test('each of many writers at the same time gets its own outcome', async () => {
    const { store } = await open()
    const plants = buildPlants(200)
    await Promise.all(plants.map((plant) => createPlant(store, plant)))
    const cases = plants.map((plant, index) => buildCase(store, plant, index))
    const table = cases.map(({ change, outcome }) => ({ change, outcome }))
    await expectOutcomes(table, async (changes) => {
      const outcomes = await Promise.all(changes.map((change) => store.write([change])))
      return outcomes.flat()
    })
    const stored = cases.flatMap((aCase) => aCase.stored ?? [])
    expect(await gather(store.read())).toStrictEqual(stored)
  })

  test.each(writeModes)(
    'changes of the same few plants are applied in order, and remove the keys of what they change, $mode',
    async ({ write }) => {
      const { store } = await open()
      const untouched = { ...ivy, id: 7n }
      const ash = buildFern(8n)
      const plants = [moss, untouched, ash]
      for (const plant of plants) await createPlant(store, plant, `key-${plant.id}`)
      const elm = { ...ash, name: 'Elm' }
      const tall = { id: 5n, name: 'Tall' }
      const first = { ...fern, name: 'First' }
      const untaggedFirst = { id: 1n, name: 'First' }
      const tree = { ...moss, name: 'Tree' }
      const shrub = { ...moss, name: 'Shrub' }
      const oak = { ...ivy, name: 'Oak' }
      const orCreate = { ifMissing: 'create' } as const
      const table: OutcomeRow[] = [
        { change: toUpdate(fern, orCreate), outcome: { type: 'created', plant: fern } },
        { change: toUpdate({ id: 5n, tag: 'tall' }, orCreate), outcome: 422 },
        {
          change: toUpdate({ ...tall, tag: null }, orCreate),
          outcome: { type: 'created', plant: tall },
        },
        {
          change: toUpdate({ id: 7n }, orCreate),
          outcome: buildUpdatedOutcome(store, untouched, untouched),
        },
        { change: toUpdate(elm), outcome: buildUpdatedOutcome(store, elm, ash) },
        { change: toUpdate(tree), outcome: buildUpdatedOutcome(store, tree, moss) },
        {
          change: toUpdate({ id: 1n, name: 'First' }),
          outcome: buildUpdatedOutcome(store, first, fern),
        },
        { change: toUpdate(moss), outcome: buildUpdatedOutcome(store, moss, tree) },
        {
          change: toUpdate({ id: 1n, tag: null }),
          outcome: buildUpdatedOutcome(store, untaggedFirst, first),
        },
        { change: toCreate(otherFern), outcome: 409 },
        { change: toUpdate({ id: 9n, name: 'Nobody' }), outcome: 404 },
        { change: toDelete(3n), outcome: 404 },
        { change: toCreate(ivy), outcome: { type: 'created', plant: ivy } },
        { change: toDelete(3n), outcome: { type: 'deleted', plant: ivy } },
        { change: toCreate(oak), outcome: { type: 'created', plant: oak } },
        { change: toDelete(2n), outcome: { type: 'deleted', plant: moss } },
        { change: toCreate(shrub), outcome: { type: 'created', plant: shrub } },
      ]
      await expectOutcomes(table, (changes) => write(store, changes))
      const stored = [untaggedFirst, shrub, oak, tall, untouched, elm]
      expect(await gather(store.read())).toStrictEqual(stored)
      const creates = [shrub, elm, untouched].map((plant) =>
        toCreate(plant, { key: `key-${plant.id}` }),
      )
      expect(await writeForStatuses(store, ...creates)).toEqual([409, 409, 'created'])
    },
  )

  test.each(writeModes)(
    'random changes have the same outcomes as in a simple model, $mode',
    async ({ write }) => {
      const { store } = await open()
      const model = new Model({ isService: store.transaction === undefined })
      for (const changes of fc.sample(anyChanges(), { numRuns: scaleRounds(10), seed })) {
        const expected = changes.map((change) => model.apply(change))
        const outcomes = await write(store, changes)
        expect(outcomes.map(readStatus), `seed ${seed}`).toEqual(expected)
      }
      expect(await gather(store.read())).toStrictEqual(model.plants)
    },
  )

  test('a write whose signal is already aborted changes nothing', async () => {
    const { store } = await open()
    await store.write([toCreate(fern)], { signal: new AbortController().signal })
    const signal = AbortSignal.abort(new Error('stopped'))
    const written = store.write(toCreates([ivy, moss]), { signal })
    await expect(written).rejects.toThrow('stopped')
    expect(await gather(store.read())).toStrictEqual([fern])
  })
}
