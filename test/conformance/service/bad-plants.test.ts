import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { documents } from '../../helpers/bad-plants.js'
import { exchange } from '../../helpers/raw-http.js'
import { expectRefusal, titleOf } from '../../helpers/refusals.js'
import { runPlants } from '../../helpers/run.js'
import { serveForAll, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

describe('the three doors', () => {
  const service = serveForAll()
  const atHome = new Map([
    [
      'Stdin is empty',
      /^The body is (empty|not JSON: (unexpected end of input|unexpected U\+FEFF) at line \d+, column \d+)$/,
    ],
    ['Stdin is larger than 1 MiB (1048576 bytes)', /^The body is larger than 1048576 bytes$/],
  ])

  const titled = documents.map((row) => [titleOf(row[0]), row] as const)
  const nowhere = ['--store', 'http://127.0.0.1:1', '--timeout', '0', '--output', 'json']

  // Every fifth: what a document is refused for is decided before the kind of the store is known.
  test.each(titled.filter((_, index) => index % 5 === 0))(
    '%s: a remote store is told nothing, and the words are those of the embedded one',
    async (_, [given, ...expected]) => {
      await expectRefusal([{ ...given, env: { PLANTS_TOKEN: testToken } }, ...expected], nowhere)
    },
  )

  test.each(titled)('%s: HTTP says the same', async (_, [given, , error, message]) => {
    const { status, body } = await exchange(service(), { body: given.stdin ?? '' })
    const words = atHome.get(message) ?? message.replace(/^Stdin/, 'The body')
    const expected = typeof words === 'string' ? words : expect.stringMatching(words)
    expect({ status, body: JSON.parse(body) }).toEqual({ status: 400, body: { error, message: expected } })
  })

  test('refuse an id and a key that are taken with the same words, and the same code', async () => {
    const { address, token } = service()
    const folder = temporaryFolder()
    const doors = [{ PLANTS_STORE: address, PLANTS_TOKEN: token }, { PLANTS_DATA_DIR: join(folder, 'data') }]
    const create = (env: Record<string, string>, ...args: string[]) =>
      runPlants(['create', ...args, '--output', 'json'], { env })
    for (const env of doors) {
      expect((await create(env, '--id', '1', '--name', 'Fern', '--idempotency-key', 'k')).code).toBe(0)
      const id = await create(env, '--id', '1', '--name', 'Moss')
      expect([id.code, JSON.parse(id.err)]).toEqual([
        1,
        expect.objectContaining({ error: 409, message: 'A plant with id 1 already exists' }),
      ])
      const key = await create(env, '--id', '2', '--name', 'Moss', '--idempotency-key', 'k')
      const message = 'This idempotency key was used for a different plant'
      expect([key.code, JSON.parse(key.err)]).toEqual([1, expect.objectContaining({ error: 409, message })])
    }
    const list = await runPlants(['list'], { env: { PLANTS_DATA_DIR: join(service().folder, 'data') } })
    expect(list).toEqual({ code: 0, out: '{"id":1,"name":"Fern"}\n', err: '' })
  })
})
