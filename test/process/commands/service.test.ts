import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { start } from '../../helpers/process.js'
import { serve, serveForAll, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const service = serveForAll(['--allow', 'create,read,update,delete'])

/** Runs a command at a service, in a folder of its own. */
async function at(store: string, args: string[], { folder = temporaryFolder(), stdin = '', token = testToken } = {}) {
  const child = start([...args, '--store', store], folder, {
    input: stdin,
    cwd: folder,
    stripFinalNewline: true,
    env: { PLANTS_TOKEN: token },
  })
  const { exitCode, stdout, stderr } = await child
  return { code: exitCode, out: String(stdout), err: String(stderr).replaceAll(store, 'URL') }
}

const run = (line: string, options = {}) => at(service().address, line.split(' '), options)

describe('a store behind a service', () => {
  test('is read, corrected and exported by the commands that do so with a file', async () => {
    for (const plant of [
      '{"id":1,"name":"Fern","tag":"shade"}',
      '{"id":2,"name":"Moss"}',
      '{"id":9007199254740993,"name":"Sage"}',
    ])
      expect(await run('create', { stdin: plant })).toMatchObject({ code: 0, err: '' })
    expect(await run('get 1')).toEqual({ code: 0, out: '{"id":1,"name":"Fern","tag":"shade"}', err: '' })
    expect(await run('list --after 1 --limit 5')).toMatchObject({
      out: '{"id":2,"name":"Moss"}\n{"id":9007199254740993,"name":"Sage"}',
    })
    expect(await run('list --search FERN --tag shade')).toMatchObject({
      code: 0,
      out: '{"id":1,"name":"Fern","tag":"shade"}',
    })
    expect(await run('update 1 --name Ivy --no-tag')).toEqual({ code: 0, out: '{"id":1,"name":"Ivy"}', err: '' })
    expect(await run('export --output csv --tag shade')).toEqual({ code: 0, out: 'id,name,tag', err: '' })
    const folder = temporaryFolder()
    expect(await run('export --out plants.csv', { folder })).toMatchObject({ code: 0, err: '' })
    expect(readFileSync(join(folder, 'plants.csv'), 'utf8')).toBe(
      'id,name,tag\n1,Ivy,\n2,Moss,\n9007199254740993,Sage,\n',
    )
    expect(await run('delete 2 --yes')).toEqual({ code: 0, out: '{"id":2,"name":"Moss"}', err: '' })
    expect(await run('get 2')).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/^plants: No plant has id 2 in URL\n/),
    })
    expect(await run('delete 2 --yes')).toMatchObject({ code: 1, out: '' })
    expect(await run('update 2 --name Moss')).toMatchObject({ code: 1, out: '' })
  })

  test('is read and changed by many ids at once, and by what matches', async () => {
    const lines = (tag: string, ids: number[]) =>
      ids.map((id) => `{"id":${id},"name":"Fern","tag":"${tag}"}`).join('\n')
    const ids = Array.from({ length: 150 }, (_, index) => index + 1000)
    await run('import', { stdin: lines('many', ids) })
    const list = await run('list --tag many --search FER')
    expect(list).toEqual({ code: 0, out: lines('many', ids), err: '' })
    expect(await run('get -', { stdin: `${list.out}\n999` })).toEqual({
      ...{ code: 1, out: list.out, err: expect.stringMatching(/^plants: No plant has id 999 in URL\n/) },
    })
    expect(await run('update - --tag more', { stdin: list.out })).toEqual({ code: 0, out: lines('more', ids), err: '' })
    expect(await run('delete 1000 999 --ignore-missing --yes')).toMatchObject({ code: 0, out: lines('more', [1000]) })
    expect(await run('delete --tag more --search FER --yes')).toEqual({
      ...{ code: 0, out: lines('more', ids.slice(1)), err: 'plants: Deleted 149 plants' },
    })
  })

  test.each([
    [
      'same',
      { created: 1, updated: 0, skipped: 1, rejected: 1 },
      '102,There,',
      /: A different plant with id 102 already exists\n/,
    ],
    ['update', { created: 1, updated: 1, skipped: 1, rejected: 0 }, '102,Other,x', /^$/],
  ])('imports with --if-exists %s', async (policy, counts, second, said) => {
    const folder = temporaryFolder()
    for (const id of [101, 102, 103]) await run(`delete ${id} --yes`)
    for (const id of [101, 102]) await run(`create --id ${id} --name There`)
    writeFileSync(join(folder, 'plants.csv'), 'id,name,tag\n101,There,\n102,Other,x\n103,New,\n')
    const { code, out, err } = await run(`import plants.csv --if-exists ${policy}`, { folder })
    expect({ hasCounts: out.startsWith('{'), err }).toEqual({ hasCounts: true, err: expect.stringMatching(said) })
    expect({ code, counts: JSON.parse(out) }).toMatchObject({ code: counts.rejected === 0 ? 0 : 6, counts })
    expect((await run('export --output csv --after 100 --limit 3')).out).toBe(
      `id,name,tag\n101,There,\n${second}\n103,New,`,
    )
  })

  test('is not staged, backed up or served through its service', async () => {
    expect(await run('import --atomic', { stdin: '{}' })).toMatchObject({
      code: 2,
      err: expect.stringContaining('--atomic is not supported at URL'),
    })
    for (const line of ['backup a.db', 'restore a.db', 'tokens list', 'tokens create', 'serve'])
      expect(await run(line, { token: '' })).toMatchObject({
        code: 2,
        out: '',
        err: expect.stringContaining('URL is a service'),
      })
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
    const stdin = '{"id":1,"name":"Oak"}'
    expect(await at(address, ['create', '--id', '1', '--name', 'Fern'], { token })).toMatchObject({ code: 0 })
    const { code, err } = await at(address, line.split(' '), { stdin, token })
    const hint = `Ask the operator of the service for a token with these rights: plants tokens create --allow ${needed}`
    expect({ code, err: err.replace(/\. The plants created .*/, '') }).toEqual({
      code: 3,
      err: `plants: This token has no right to ${missing} plants (status 403)\n  ${hint}`,
    })
  },
)

