import { expect, test } from 'vitest'
import { bash } from '../../helpers/bash.js'
import { World } from '../../helpers/world.js'

test.each([
  [20, 'create --id "$id" --name "$name"'],
  [3, 'get "$id"'],
  [3, 'delete "$id" --yes'],
])('a loop over %i lines leaves its stdin to the next turn: plants %s', async (count, command) => {
  const user = new World()
  const ids = Array.from({ length: count }, (_, index) => index + 1)
  user.write('list', ids.map((id) => `${id} Plant ${id}\n`).join(''))
  if (!command.startsWith('create')) {
    const stdin = ids.map((id) => `{"id":${id},"name":"Old"}\n`).join('')
    expect(await user.run('import', { stdin })).toMatchObject({ code: 0 })
  }
  const { code, out, err } = await bash(
    user,
    `while read -r id name; do "$plants" ${command}; done < list`,
  )
  expect({ code, turns: out.split('\n').length - 1, err }).toEqual({
    code: 0,
    turns: count,
    err: '',
  })
})
