import { readFileSync } from 'node:fs'
import { beforeEach, expect, test } from 'vitest'
import { token } from '../../helpers/http-store.js'
import { PlantService } from '../../helpers/plant-service.js'
import { query } from '../../helpers/sqlite-file.js'
import { answer, isWindows, printed, World } from '../../helpers/world.js'

// What a dry run prints for a store in a file is in transcripts/create.txt.

const fern = 'create --id 1 --name Fern --tag shade'
const service = 'https://plants.example.com/v1'
const key = '--idempotency-key order-66'
const env = { PLANTS_TOKEN: token }

let user: World

beforeEach(() => {
  user = new World()
})

test.each<[string, string, number]>([
  ['whose id is taken', 'create --id 1 --name Moss', 1],
  ['in a file that is no store', `${fern} --store text.db`, 4],
])('a dry run rejects a plant %s, as a create does', async (_, line, code) => {
  user.write('text.db', 'This is no database, and long enough to be none. '.repeat(20))
  await user.run(`${fern} ${key}`)
  const real = await user.run(line)
  expect(real.code).toBe(code)
  expect(await user.run(`${line} --dry-run`)).toEqual(real)
})

test('a dry run names the service, and sends nothing', async () => {
  const server = await PlantService.listen()
  const line = `${fern} ${key} --dry-run --store ${server.url}/v1`
  const plant = { name: 'Fern', tag: 'shade' }
  expect(await user.run(line, { env })).toEqual(answer({ dryRun: true, ...plant }))
  expect(await user.run(`${line} --output text`, { env })).toEqual(
    printed(`Would plant Fern (id 1, tag shade) in ${server.url}/v1\n`),
  )
  expect({ posts: server.posts, connections: server.mostConnections }).toEqual({
    posts: [],
    connections: 0,
  })
})

test.skipIf(isWindows)('a dry run starts no token command (needs sh)', async () => {
  user.save({
    stores: { team: { address: service, 'token-command': `touch ${user.home}/started` } },
  })
  const line = `${fern} --store team`
  expect((await user.run(`${line} --dry-run`)).code).toBe(0)
  expect(user.has('started')).toBe(false)
  await user.run(line)
  expect(user.has('started')).toBe(true)
})

test('a dry run leaves the file of the store as it is', async () => {
  await user.run(fern)
  // The driver may close its file only when its memory is collected, which would merge the log into the file.
  query(user.store, 'PRAGMA wal_checkpoint(TRUNCATE)')
  const before = readFileSync(user.store)
  expect((await user.run('create --id 2 --name Moss --dry-run')).code).toBe(0)
  expect(readFileSync(user.store).equals(before)).toBe(true)
  expect(await user.run('count')).toMatchObject({ out: '1\n' })
})
