import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ownService, token } from '../../helpers/http-store.js'
import { answer, World } from '../../helpers/world.js'

/** Where a user keeps plants: the address of the store. */
const stores: [string, (user: World) => Promise<string>][] = [
  ['a file', async (user) => join(user.home, 'plants.db')],
  ['a service', (user) => ownService({ host: '127.0.0.1', port: 0 }, join(user.home, 'service.db'))],
]

describe.each(stores)('in %s, an id that no plant has does not stop 129 others', (_, addressIn) => {
  const others = Array.from({ length: 129 }, (_, index) => ({ id: index + 2, name: 'Fern' }))
  const named = others.map((plant) => ({ ...plant, name: 'Moss' }))

  test.each([
    ['get', others, others],
    ['update --name Moss', named, named],
    ['delete --yes', others, []],
  ])('of %s', async (command, printed, left) => {
    const user = new World()
    const address = await addressIn(user)
    const run = (line: string, stdin?: string) =>
      user.run(`${line} --store ${address}`, { env: { PLANTS_TOKEN: token }, ...(stdin !== undefined && { stdin }) })
    expect((await run('import', answer(...others).out)).code).toBe(0)
    const ids = Array.from({ length: 130 }, (_, index) => index + 1).join(' ')
    const [verb, ...options] = command.split(' ')
    expect(await run([verb, ids, ...options].join(' '))).toEqual({
      ...answer(...printed),
      ...{ code: 1, err: expect.stringMatching(/^plants: No plant has id 1\b[^\n]*\n {2}[^\n]*\n$/) },
    })
    expect(await run('list')).toEqual(answer(...left))
  })
})
