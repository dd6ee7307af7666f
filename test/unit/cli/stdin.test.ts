import { expect, test } from 'vitest'
import { answer, World } from '../../helpers/world.js'

test.each(['get -', 'delete - --yes', 'update - --tag x'])(
  '%s takes /dev/null for an empty list',
  async (args) => {
    const user = new World()
    await user.run('create --id 1 --name A')
    expect(await user.run(args)).toEqual(answer())
    expect(await user.run(args, { stdin: '' })).toEqual(answer())
  },
)

test('import - takes /dev/null for no plants', async () => {
  const none = { code: 0, err: 'plants: warning: The input contains no records\n' }
  expect(await new World().run('import -')).toMatchObject(none)
})
