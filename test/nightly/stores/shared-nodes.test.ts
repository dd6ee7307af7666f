import { expect, test } from 'vitest'
import { createDatabase, startOwnServer } from '../../helpers/postgres/database.js'
import { exchangeOnce } from '../../helpers/scripted-server/raw-http.js'
import { type RunningService, serve, testToken } from '../../helpers/scripted-server/service.js'

const pollOptions = { interval: 20 }

test('a service reports that its database is unreachable, and recovers without a restart', async () => {
  const database = await startOwnServer()
  const service = await serve(['--store', database.url, '--admin-port', '0', '--timeout', '1h'])
  const address = service.log.find(({ msg }) => msg === 'listening')?.['admin']
  const isReady = async () => (await fetch(`${address}/ready`)).ok
  const explain = async () => (await fetch(`${address}/ready`)).text()
  expect(await isReady()).toBe(true)
  await database.stop('immediate')
  await expect.poll(isReady, pollOptions).toBe(false)
  await expect
    .poll(explain, pollOptions)
    .toMatch(/"message":"Could not reach postgres:\/\/127\.0\.0\.1:\d+\/plants: /)
  const waiting = create(service, 1)
  await database.start()
  await expect.poll(isReady, pollOptions).toBe(true)
  expect([await waiting, await create(service, 2)]).toEqual([200, 200])
  expect((await service.stop()).code).toBe(0)
})

test.each(['locked', 'unreachable'])(
  'a service that stops while its database is %s does not wait beyond --drain-timeout',
  async (how) => {
    const database = how === 'unreachable' ? await startOwnServer() : undefined
    const { url, env, beginTransaction } = database ?? (await createDatabase())
    const service = await serve(['--store', url, '--timeout', '1h', '--drain-timeout', '500ms'], {
      env: { ...env, PLANTS_SERVE_TOKEN: testToken },
    })
    const unlock = database
      ? await database.stop('immediate')
      : await beginTransaction('LOCK TABLE plant_store.plants')
    const answers = Promise.allSettled([1, 2, 3].map((id) => create(service, id)))
    expect((await exchangeOnce(service, { target: '/nope' })).status).toBe(404) // what was sent before it has come
    expect((await service.stop()).code).toBe(0)
    expect((await answers).map(({ status }) => status)).toEqual(Array(3).fill('rejected'))
    await unlock?.()
  },
)

/** The status of the answer to a create. */
async function create(
  service: Pick<RunningService, 'endpoint' | 'token'>,
  id: number,
): Promise<number> {
  return (await exchangeOnce(service, { body: `{"id":${id},"name":"Fern"}` })).status
}
