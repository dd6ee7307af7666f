import { expect, test } from 'vitest'
import type { NewPlant } from '../../../src/plant/plant.js'
import { newPlant } from '../../helpers/any-plant.js'
import { fc } from '../../helpers/fast-check.js'
import { rounds } from '../../helpers/rounds.js'
import type { Result } from '../../helpers/run.js'
import { printed, World } from '../../helpers/world.js'

/** The ways into a store: each creates the plant. */
const doors: Record<string, (plant: NewPlant, user: World) => Promise<Result>> = {
  flags: ({ id, name, tag }, user) =>
    user.run(['create', `--id=${id}`, `--name=${name}`, ...(tag === undefined ? [] : [`--tag=${tag}`])]),
  file: (plant, user) => user.run(['create', '--file', user.write('plant.json', jsonOf(plant))]),
  stdin: (plant, user) => user.run('create', { stdin: jsonOf(plant) }),
}

test.each(Object.entries(doors))(
  'any plant created by %s comes out as it was',
  { timeout: rounds(60_000) },
  async (door, create) => {
    const user = new World()
    const trip = async ({ id, ...plant }: NewPlant) => {
      const isWarned = door === 'flags' && Object.values(plant).includes('')
      try {
        const answers = [await create({ id, ...plant }, user), await user.run(['get', String(id)])]
        expect(answers.map(({ code, out, err }) => ({ code, err, plant: readPlant(out) }))).toEqual([
          { code: 0, err: isWarned ? expect.stringContaining('is empty: the plant gets') : '', plant },
          { code: 0, err: '', plant: { id, ...plant } },
        ])
      } finally {
        await user.run(['delete', String(id), '--yes'])
      }
    }
    await fc.assert(fc.asyncProperty(newPlant(), trip), { numRuns: rounds(30) })
    expect(await user.run('list')).toEqual(printed(''))
  },
)

// What is no plant is rejected by the contract: conformance/service/verdicts.test.ts.

function jsonOf({ id, ...plant }: NewPlant): string {
  return JSON.stringify(plant).replace(/^\{/, `{"id":${id},`)
}

/** A line of JSON with its id, if it has one, exact. */
function readPlant(line: string): Partial<NewPlant> {
  const id = /^\{"id":(-?\d+),/.exec(line)?.[1]
  return { ...JSON.parse(line), ...(id === undefined ? {} : { id: BigInt(id) }) }
}
