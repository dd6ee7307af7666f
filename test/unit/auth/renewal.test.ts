import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { resolveSettings } from '../../../src/cli/context.js'
import { Outcome } from '../../../src/stores/common/conflict.js'
import type { Batch } from '../../../src/stores/common/store.js'
import { RemoteStore } from '../../../src/stores/http/remote-store.js'
import { batchOf } from '../../helpers/bulk.js'
import { Hostile, http, json } from '../../helpers/hostile.js'
import { PlantService } from '../../helpers/plant-service.js'
import { ioOf } from '../../helpers/run.js'
import { closedAfterTest } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

/** A folder with a token command that prints another token each time, as settings name it. */
function teamAt(address: string, command = 'echo run >> runs; echo "s3cret-$(wc -l < runs | tr -d " ")"'): string {
  const folder = temporaryFolder()
  const program = join(folder, 'next-token')
  writeFileSync(program, `#!/bin/sh\ncd ${folder}\n${command}\n`, { mode: 0o700 })
  const settings = { version: 1, stores: { team: { address, 'token-command': program } } }
  writeFileSync(join(folder, 'settings.json'), JSON.stringify(settings), { mode: 0o600 })
  return folder
}

async function openTeam(folder: string, env: Record<string, string> = {}) {
  let past = 0 // minutes
  const world = ioOf({ env: { PATH: process.env['PATH'] ?? '', PLANTS_CONFIG_DIR: folder, ...env } })
  const io = { ...world, now: () => performance.now() + past * 60_000 }
  const { store, storeOptions } = await resolveSettings({ store: 'team' }, io)
  if (store.scheme !== 'remote') throw new Error('Only services are expected here')
  const remote = closedAfterTest(await RemoteStore.open(store, storeOptions))
  const letPass = (minutes: number) => {
    past += minutes
  }
  return { remote, secrets: io.secrets, letPass }
}

async function create(remote: RemoteStore, first: number, count: number): Promise<Batch> {
  const plants = Array.from({ length: count }, (_, index) => ({ id: BigInt(first + index), name: 'Fern' }))
  const batch = batchOf(plants)
  await remote.createMany(batch, {
    ...{ ifExists: 'error', stopsAtReject: false, checkpoint: undefined, stop: new AbortController().signal },
    keyOf: (row) => `import-${first + row}`,
    onProgress: () => {},
  })
  return batch
}

const refused = { status: 401, body: { error: 401, message: 'This token has expired' } }
const message = 'This token has expired'

test('a token that expires during an import is renewed by its command, at most once a minute', async () => {
  let valid = 's3cret-1'
  const service = await PlantService.listen({
    deed: ({ authorization }) => (authorization === `Bearer ${valid}` ? undefined : refused),
  })
  const { remote, secrets, letPass } = await openTeam(teamAt(service.url))
  await create(remote, 0, 50)
  valid = 's3cret-2'
  const batch = await create(remote, 50, 50)
  expect({
    isCreated: batch.outcomes.every((outcome) => outcome === Outcome.created),
    made: service.made.size,
  }).toEqual({
    isCreated: true,
    made: 100,
  })
  expect(secrets).toEqual(new Set(['s3cret-1', 's3cret-2']))
  valid = 's3cret-3'
  await expect(create(remote, 100, 50)).rejects.toMatchObject({ type: 'unauthorized', message })
  letPass(2)
  await create(remote, 100, 50)
  expect(service.made.size).toBe(150)
})

describe('a token that expires is renewed once, and the request that it was rejected for is repeated, by', () => {
  const operations = { get: {}, put: {}, delete: {} }
  const openapi = json(200, { paths: { '/plants': { get: {}, post: {} }, '/plants/{id}': operations } })
  const fern = { id: 1, name: 'Fern' }
  const stored = { id: 1n, name: 'Fern' }
  const expired = json(401, refused.body)
  const stream = http(200, `${JSON.stringify(fern)}\n`, { 'Content-Type': 'application/x-ndjson' })
  const pages = async (remote: RemoteStore) => {
    const found = []
    for await (const page of remote.list()) found.push(...page)
    return found
  }
  const first = json(200, [fern], { Link: '</plants?after=1>; rel="next"' })
  const second = json(200, [{ id: 2, name: 'Moss' }])

  test.each<[string, (remote: RemoteStore) => Promise<unknown>, unknown, string, Buffer[]]>([
    ['get', (remote) => remote.get(1n), stored, 'GET /plants/1', [expired, json(200, fern)]],
    ['list, between two pages', pages, [stored, { id: 2n, name: 'Moss' }], 'GET /plants', [first, expired, second]],
    ['count', (remote) => remote.count(), 1n, 'GET /plants', [expired, stream]],
    ['delete', (remote) => remote.delete(1n), stored, 'DELETE /plants/1', [expired, json(200, fern)]],
    ['update', (remote) => remote.replace(stored), stored, 'PUT /plants/1', [expired, json(200, fern)]],
    [
      'create',
      (remote) => remote.create(stored),
      { name: 'Fern' },
      'POST /plants',
      [expired, json(200, { name: 'Fern' })],
    ],
  ])('%s', async (_, run, value, line, answers) => {
    const service = await Hostile.listen({ openapi, posts: [...answers], others: { [line]: [...answers] } })
    const { remote, secrets } = await openTeam(teamAt(service.url))
    expect(await run(remote)).toEqual(value)
    const sent = service.requests.flatMap(({ headers }) => headers['authorization'] ?? [])
    const count = answers.length
    expect(sent).toEqual(Array.from({ length: count }, (_, at) => `Bearer s3cret-${at === count - 1 ? 2 : 1}`))
    expect(secrets.size).toBe(2)
  })

  test('nothing that rejects the newer token, too', async () => {
    const service = await Hostile.listen({ openapi, others: { 'GET /plants/1': [expired] } })
    const { remote } = await openTeam(teamAt(service.url))
    await expect(remote.get(1n)).rejects.toMatchObject({ type: 'unauthorized', message })
    expect(service.lines).toEqual(['GET /openapi.json', 'GET /plants/1', 'GET /plants/1'])
  })

  test('nothing that lacks a right', async () => {
    const service = await Hostile.listen({
      openapi,
      others: { 'GET /plants/1': [json(403, { error: 403, message: 'No right' })] },
    })
    const { remote, secrets } = await openTeam(teamAt(service.url))
    await expect(remote.get(1n)).rejects.toMatchObject({ type: 'unauthorized', message: 'No right' })
    expect(secrets.size).toBe(1)
  })
})

test('a token from PLANTS_TOKEN is not renewed', async () => {
  const service = await PlantService.listen({ deed: () => refused })
  const { remote, secrets } = await openTeam(teamAt(service.url), { PLANTS_TOKEN: 's3cret-of-env' })
  await expect(create(remote, 0, 5)).rejects.toMatchObject({
    type: 'unauthorized',
    message,
    hint: expect.stringContaining('PLANTS_TOKEN'),
  })
  expect(secrets).toEqual(new Set(['s3cret-of-env']))
})

test('a command that fails later ends the import with what it says', async () => {
  const service = await PlantService.listen({ deed: () => refused })
  const { remote } = await openTeam(teamAt(service.url, 'test -e ran && exit 3; touch ran; echo s3cret-1'))
  await expect(create(remote, 0, 5)).rejects.toMatchObject({
    type: 'unauthorized',
    message: expect.stringMatching('ended with exit code 3'),
  })
  expect(service.made.size).toBe(0)
})
