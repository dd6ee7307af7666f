import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ownService, token } from '../../helpers/remote.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { World } from '../../helpers/world.js'

test('the life of a token: it is saved, used, removed, and saved again until its store is removed', async () => {
  const url = await ownService({ host: '127.0.0.1', port: 0 }, join(temporaryFolder(), 'plants.db'))
  const user = new World()
  const env = { NO_COLOR: '1' }
  const create = 'create --id 1 --name Fern'
  const rejected = /^plants: There is no token for \S+\n {2}Set PLANTS_TOKEN, or save one with: plants auth login\n$/
  for (const [line, shown] of [
    [`stores add team ${url}`, /^Saved the store team/],
    ['stores use team', /^Set store to team\n$/],
    [create, rejected],
    ['auth login --with-token', /^Saved the token for team \(\S+\), which accepts it\n$/],
    [create, /^Planted Fern \(id 1\)\n$/],
    ['auth status', /^team \(\S+\): saved on \d{4}-\d\d-\d\dT\d\d:\d\dZ in \/\S+\n$/],
    ['auth token', new RegExp(`^${token}\n$`)],
    ['auth logout', /^Removed the token for team \(\S+\)\n$/],
    [create, rejected],
    ['auth logout', /^There was no saved token for team \(\S+\)\n$/],
    ['auth login --with-token', /^Saved the token/],
    ['stores remove team', /^Removed the store team and its token\. .* The default store is now local\n$/],
  ] as const) {
    const { code, out, err } = await user.run(line, { env, stdin: token, terminals: ['stdout', 'stderr'] })
    expect({ line, code, shown: out + err }).toEqual({
      ...{ line, code: shown === rejected ? 3 : 0 },
      shown: expect.stringMatching(shown),
    })
    const isSaved = user.read('config/settings.json').includes(token)
    if (/logout|remove/.test(line)) expect({ line, isSaved }).toEqual({ line, isSaved: false })
  }
})
