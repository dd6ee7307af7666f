import { expect, test } from 'vitest'
import { freshDatabase } from '../../helpers/postgres.js'
import { isSoak, rounds } from '../../helpers/rounds.js'
import { launch, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const count = isSoak ? 10 : 5
const repeated = { repeats: Math.min(10, rounds(1)) - 1 }

test(
  `${count} services that start at the same moment on an empty database make one schema, and none fails`,
  repeated,
  async () => {
    const { url, env, sql } = await freshDatabase()
    const args = ['--store', url, '--log-level', 'warn']
    const starting = Array.from({ length: count }, () =>
      launch(args, temporaryFolder(), { env: { PLANTS_SERVE_TOKEN: testToken, ...env } }),
    )
    const services = await Promise.all(starting.map(({ ready }) => ready))
    const headers = { authorization: `Bearer ${testToken}`, 'content-type': 'application/json' }
    const statuses = services.map(async ({ address }, id) => {
      const { status } = await fetch(`${address}/plants`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ id, name: 'Fern' }),
      })
      return status
    })
    expect(await Promise.all(statuses)).toEqual(services.map(() => 200))
    expect(await sql('SELECT version FROM plant_store.schema_version')).toEqual([{ version: 3 }])
    expect(await sql('SELECT id FROM plant_store.plants ORDER BY id')).toEqual(
      services.map((_, id) => ({ id: BigInt(id) })),
    )
    const ends = await Promise.all(services.map((service) => service.stop()))
    expect(ends).toEqual(services.map(({ address }) => ({ code: 0, out: `${address}\n`, err: '' })))
  },
)
