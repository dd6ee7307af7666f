import { describe, expect, test } from 'vitest'
import { serve, serveForAll, testToken } from '../../helpers/service.js'
import { World } from '../../helpers/world.js'

const service = serveForAll(['--allow', 'create,read,update,delete'])

/** Runs a command at a service. */
async function at(address: string, line: string, { world = new World(), stdin = '', token = testToken } = {}) {
  const { code, out, err } = await world.run(`${line} --store ${address}`, { stdin, env: { PLANTS_TOKEN: token } })
  return { code, out, err: err.replaceAll(address, 'URL') }
}

const run = (line: string, options = {}) => at(service().address, line, options)

const printed = (...plants: object[]) => ({
  ...{ code: 0, err: '' },
  out: plants.map((plant) => `${JSON.stringify(plant)}\n`).join(''),
})

describe('a store behind a service', () => {
  test('is read, corrected and exported by the commands that do so with a file', async () => {
    const [fern, moss] = [
      { id: 1, name: 'Fern', tag: 'shade' },
      { id: 2, name: 'Moss' },
    ]
    const sage = '{"id":9007199254740993,"name":"Sage"}\n'
    for (const plant of [JSON.stringify(fern), JSON.stringify(moss), sage])
      expect(await run('create', { stdin: plant })).toMatchObject({ code: 0, err: '' })
    expect(await run('get 1')).toEqual(printed(fern))
    expect((await run('list --after 1 --limit 5')).out).toBe(`${JSON.stringify(moss)}\n${sage}`)
    expect(await run('list --search FERN --tag shade')).toEqual(printed(fern))
    expect(await run('update 1 --name Ivy --no-tag')).toEqual(printed({ id: 1, name: 'Ivy' }))
    expect(await run('export --output csv --tag shade')).toEqual({ code: 0, out: 'id,name,tag\n', err: '' })
    const world = new World()
    expect(await run('export --out plants.csv', { world })).toMatchObject({ code: 0, err: '' })
    expect(world.read('plants.csv')).toBe('id,name,tag\n1,Ivy,\n2,Moss,\n9007199254740993,Sage,\n')
    expect(await run('delete 2 --yes')).toEqual(printed(moss))
    const err = expect.stringMatching(/^plants: No plant has id 2 in URL\n/)
    for (const line of ['get 2', 'delete 2 --yes', 'update 2 --name Moss'])
      expect(await run(line)).toEqual({ code: 1, out: '', err })
  })

  test('is read and changed by many ids at once, and by what matches', async () => {
    const many = (tag: string, from = 1000) =>
      printed(...Array.from({ length: 1150 - from }, (_, index) => ({ id: from + index, name: 'Fern', tag })))
    await run('import', { stdin: many('many').out })
    const list = await run('list --tag many --search FER')
    expect(list).toEqual(many('many'))
    const err = expect.stringMatching(/^plants: No plant has id 999 in URL\n/)
    expect(await run('get -', { stdin: `${list.out}999` })).toEqual({ code: 1, out: list.out, err })
    expect(await run('update - --tag more', { stdin: list.out })).toEqual(many('more'))
    const deleted = printed({ id: 1000, name: 'Fern', tag: 'more' })
    expect(await run('delete 1000 999 --ignore-missing --yes')).toMatchObject({ code: 0, out: deleted.out })
    const said = 'plants: Deleted 149 plants\n'
    expect(await run('delete --tag more --search FER --yes')).toEqual({ ...many('more', 1001), err: said })
  })

  test.each([
    ['same', { created: 1, updated: 0, skipped: 1, rejected: 1 }, 'There,', /: A different plant with id 102 already/],
    ['update', { created: 1, updated: 1, skipped: 1, rejected: 0 }, 'Other,x', /^$/],
  ])('imports with --if-exists %s', async (policy, counts, second, said) => {
    const world = new World()
    await run('delete 101 102 103 --ignore-missing --yes')
    for (const id of [101, 102]) await run(`create --id ${id} --name There`)
    world.write('plants.csv', 'id,name,tag\n101,There,\n102,Other,x\n103,New,\n')
    const { code, out, err } = await run(`import plants.csv --if-exists ${policy}`, { world })
    expect({ code, err }).toEqual({ code: counts.rejected === 0 ? 0 : 6, err: expect.stringMatching(said) })
    expect(JSON.parse(out)).toMatchObject(counts)
    const exported = await run('export --output csv --after 100 --limit 3')
    expect(exported.out).toBe(`id,name,tag\n101,There,\n102,${second}\n103,New,\n`)
  })

  test('is not staged, backed up or served through its service', async () => {
    const err = expect.stringContaining('--atomic is not supported at URL')
    expect(await run('import --atomic', { stdin: '{}' })).toMatchObject({ code: 2, err })
    const isService = { code: 2, out: '', err: expect.stringContaining('URL is a service') }
    for (const line of ['backup a.db', 'restore a.db', 'tokens list', 'tokens create', 'serve'])
      expect(await run(line, { token: '' }), line).toEqual(isService)
  })
})

