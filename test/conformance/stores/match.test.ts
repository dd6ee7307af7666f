import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { fixedToken } from '../../../src/server/authenticator.js'
import { SqliteStore } from '../../../src/stores/sqlite/store.js'
import { ownService, token } from '../../helpers/http-store.js'
import { countsOf } from '../../helpers/import.js'
import { freshDatabase } from '../../helpers/postgres.js'
import { serveHere } from '../../helpers/service.js'
import { fileAddress, openOptions } from '../../helpers/store.js'
import { World } from '../../helpers/world.js'

/** A store that is empty, and the variables with which it is used. */
type Place = Record<string, string>

const kinds: [string, (world: World) => Promise<Place>][] = [
  ['a file', async ({ home }) => ({ PLANTS_STORE: join(home, 'garden.db') })],
  [
    'a database',
    async () => {
      const { url, env } = await freshDatabase()
      return { PLANTS_STORE: url, ...env }
    },
  ],
  [
    'a service',
    async ({ home }) => ({
      PLANTS_STORE: await ownService({ host: '127.0.0.1', port: 0 }, join(home, 'garden.db')),
      PLANTS_TOKEN: token,
    }),
  ],
]

const stored = [
  { id: 5, name: 'Hortensie', tag: 'Busch' },
  { id: 7, name: 'Weide', tag: 'Baum' },
  { id: 9, name: 'Hortensie' },
]

// The second of the two that look alike is not composed.
const list = [
  ...[
    'name,tag',
    'Ahorn,Baum',
    'B\u00e4rlauch,Staude',
    'Ba\u0308rlauch,Staude',
    'Ahorn,Baum',
    'Hortensie,Busch',
  ],
  ...['Weide,Baum', 'Z\u00fcrgelbaum,', 'ahorn,Baum', ''],
]

const wanted = [
  ...stored,
  { id: 10, name: 'Ahorn', tag: 'Baum' },
  { id: 11, name: 'B\u00e4rlauch', tag: 'Staude' },
  { id: 12, name: 'Ba\u0308rlauch', tag: 'Staude' },
  { id: 13, name: 'Z\u00fcrgelbaum' },
  { id: 14, name: 'ahorn', tag: 'Baum' },
]

describe.each(kinds)('a list without ids that is imported by name into %s', (kind, open) => {
  const isService = kind === 'a service' // of which a dry run checks the input alone

  async function nursery(text = list.join('\n')) {
    const world = new World()
    const env = await open(world)
    const run = (line: string, stdin?: string) =>
      world.run(line, { env, ...(stdin !== undefined && { stdin }) })
    const imported = async (flags = '--id-from next') => {
      const { code, out, err } = await run(`import list.csv --match name ${flags}`.trim())
      return { code, ...countsOf(out.trimEnd().split('\n').at(-1) ?? ''), err }
    }
    const plants = async () => JSON.parse((await run('export -o json')).out)
    await run('import', stored.map((plant) => `${JSON.stringify(plant)}\n`).join(''))
    world.write('list.csv', text)
    return { world, run, imported, plants }
  }

  test('changes nothing the second time, and has its own reasons for names of several plants', async () => {
    const { world, imported, plants } = await nursery()
    const several = 'plants: list.csv:6: Plants 5, 9 have the name "Hortensie"\n'
    const counts = {
      code: 6,
      rejected: 1,
      reasons: { 422: 1 },
      err: expect.stringContaining(several),
    }
    const planned = { ...counts, created: 5, skipped: 2 }
    expect(await imported('--id-from next --dry-run')).toMatchObject(
      isService ? { code: 0, created: 7, skipped: 1 } : planned,
    )
    expect(await plants()).toEqual(stored)
    expect(await imported()).toMatchObject({ ...counts, created: 5, skipped: 2 })
    expect(await plants()).toEqual(wanted)
    expect(await imported()).toMatchObject({ ...counts, created: 0, skipped: 7 })
    world.write('list.csv', list.filter((line) => !line.startsWith('Hortensie')).join('\n'))
    for (const flags of ['--id-from next', '', '--if-exists skip', '--if-exists update'])
      expect(await imported(flags)).toEqual({
        code: 0,
        created: 0,
        skipped: 7,
        rejected: 0,
        unknown: 0,
        err: '',
      })
    expect(await plants()).toEqual(wanted)
  })

  test('updates the plants with its names, as its dry run shows', async () => {
    const { run, imported, plants } = await nursery('name,tag\nWeide,\nAhorn,Baum\nAhorn,Busch\n')
    const flags = '--id-from next --if-exists update'
    const { out } = await run(`import list.csv --match name ${flags} --dry-run -o text`)
    const creates = 'Would create Weide (id 1)\nWould create Ahorn (id 2, tag Baum)\n'
    if (isService) expect(out).toContain(creates)
    else
      expect(out.replace(/ in .* s/, '')).toBe(
        'Would update Weide (id 7): tag "Baum" → none\n' +
          'Would create Ahorn (id 10, tag Baum)\n' +
          'Would update Ahorn (id 10): tag "Baum" → "Busch"\n' +
          'Dry run of 3 plants: 1 created, 2 updated\n',
      )
    expect(await imported(flags)).toMatchObject({ code: 0, created: 1, skipped: 0 })
    const now = [...stored, { id: 10, name: 'Ahorn', tag: 'Busch' }]
    now[1] = { id: 7, name: 'Weide' }
    expect(await plants()).toEqual(now)
    expect(await imported(flags)).toMatchObject({ code: 0, created: 0, skipped: 1 })
    expect(await plants()).toEqual(now)
  })

  test.each(['same', 'skip', 'update'])(
    '--if-exists %s changes no plant that has the number of a new one',
    async (policy) => {
      const { imported, plants } = await nursery('name,tag\nAhorn,Baum\nAhorn,Busch\nBirke,Baum\n')
      const flags = `--id-from 7 --if-exists ${policy}`
      const reasons = { rejected: 2, reasons: { 409: 2 } }
      const planned = { code: 6, created: 1, ...reasons }
      if (!isService) expect(await imported(`${flags} --dry-run`)).toMatchObject(planned)
      expect(await imported(flags)).toMatchObject({ code: 6, created: 1, ...reasons })
      expect(await plants()).toEqual([
        stored[0],
        stored[1],
        { id: 8, name: 'Birke', tag: 'Baum' },
        stored[2],
      ])
    },
  )
})

test('a token without the right to read does not match names, and says so', async () => {
  const address = fileAddress(join(new World().home, 'garden.db'))
  const { address: store } = await serveHere({
    openStore: (events) => SqliteStore.open(address, openOptions(events)),
    openTokenSource: async () => fixedToken(token, { name: 'test', rights: ['create'] }),
  })
  const world = new World()
  world.write('list.csv', 'name\nAhorn\n')
  const message = 'This token has no right to read plants (status 403)'
  const hint = 'Ask the operator of the service who may do this'
  for (const flags of ['', '--id-from next'].map((one) => one.split(' ').filter(Boolean)))
    expect(
      await world.run(['import', 'list.csv', '--match', 'name', '--store', store, ...flags], {
        env: { PLANTS_TOKEN: token },
      }),
    ).toEqual({ code: 3, out: '', err: `plants: ${message}\n  ${hint}\n` })
})
