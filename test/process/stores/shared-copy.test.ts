import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { toJson } from '../../../src/plant/exact-json.js'
import { newPlant } from '../../helpers/any-plant.js'
import { fc } from '../../helpers/fast-check.js'
import { hasPgBouncer, pgbouncer } from '../../helpers/pgbouncer.js'
import { type Database, freshDatabase } from '../../helpers/postgres.js'
import { plants } from '../../helpers/process.js'
import { exchange } from '../../helpers/raw-http.js'
import { isSoak, rounds } from '../../helpers/rounds.js'
import { serve } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const count = Math.min(rounds(300), 100_000)

describe('plants', () => {
  test.each(isSoak ? ['ndjson', 'csv', 'json', 'tsv'] : ['ndjson', 'csv'])(
    'go to a database and back as they were, as %s',
    async (format) => {
      expect(await roundTrip(await freshDatabase(), format)).toBe(true)
    },
  )

  test.runIf(hasPgBouncer)(
    'go to a database and back through PgBouncer, which also knows tokens and serves',
    async () => {
      const database = await pgbouncer(await freshDatabase())
      expect(await roundTrip(database, 'ndjson')).toBe(true)
      const { url, env } = database
      const run = (...args: string[]) => plants([...args, '--store', url], temporaryFolder(), { env })
      const token = (await run('tokens', 'create')).out.trim()
      const service = await serve(['--store', url], { env })
      const create = async (id: bigint) => {
        const { status, body } = await exchange({ place: service.place, token }, { body: `{"id":${id},"name":"Fern"}` })
        return [status, body]
      }
      const answers = await Promise.all([1n, 2n, 3n].map((each) => create(each + 2n ** 60n)))
      expect(answers).toEqual(answers.map(() => [200, '{"name":"Fern"}']))
      expect((await service.stop()).code).toBe(0)
      expect((await run('tokens', 'list', '--output', 'json')).out).toContain('"id":1')
    },
  )
})

/**
 * Whether what a file holds comes back, byte by byte, from a database that it was put into, and again from a file that
 * this was put into.
 */
async function roundTrip({ url, env }: Database, format: string): Promise<boolean> {
  const folder = temporaryFolder()
  const run = async (args: string[], input?: string) => {
    const result = await plants(args, folder, { env, ...(input !== undefined && { input }) })
    expect(result).toMatchObject({ code: 0 })
    return result.out
  }
  const take = (store: string, input: string, as: string) => run(['import', '--store', store, '--format', as], input)
  const give = (store: string) => run(['export', '--store', store, '--output', format])
  const [source, target] = [join(folder, 'source.db'), join(folder, 'target.db')]
  await take(source, oddPlants(), 'ndjson')
  const first = await give(source)
  await take(url, first, format)
  const shared = await give(url)
  await take(target, shared, format)
  return first.length > 10 * count && shared === first && (await give(target)) === first
}

function oddPlants(): string {
  const sample = fc.sample(newPlant(), count)
  const extremes = [-(2n ** 63n), -1n, 0n, 2n ** 63n - 1n].map((id) => ({ id, name: '', tag: '' }))
  const byId = new Map([...sample, ...extremes].map((plant) => [plant.id, plant]))
  return [...byId.values()].map((plant) => `${toJson(plant)}\n`).join('')
}
