import { token } from './http-store.js'
import { type Result, type RunOptions, runPlants } from './run.js'

/** Creates a plant with --verbose. */
export function create(
  store: string,
  flags: string[] = [],
  world: RunOptions = {},
): Promise<Result> {
  const create = 'create --id 1 --name Fern --verbose --store'.split(' ')
  return runPlants([...create, store, ...flags], {
    ...world,
    env: { PLANTS_TOKEN: token, ...world.env },
  })
}

/** What --verbose shows after the source of the token; the address is URL. */
export function wire(err: string, url: string): string[] {
  const general = err.replaceAll(url, 'URL')
  return general.trimEnd().split('\n').slice(1)
}

/** What it shows of a create, and of its response. */
export const exchanged = ['> POST URL/plants', '< 200, 15 bytes']
