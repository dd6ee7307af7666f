import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { CommandContext } from '../../../src/cli/command-context.js'
import { accessTo } from '../../../src/cli/store-access.js'
import type { Change, Outcome } from '../../../src/stores/common/change.js'
import { HttpStore } from '../../../src/stores/http/http-store.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { PlantService } from '../../helpers/plant-service.js'
import { ioOf } from '../../helpers/run.js'
import { closedAfterTest, createPlant } from '../../helpers/store.js'
import { Team } from '../../helpers/users.js'
import { isWindows } from '../../helpers/world.js'

/** Opens a store whose token command prints another token each time; `letPass` moves its runtime by minutes. */
async function openTeam(
  address: string,
  { env = {}, command = 'echo run >> runs; echo "s3cret-$(wc -l < runs | tr -d " ")"' } = {},
) {
  const team = new Team()
  team.takes(team.script(command), address)
  let past = 0
  const world = ioOf({ env: { ...team.env, ...env } })
  const io = { ...world, now: () => performance.now() + past * 60_000 }
  const context = await CommandContext.from({ store: 'team' }, io)
  const { address: service } = context
  if (service.scheme !== 'http') throw new Error('Only services are expected here')
  const access = await accessTo(service, context)
  const options = { access, timeout: context.timeout, runtime: io }
  const store = closedAfterTest(new HttpStore(service, options))
  const letPass = (minutes: number) => {
    past += minutes
  }
  return { store, secrets: io.secrets, letPass }
}

/** Creates plants as an import does, and gives the outcomes that there are. */
async function create(store: HttpStore, first: number, count: number): Promise<Set<string>> {
  const changes = Array.from({ length: count }, (_, index): Change => {
    const id = BigInt(first + index)
    return { type: 'create', plant: { id, name: 'Fern' }, key: `import-${id}` }
  })
  const told = (outcome: Outcome) =>
    'error' in outcome ? `${outcome.type}: ${outcome.error.message}` : outcome.type
  return new Set((await store.write(changes)).map(told))
}

const message = 'This token has expired'
const body = { error: 401, message }

test.skipIf(isWindows).each([401, 1001])(
  'a token that expires during an import is renewed by its command, at most once a minute: error %i (needs sh)',
  async (error) => {
    let valid = 's3cret-1'
    const service = await PlantService.listen({
      deed: ({ authorization }) =>
        authorization === `Bearer ${valid}` ? undefined : { status: 401, body: { error, message } },
    })
    const { store, secrets, letPass } = await openTeam(service.url)
    await create(store, 0, 50)
    valid = 's3cret-2'
    expect(await create(store, 50, 50)).toEqual(new Set(['created']))
    expect(service.made.size).toBe(100)
    expect(secrets).toEqual(new Set(['s3cret-1', 's3cret-2']))
    valid = 's3cret-3'
    expect(await create(store, 100, 50)).toEqual(new Set([`unsent: ${message}`]))
    letPass(2)
    await create(store, 100, 50)
    expect(service.made.size).toBe(150)
  },
)

const openapi = json(200, {
  paths: { '/plants': { get: {}, post: {} }, '/plants/{id}': { get: {} } },
})
const expired = json(401, body)
const fern = { id: 1, name: 'Fern' }
const stored = { id: 1n, name: 'Fern' }
const pages = async (store: HttpStore) =>
  (await Readable.from(store.read({ limit: 100, inPages: true })).toArray()).flat()
const first = json(200, [fern], { Link: '</plants?after=1>; rel="next"' })
const second = json(200, [{ id: 2, name: 'Moss' }])

test
  .skipIf(isWindows)
  .each<[string, (store: HttpStore) => Promise<unknown>, unknown, string, Buffer[]]>([
    [
      'get',
      async (store) => (await store.get([1n])).get(1n),
      stored,
      'GET /plants/1',
      [expired, json(200, fern)],
    ],
    [
      'list, between two pages',
      pages,
      [stored, { id: 2n, name: 'Moss' }],
      'GET /plants',
      [first, expired, second],
    ],
    [
      'create',
      (store) => createPlant(store, stored),
      stored,
      'POST',
      [expired, json(200, { name: 'Fern' })],
    ],
  ])(
  'a request with an expired token is repeated once with a new one: %s (needs sh)',
  async (_, run, value, line, answers) => {
    const service = await Hostile.listen({
      openapi,
      posts: [...answers],
      others: { [line]: [...answers] },
    })
    const { store, secrets } = await openTeam(service.url)
    expect(await run(store)).toEqual(value)
    const sent = service.requests.flatMap(({ headers }) => headers['authorization'] ?? [])
    expect(sent).toEqual([...answers.slice(1).map(() => 'Bearer s3cret-1'), 'Bearer s3cret-2'])
    expect(secrets.size).toBe(2)
  },
)

const twice = 'test -e ran && exit 3; touch ran; echo s3cret-1'

test.skipIf(isWindows).each([
  ['that rejects the new token, too', expired, {}, { message }, 2],
  [
    'with PLANTS_TOKEN',
    expired,
    { env: { PLANTS_TOKEN: 's3cret' } },
    { hint: expect.stringMatching('PLANTS_TOKEN') },
    1,
  ],
  [
    'whose command fails now',
    expired,
    { command: twice },
    { message: expect.stringMatching('exit code 3') },
    1,
  ],
])('a request %s fails (needs sh)', async (_, answer, options, failure, requests) => {
  const service = await Hostile.listen({ openapi, others: { 'GET /plants/1': [answer] } })
  const { store } = await openTeam(service.url, options)
  await expect(store.get([1n])).rejects.toMatchObject({ kind: 'unauthorized', ...failure })
  expect(service.lines).toEqual(Array(requests).fill('GET /plants/1'))
})