test('a token deletes a plant by its id without the right to read', async () => {
  const { address } = await serve(['--allow', 'create,delete'])
  expect(await at(address, ['create', '--id', '1', '--name', 'Fern'])).toMatchObject({ code: 0 })
  const err = expect.stringMatching(/^plants: No plant has id 2 in URL\n/)
  expect(await at(address, ['delete', '1', '2', '--yes'])).toEqual({ code: 1, out: '{"id":1,"name":"Fern"}', err })
})

test.each([
  ['/plants', 401, '. Try: --store '],
  ['/v1', 404, ''],
])('an address that ends in %s is what the hint is about', async (base, status, more) => {
  const { address } = service()
  const err = expect.stringContaining(
    `Is the address right? It is the base URL: the part before /plants${more}${more && address}`,
  )
  for (const line of ['count', 'delete 1 --yes', 'create --id 1 --name Fern'])
    expect(await at(`${address}${base}`, line.split(' '))).toMatchObject({ out: '', err })
  const { err: said } = await at(`${address}${base}`, ['list'])
  expect(said).toContain(`URL/openapi.json answered ${status}, so it is unknown whether this service can read plants\n`)
})

test('a service that does not create plants rejects a create, whose hint asks for no other token', async () => {
  const { address, token } = await serve(['--allow', 'read'], { rights: 'create,read' })
  expect(await at(address, ['create', '--id', '1', '--name', 'Fern'], { token })).toEqual({
    code: 3,
    out: '',
    err: 'plants: This service does not create plants\n  This message is from URL',
  })
  expect(await at(address, ['auth', 'login', '--with-token'], { token: '', stdin: token })).toMatchObject({ code: 0 })
})

test('a service of the specification alone is told from one that can be read', async () => {
  const only = await serve(['--allow', 'create'])
  expect(await at(only.address, ['list'])).toMatchObject({
    code: 2,
    err: expect.stringMatching(
      /^plants: This service can only create plants: its openapi.json lists no GET \/plants\n/,
    ),
  })
  const stdin = '{"id":1,"name":"Fern"}'
  for (const policy of ['same', 'update'])
    expect(await at(only.address, ['import', '--if-exists', policy], { stdin })).toMatchObject({
      code: 2,
      err: expect.stringMatching(/lists no GET \/plants\/\{id\}/),
    })
})