test.each([
  ['create', 'get 1', 'read', 'create,read'],
  ['create', 'update 1 --name Moss', 'read', 'create,read,update'],
  ['create,read', 'update 1 --name Moss', 'update', 'create,read,update'],
  ['create', 'delete 1 --dry-run', 'read', 'create,read,delete'],
  ['create', 'delete --tag x --yes', 'read', 'create,read,delete'],
  ['create,read', 'delete 1 --yes', 'delete', 'create,read,delete'],
  ['create', 'import --if-exists update', 'read', 'create,read,update'],
])(
  'a token that may only %s ends %s with 3, and the hint has all rights that it needs',
  async (allowed, line, missing, needed) => {
    const { address, token } = await serve([], { rights: allowed })
    expect(await at(address, 'create --id 1 --name Fern', { token })).toMatchObject({ code: 0 })
    const { code, err } = await at(address, line, { stdin: '{"id":1,"name":"Oak"}', token })
    const hint = `Ask the operator of the service for a token with these rights: plants tokens create --allow ${needed}`
    const message = `plants: This token has no right to ${missing} plants (status 403)\n  ${hint}\n`
    expect([code, err.replace(/\. The plants created .*/, '')]).toEqual([3, message])
  },
)

test('a token deletes a plant by its id without the right to read', async () => {
  const { address } = await serve(['--allow', 'create,delete'])
  expect(await at(address, 'create --id 1 --name Fern')).toMatchObject({ code: 0 })
  const err = expect.stringMatching(/^plants: No plant has id 2 in URL\n/)
  expect(await at(address, 'delete 1 2 --yes')).toEqual({ code: 1, out: '{"id":1,"name":"Fern"}\n', err })
})

test.each([
  ['/plants', 401, '. Try: --store '],
  ['/v1', 404, ''],
])('an address that ends in %s is what the hint is about', async (base, status, more) => {
  const { address } = service()
  const hint = 'Is the address right? It is the base URL: the part before /plants'
  const err = expect.stringContaining(`${hint}${more}${more && address}`)
  for (const line of ['count', 'delete 1 --yes', 'create --id 1 --name Fern'])
    expect(await at(`${address}${base}`, line), line).toMatchObject({ out: '', err })
  const { err: said } = await at(`${address}${base}`, 'list')
  expect(said).toContain(`URL/openapi.json answered ${status}, so it is unknown whether this service can read plants\n`)
})

test('a service that does not create plants rejects a create, whose hint asks for no other token', async () => {
  const { address, token } = await serve(['--allow', 'read'], { rights: 'create,read' })
  const err = 'plants: This service does not create plants\n  This message is from URL\n'
  expect(await at(address, 'create --id 1 --name Fern', { token })).toEqual({ code: 3, out: '', err })
  expect(await at(address, 'auth login --with-token', { token: '', stdin: token })).toMatchObject({ code: 0 })
})

test('a service that can only create is told from one that can be read', async () => {
  const { address } = await serve(['--allow', 'create'])
  const message = 'plants: This service can only create plants: its openapi.json lists no GET /plants'
  const isOnly = (more: string) => ({ code: 2, err: expect.stringContaining(`${message}${more}`) })
  expect(await at(address, 'list')).toMatchObject(isOnly('\n'))
  for (const policy of ['same', 'update'])
    expect(await at(address, `import --if-exists ${policy}`, { stdin: '{"id":1,"name":"Fern"}' })).toMatchObject(
      isOnly('/{id}'),
    )
})
