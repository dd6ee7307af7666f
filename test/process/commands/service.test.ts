import { expect, test } from 'vitest'
import { serve, testToken } from '../../helpers/service.js'
import { answer, World } from '../../helpers/world.js'

async function at(
  address: string,
  line: string,
  { world = new World(), stdin = '', token = testToken } = {},
) {
  const { code, out, err } = await world.run(`${line} --store ${address}`, {
    stdin,
    env: { PLANTS_TOKEN: token },
  })
  return { code, out, err: err.replaceAll(address, 'URL') }
}

test('a store behind a service is read, changed and exported', async () => {
  const { address } = await serve(['--allow', 'create,read,update,delete'])
  const world = new World()
  const run = (line: string, stdin = '') => at(address, line, { world, stdin })
  const ferns = (tag: string, from = 1000) =>
    answer(
      ...Array.from({ length: 1150 - from }, (_, index) => ({
        id: from + index,
        name: 'Fern',
        tag,
      })),
    )
  const sage = '{"id":9007199254740993,"name":"Sage"}\n'
  const missing = expect.stringMatching(/^plants: No plant has id 999 in URL\n/)
  await run('import', ferns('many').out + sage)
  expect(await run('list --tag many --search FER')).toEqual(ferns('many'))
  expect(await run('get -', `${ferns('many').out}999`)).toEqual({
    code: 1,
    out: ferns('many').out,
    err: missing,
  })
  expect(await run('update - --tag more', ferns('many').out)).toEqual(ferns('more'))
  const first = answer({ id: 1000, name: 'Fern', tag: 'more' })
  expect(await run('delete 1000 999 --ignore-missing --yes')).toMatchObject({
    code: 0,
    out: first.out,
  })
  const said = 'plants: Deleted 149 plants\n'
  expect(await run('delete --tag more --search FER --yes')).toEqual({
    ...ferns('more', 1001),
    err: said,
  })
  expect(await run('update 9007199254740993 --name Ivy')).toMatchObject({ code: 0, err: '' })
  expect(await run('export plants.csv')).toMatchObject({ code: 0, err: '' })
  expect(world.read('plants.csv')).toBe('id,name,tag\n9007199254740993,Ivy,\n')
  for (const line of ['get 999', 'delete 999 --yes', 'update 999 --name Moss'])
    expect(await run(line)).toEqual({ code: 1, out: '', err: missing })
})

test.each([
  ['create', 'get 1', 'read'],
  ['create,read', 'update 1 --name Moss', 'update'],
  ['create', 'delete --tag x --yes', 'read'],
  ['create', 'import --if-exists update', 'update'],
])(
  'a token that may only %s ends %s with 3, and the message names the right',
  async (allowed, line, missing) => {
    const { address, token } = await serve([], { rights: allowed })
    expect(await at(address, 'create --id 1 --name Fern', { token })).toMatchObject({ code: 0 })
    const { code, err } = await at(address, line, { stdin: '{"id":1,"name":"Oak"}', token })
    const hint = 'Ask the operator of the service who may do this'
    const message = `plants: This token has no right to ${missing} plants (status 403)\n  ${hint}\n`
    expect([code, err.replace(/\. The plants created .*/, '')]).toEqual([3, message])
  },
)

test('a token deletes a plant by its id without the right to read', async () => {
  const { address } = await serve(['--allow', 'create,delete'])
  expect(await at(address, 'create --id 1 --name Fern')).toMatchObject({ code: 0 })
  const err = expect.stringMatching(/^plants: No plant has id 2 in URL\n/)
  expect(await at(address, 'delete 1 2 --yes')).toEqual({
    code: 1,
    out: '{"id":1,"name":"Fern"}\n',
    err,
  })
})

test('a service without creates rejects one, whose hint asks for no other token', async () => {
  const { address, token } = await serve(['--allow', 'read'], { rights: 'create,read' })
  const err =
    'plants: This service does not create plants\n  Ask the operator of the service who may do this\n'
  expect(await at(address, 'create --id 1 --name Fern', { token })).toEqual({
    code: 3,
    out: '',
    err,
  })
  expect(await at(address, 'auth login --from-stdin', { token: '', stdin: token })).toMatchObject({
    code: 0,
  })
})
