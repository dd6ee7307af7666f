import { describe, expect, test } from 'vitest'
import { readStoreContext } from '../../../src/cli/context.js'
import { findAccess } from '../../../src/cli/store-access.js'
import { HttpStore } from '../../../src/stores/http/http-store.js'
import { createIo, readOptions } from '../../helpers/sandbox/run.js'
import { isWindows } from '../../helpers/sandbox/sandbox.js'
import { closeAfterTest, createPlant } from '../../helpers/sandbox/store.js'
import { TokenCommandSandbox } from '../../helpers/sandbox/token-command-sandbox.js'
import { startPlantService } from '../../helpers/scripted-server/plant-service.js'
import { buildJsonResponse, ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'

const newToken = 'echo run >> runs; echo "s3cret-$(wc -l < runs | tr -d " ")"'

/** Opens a store whose token command prints another token each time; `letPass` takes minutes. */
async function openTeam(address: string, command = newToken, env: Record<string, string> = {}) {
  const team = new TokenCommandSandbox()
  team.saveTokenCommand(team.writeScript(command), address)
  let past = 0
  const io = {
    ...createIo({ env: { ...team.env, ...env } }),
    now: () => performance.now() + past * 60_000,
  }
  const context = await readStoreContext(readOptions(['--store', 'team'], io), io)
  const { address: service } = context
  if (service.scheme !== 'http') throw new Error('Only services are expected here')
  const access = await findAccess(service, context)
  const store = closeAfterTest(
    new HttpStore(service, { access, timeoutMs: context.settings.timeoutMs, runtime: io }),
  )
  const letPass = (minutes: number) => {
    past += minutes
  }
  return { store, secrets: io.secrets, letPass }
}

/** Creates 50 plants as an import does, and gives the types of outcomes that there are. */
async function create(store: HttpStore, first: number): Promise<Set<string>> {
  const ids = Array.from({ length: 50 }, (_, index) => BigInt(first + index))
  const outcomes = await store.write(
    ids.map((id) => ({ type: 'create', plant: { id, name: 'Fern' }, key: `import-${id}` })),
  )
  return new Set(outcomes.map(({ type }) => type))
}

const message = 'This token has expired'
const rejected = { message: expect.stringMatching(`answered 401: ${message}$`) }
const expired = buildJsonResponse(401, { error: 401, message })
const fern = { id: 1n, name: 'Fern' }

describe.skipIf(isWindows)('with a token command (needs sh)', () => {
  test.each([401, 1001])(
    'a token that expires during an import is renewed at most once a minute: error %i',
    async (error) => {
      let valid = 's3cret-1'
      const service = await startPlantService({
        behave: ({ authorization }) =>
          authorization === `Bearer ${valid}`
            ? undefined
            : buildJsonResponse(401, { error, message }),
      })
      const { store, secrets, letPass } = await openTeam(service.address)
      await create(store, 0)
      valid = 's3cret-2'
      expect(await create(store, 50)).toEqual(new Set(['created']))
      expect(service.createdIds.size).toBe(100)
      expect(secrets).toEqual(new Set(['s3cret-1', 's3cret-2']))
      valid = 's3cret-3'
      expect(await create(store, 100)).toEqual(new Set(['notSent']))
      letPass(2)
      expect(await create(store, 100)).toEqual(new Set(['created']))
      expect(service.createdIds.size).toBe(150)
    },
  )

  test.each<[string, (store: HttpStore) => Promise<unknown>, unknown, Buffer[]]>([
    [
      'GET /plants/1',
      async (store) => (await store.get([1n])).get(1n),
      fern,
      [expired, buildJsonResponse(200, { id: 1, name: 'Fern' })],
    ],
    [
      'POST /plants',
      (store) => createPlant(store, fern),
      fern,
      [expired, buildJsonResponse(200, { name: 'Fern' })],
    ],
  ])(
    'a request with an expired token is repeated once with a new one, and succeeds: %s',
    async (line, run, value, answers) => {
      const service = await ScriptedServer.listen({
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

  test.each<[string, object, number, command?: string, env?: Record<string, string>]>([
    ['if the service rejects the new token, too', rejected, 2],
    ['if PLANTS_TOKEN is set', rejected, 1, newToken, { PLANTS_TOKEN: 's3cret' }],
    [
      'if the token command fails then',
      { message: expect.stringMatching('exit code 3') },
      1,
      'test -e ran && exit 3; touch ran; echo s3cret-1',
    ],
  ])('a request with an expired token fails %s', async (_, failure, requests, command, env) => {
    const service = await ScriptedServer.listen({ others: { 'GET /plants/1': [expired] } })
    const { store } = await openTeam(service.url, command, env)
    await expect(store.get([1n])).rejects.toMatchObject({ kind: 'unauthorized', ...failure })
    expect(service.lines).toEqual(Array(requests).fill('GET /plants/1'))
  })
})
