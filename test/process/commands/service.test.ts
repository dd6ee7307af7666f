import { expect, test } from 'vitest'
import { serve, testToken } from '../../helpers/service.js'
import { answer, World } from '../../helpers/world.js'

const unsafe = '9007199254740993'

test('commands read, change and export the plants of a service', async () => {
  const { address } = await serve(['--allow', 'create,read,update,delete'])
  const world = new World()
  const run = (line: string, stdin = '') =>
    world.run(`${line} --store ${address}`, { stdin, env: { PLANTS_TOKEN: testToken } })
  const ferns = (tag: string, from = 1000) =>
    answer(
      ...Array.from({ length: 1150 - from }, (_, at) => ({ id: from + at, name: 'Fern', tag })),
    )
  const { out } = ferns('many')
  await run('import', `${out}{"id":${unsafe},"name":"Sage"}\n`)
  expect(await run('list --tag many --search FER')).toEqual(ferns('many'))
  expect(await run('get -', `${out}999`)).toMatchObject({ code: 1, out })
  expect(await run('update - --tag more', out)).toEqual(ferns('more'))
  expect(await run('delete 1000 999 --ignore-missing --yes')).toMatchObject({ code: 0 })
  const deleted = { code: 0, out: ferns('more', 1001).out }
  expect(await run('delete --tag more --search FER --yes')).toMatchObject(deleted)
  expect(await run('export plants.csv')).toMatchObject({ code: 0, err: '' })
  expect(world.read('plants.csv')).toBe(`id,name,tag\n${unsafe},Sage,\n`)
})
