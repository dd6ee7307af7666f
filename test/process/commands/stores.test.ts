import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { garden } from '../../helpers/gardener.js'
import { terminal } from '../../helpers/terminal.js'
import { World } from '../../helpers/world.js'

test('stores are added, listed and removed on a terminal', async () => {
  const user = new World()
  const show = async (...args: string[]) => {
    const { code, screen } = await terminal(args, user.home, { ...user.env, PLANTS_DATA_DIR: '/data' }).ended
    return { code, screen: stripVTControlCharacters(screen).replaceAll('\r', '') }
  }
  const use = 'Use it with --store garden, or make it the default: plants stores use garden'
  expect(await show('stores', 'add', 'garden', garden)).toEqual({
    code: 0,
    screen: `Saved the store garden, ${garden}. ${use}\n`,
  })
  expect(await show('stores', 'list')).toEqual({
    code: 0,
    screen: '   NAME    ADDRESS          SETTINGS\n*  local   /data/plants.db\n   garden  /srv/garden.db\n',
  })
  expect(await show('stores', 'remove', 'garden')).toEqual({
    code: 0,
    screen: `Removed the store garden. Its plants are still in ${garden}\n`,
  })
})
