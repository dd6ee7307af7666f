import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ownService, token } from '../../helpers/http-store.js'
import type { RunOptions } from '../../helpers/run.js'
import { answer, World } from '../../helpers/world.js'

/** Where a user keeps plants: the address of the store. */
const stores: [string, (user: World) => Promise<string>][] = [
  ['a file', async (user) => join(user.home, 'plants.db')],
  [
    'a service',
    (user) => ownService({ host: '127.0.0.1', port: 0 }, join(user.home, 'service.db')),
  ],
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
      user.run(`${line} --store ${address}`, {
        env: { PLANTS_TOKEN: token },
        ...(stdin !== undefined && { stdin }),
      })
    expect((await run('import', answer(...others).out)).code).toBe(0)
    const ids = Array.from({ length: 130 }, (_, index) => index + 1).join(' ')
    const [verb, ...options] = command.split(' ')
    expect(await run([verb, ids, ...options].join(' '))).toEqual({
      ...answer(...printed),
      ...{
        code: 1,
        err: expect.stringMatching(/^plants: No plant has id 1\b[^\n]*\n {2}[^\n]*\n$/),
      },
    })
    expect(await run('list')).toEqual(answer(...left))
  })
})

describe('a selection from stdin', () => {
  const plants = Array.from({ length: 200 }, (_, index) => ({
    id: index + 1,
    name: 'Fern',
    tag: 'wet',
  }))
  const terminals: RunOptions = { terminals: ['stdout', 'stderr'] }
  const runtime = () => {
    let time = 0
    return () => (time += 300)
  }

  async function selected(command: string, options: RunOptions, ids = plants) {
    const user = new World()
    expect((await user.run('import', { stdin: answer(...plants).out })).code).toBe(0)
    return user.run(command, { stdin: answer(...ids).out, now: runtime(), ...options })
  }

  test.each([
    ['update - --tag shade', 'Updated 200 plants\n'],
    ['delete - --yes', 'Deleted 200 plants\n'],
    ['delete --tag wet --yes', 'Deleted 200 plants\n'],
  ])(
    'is one line on a terminal, after the progress, and a record each elsewhere: %s',
    async (command, out) => {
      const shown = await selected(`${command} --no-color`, terminals)
      expect(shown).toMatchObject({ code: 0, out })
      expect(shown.err).toMatch(/^(\r\d+ %, )?.*\d+ done.*\r\u001b\[K$/s)
      const piped = await selected(command, {})
      expect([piped.code, piped.out.split('\n')]).toEqual([
        0,
        expect.objectContaining({ length: 201 }),
      ])
    },
  )

  test('has failures in lines of their own', async () => {
    const ids = [
      ...plants.slice(0, 3),
      { id: 201, name: '', tag: '' },
      { id: 202, name: '', tag: '' },
    ]
    const { code, out, err } = await selected(
      'update - --tag shade --no-color',
      { ...terminals, now: () => 0 },
      ids,
    )
    expect([code, out]).toEqual([1, 'Updated 3 plants\n'])
    expect(err.match(/^plants: No plant has id 20[12] /gm)).toHaveLength(2)
  })

  test('of a dry run has a line each, with the old and the new texts', async () => {
    const { out } = await selected(
      'update - --tag shade --dry-run --no-color',
      terminals,
      plants.slice(0, 2),
    )
    const line = (id: number) => `Would update Fern (id ${id}): tag "wet" → "shade"\n`
    expect(out).toBe(line(1) + line(2))
  })

  test('that is empty changes nothing, and says so', async () => {
    const { code, out, err } = await selected('update - --tag shade --no-color', terminals, [])
    expect({ code, out, err }).toEqual({ code: 0, out: 'Updated 0 plants\n', err: '' })
  })
})

test('a plant that an update leaves as it is is unchanged', async () => {
  const user = new World()
  await user.run('create --id 1 --name Fern --tag wet')
  const shown = async (line: string) => (await user.run(`${line} --output text`)).out
  const unchanged = 'Fern (id 1) is unchanged\n'
  expect(await shown('update 1 --tag wet')).toBe(unchanged)
  expect(await shown('update 1 --tag wet --dry-run')).toBe(unchanged)
  expect(await shown('update 1 2 --tag wet')).toBe(unchanged)
})
