import { expect, test } from 'vitest'
import { PlantsError } from '../../../src/errors.js'
import { World } from '../../helpers/world.js'

// What the command prints is in transcripts/plants.txt, and how each kind of store counts in
// conformance/stores.

async function createUser(names: readonly string[]): Promise<World> {
  const user = new World()
  const plants = names.map((name, index) => ({ id: index + 1, name, tag: 'wet' }))
  expect((await user.run('import', { stdin: JSON.stringify(plants) })).code).toBe(0)
  return user
}

test('a count of each text ends at an interruption', async () => {
  const user = await createUser(['Fern'])
  const signal = AbortSignal.abort(new PlantsError('interrupted', 'Interrupted'))
  const result = await user.run('count --by tag', { signal })
  expect(result).toEqual({ code: 130, out: '', err: 'plants: Interrupted\n' })
})
