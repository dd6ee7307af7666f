import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { resolveSettings } from '../../../src/cli/context.js'
import { Outcome } from '../../../src/stores/common/conflict.js'
import type { Batch } from '../../../src/stores/common/store.js'
import { RemoteStore } from '../../../src/stores/http/store.js'
import { batchOf } from '../../helpers/bulk.js'
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
  if (store.kind !== 'remote') throw new Error('Only services are expected here')
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
    beforeSend: async () => {},
    onProgress: () => {},
  })
  return batch
}

const refused = { status: 401, body: { error: 401, message: 'This token has expired' } }
const message = 'This token has expired'

test('a token that expires during an import is renewed by its command, at most once a minute', async () => {
  let valid = 's3cret-1'
  const service = await PlantService.listen({ deed: ({ authorization }) => (authorization === `Bearer ${valid}` ? undefined : refused) })
  const { remote, secrets, letPass } = await openTeam(teamAt(service.url))
  await create(remote, 0, 50)
  valid = 's3cret-2'
  const batch = await create(remote, 50, 50)
  expect({ isCreated: batch.outcomes.every((outcome) => outcome === Outcome.created), made: service.made.size }).toEqual({
    isCreated: true,
    made: 100,
  })
  expect(secrets).toEqual(new Set(['s3cret-1', 's3cret-2']))
  valid = 's3cret-3'
  await expect(create(remote, 100, 50)).rejects.toMatchObject({ kind: 'unauthorized', message })
  letPass(2)
  await create(remote, 100, 50)
  expect(service.made.size).toBe(150)
})

test('a token from PLANTS_TOKEN is not renewed', async () => {
  const service = await PlantService.listen({ deed: () => refused })
  const { remote, secrets } = await openTeam(teamAt(service.url), { PLANTS_TOKEN: 's3cret-of-env' })
  await expect(create(remote, 0, 5)).rejects.toMatchObject({ kind: 'unauthorized', message, hint: expect.stringContaining('PLANTS_TOKEN') })
  expect(secrets).toEqual(new Set(['s3cret-of-env']))
})

test('a command that fails later ends the import with what it says', async () => {
  const service = await PlantService.listen({ deed: () => refused })
  const { remote } = await openTeam(teamAt(service.url, 'test -e ran && exit 3; touch ran; echo s3cret-1'))
  await expect(create(remote, 0, 5)).rejects.toMatchObject({
    kind: 'unauthorized',
    message: expect.stringMatching('ended with exit code 3'),
  })
  expect(service.made.size).toBe(0)
})
