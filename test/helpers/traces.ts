import { version } from '../../package.json'
import { settingNames } from '../../src/config/setting-table.js'
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

/** What --verbose shows after the settings; times are N, the address is URL, and the idempotency key KEY. */
export function wire(err: string, url: string): string[] {
  const general = err.replaceAll(url, 'URL').replaceAll(/\d+\.\d ms/g, 'N ms')
  return general
    .replaceAll(/(?<=idempotency-key: )[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/g, 'KEY')
    .trimEnd()
    .split('\n')
    .slice(1 + settingNames.length + 1) // the file, the settings, where the token is from
}

const headers = [
  '> accept: application/json',
  '> authorization: Bearer ***',
  '> content-type: application/json',
  '> idempotency-key: KEY',
  `> user-agent: plants/${version}`,
  '> 22 bytes',
]
export const connected = '* connected after N ms'
/** What it shows of a create, and of its answer. */
export const request = ['> POST URL/plants', ...headers]
export const answer = [
  '< 200',
  '< content-length: 15',
  '< content-type: application/json',
  '* first byte after N ms',
  '< 15 bytes',
  '* whole response after N ms',
]
