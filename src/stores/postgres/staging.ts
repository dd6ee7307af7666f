import { PlantsError } from '../../platform/errors.js'
import type { NewPlant } from '../../plant/plant.js'
import { PostgresStore } from './store.js'
import { Staging } from '../sqlite/staging.js'
import { type CreateManyOptions, idTaken, type ManyStore, type OpenOptions, Outcome, type PostgresAddress } from '../store.js'

/**
 * Takes plants in beside the database, in a table on the disk of this machine, and holds them against what is there.
 *
 * @param kind creates them all at once in the end, or none ever
 */
export async function stage(address: PostgresAddress, options: OpenOptions, kind: 'check' | 'atomic'): Promise<ManyStore> {
  const store = kind === 'atomic' ? await PostgresStore.open(address, options) : await PostgresStore.openExisting(address, options)
  if (!store) return { store: Staging.alone(), checkpoints: undefined }
  let policy: Policy = 'error'
  const staged = Staging.alone(async (plants, asked) => {
    policy = asked
    const there = await store.getMany(plants.map(({ id }) => id))
    return (plant) => outcomeOf(plant, there.get(plant.id), asked)
  })
  const close = async () => {
    await staged.close()
    await store.close()
  }
  const taken = { createMany: staged.createMany.bind(staged), close }
  if (kind === 'check') return { store: taken, checkpoints: undefined }
  const judge = (plant: NewPlant, old: NewPlant) => {
    if (outcomeOf(plant, old, policy) !== Outcome.taken) return
    throw new PlantsError('conflict', `${idTaken(plant.id).message} since a moment ago, so nothing was created`, { hint: 'Run it again' })
  }
  return { store: taken, checkpoints: undefined, commit: () => store.createAll(() => staged.pages(), judge) }
}

type Policy = CreateManyOptions['ifExists']

function outcomeOf({ name, tag }: NewPlant, old: NewPlant | undefined, policy: Policy): number | undefined {
  if (!old) return undefined
  const isSame = policy === 'same' && old.name === name && old.tag === tag
  return policy === 'skip' || isSame ? Outcome.skipped : Outcome.taken
}
