import { PlantsError } from '../../errors.js'
import type { StoredPlant } from '../../plant/plant.js'
import { parseUrl } from '../../platform/urls.js'
import { formatQuery, pageRows, type ReadQuery } from '../query.js'
import { compare, matches } from '../select.js'
import type { ExpectedValue } from './http-client.js'
import { parseStoredPlant, readJson } from './plant-request.js'
import type { ServiceClient } from './service-client.js'

export async function* fetchPages(
  client: ServiceClient,
  query: ReadQuery,
): AsyncGenerator<StoredPlant[]> {
  let { limit: left = Infinity } = query
  // Only two plants show whether a service ignores the order, so they are read before one is used.
  const minPlants = query.desc ? 2 : 1
  const limit = Math.min(Math.max(left, minPlants), pageRows)
  let path: string | undefined = `/plants?${formatQuery({ ...query, limit })}`
  let plants: StoredPlant[] = []
  let previousPlant: StoredPlant | undefined
  while (path !== undefined && left > 0) {
    const page: Page = await client.send({ method: 'GET', path, expectedValue: expectedPage })
    for (const plant of page.plants) {
      assertMatchesQuery(client, plant, query, previousPlant)
      previousPlant = plant
    }
    if (page.plants.length === 0 && page.nextPath !== undefined)
      throw createForeignServiceError(client, 'answered an empty page with a link to the next one')
    plants = plants.concat(page.plants)
    path = page.nextPath
    if (plants.length < minPlants && path !== undefined) continue
    if (plants.length > 0) yield plants.slice(0, left)
    left -= plants.length
    plants = []
  }
}

/**
 * Rejects a plant that the query does not select, because the service ignores a parameter.
 * Otherwise `plants delete` could delete such a plant.
 */
function assertMatchesQuery(
  client: ServiceClient,
  plant: StoredPlant,
  query: ReadQuery,
  previousPlant: StoredPlant | undefined,
): void {
  if (!matches(plant, query)) {
    const parameter = findIgnoredParameter(plant, query)
    const problem = `ignores the parameter ${parameter}: it answered plant ${plant.id}`
    throw createForeignServiceError(client, problem, 'List all plants, and select from the list')
  }
  if (!previousPlant || compare(query)(previousPlant, plant) < 0) return
  const problem = `ignores the order of a list: it answered plant ${plant.id} after plant`
  throw createForeignServiceError(client, `${problem} ${previousPlant.id}`)
}

function findIgnoredParameter(
  plant: StoredPlant,
  { after, desc, tag, search }: ReadQuery,
): string | undefined {
  const parts = {
    after: { after, desc },
    [tag === false ? 'noTag' : 'tag']: { tag },
    search: { search },
  }
  return Object.entries(parts).find(([, part]) => !matches(plant, part))?.[0]
}

interface Page {
  plants: StoredPlant[]
  nextPath: string | undefined
}

const expectedPage: ExpectedValue<Page> = {
  noun: 'list of plants',
  // A page of `plants serve` has at most a million characters, which JSON may escape by six bytes
  // each, and a plant of 1 MiB.
  maxBytes: 8 * 1_048_576,
  read(response) {
    const list = readJson(response)
    const plants = Array.isArray(list) ? list.map((item) => parseStoredPlant(item)) : undefined
    const nextPath = findNextPath(String(response.headers['link'] ?? ''))
    return plants?.every((plant) => plant !== undefined) ? { plants, nextPath } : undefined
  },
}

/**
 * Returns the path of the next page, by a Link header with `rel="next"` (RFC 8288). Only the query
 * is taken from the link, because the token must be sent to no other address.
 */
function findNextPath(link: string): string | undefined {
  const target = /<(?<target>[^<>]*)>[^,<]*;\s*rel\s*=\s*"?next\b/i.exec(link)?.groups?.['target']
  if (target === undefined) return undefined
  return `/plants${parseUrl(target, 'http://localhost')?.search ?? ''}`
}

function createForeignServiceError(
  { service }: ServiceClient,
  problem: string,
  hint = 'Check that the address is that of a Plant Store',
): PlantsError {
  return new PlantsError('accessDenied', `${service.address.name} ${problem}`, { hint })
}
