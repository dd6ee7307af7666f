import { equalPlants, type NewPlant, type Plant, plantOf } from '../../plant/plant.js'
import { expectStored, requestTo, requestToRead } from './plant-request.js'
import type { Requests, Result } from './retry.js'

type Changed = Result<NewPlant | 404 | 412>

/**
 * With `only`, changes the plant only if it still equals that one, by its entity tag where the service has them. The
 * value is 404 without such a plant, and 412 if it has changed.
 */
export async function changePlant(
  requests: Requests,
  change: { method: 'DELETE'; id: bigint } | { method: 'PUT'; id: bigint; body: Plant },
  only: NewPlant | undefined,
): Promise<Changed> {
  const { access, etags } = requests.client
  const { id } = change
  let current = only
  if (only && !etags.has(only)) {
    const read = await requests.send(requestToRead(requests.client, id))
    if (read.outcome !== 'done') return read
    if (read.value === 404 || !equalPlants(read.value, only)) return { ...read, value: 412 }
    current = read.value
  }
  const expected = expectStored(id, [404, 412], etags)
  const ifMatch = current && etags.get(current)
  return requests.send(requestTo(access, { ...change, path: `/plants/${id}`, expected, ifMatch }))
}

export async function replacePlant(requests: Requests, plant: NewPlant, only?: NewPlant): Promise<Changed> {
  const { id } = plant
  const result = await changePlant(requests, { method: 'PUT', id, body: plantOf(plant) }, only)
  if (result.outcome !== 'done' || result.value !== 412 || !result.lost) return result
  // An earlier try whose response was lost may have replaced the plant, which changes its entity tag.
  const now = await requests.send(requestToRead(requests.client, id))
  if (now.outcome !== 'done') return { ...now, lost: result.lost }
  return now.value === 404 || !equalPlants(now.value, plant) ? result : now
}
