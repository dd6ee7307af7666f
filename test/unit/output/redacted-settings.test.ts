import { describe, expect, test } from 'vitest'
import { everyWay, linesOf, long, savedAt, short } from '../../helpers/redacting.js'
import { runPlants } from '../../helpers/run.js'
import { World } from '../../helpers/world.js'

describe.each([
  ['short', short],
  ['long', long],
])('a defect does not show a %s token', (_, token) => {
  test.each(['text', 'json', 'text --verbose', 'json --verbose'])(
    'in its message and its stack, with --output %s',
    async (output) => {
      const env = {
        PLANTS_TOKEN: token,
        PLANTS_SERVE_TOKEN: 's3cret-to-serve',
        get PLANTS_TIMEOUT(): string {
          const error = new TypeError(`${token}, Bearer ${token} and s3cret-to-serve`)
          error.stack = `${error.stack}\n    at ${token} (/home/${token}/x.js:1:1)`
          throw error
        },
      }
      // World.run would read the variable itself
      const { code, out, err } = await runPlants(`list --output ${output}`.split(' '), { env })
      expect({ code, out, err }).toEqual({ code: 70, out: '', err: expect.stringContaining('***, Bearer *** and ***') })
      expect(/^ +at /m.test(err)).toBe(output.startsWith('text'))
    },
  )
})

const url = 'https://127.0.0.1:1'

describe('settings that are broken near a token do not show it', () => {
  const entry = `"URL":{"token":"T","savedAt":"${savedAt}"}`

  // T stands for the token, URL for its address. What the messages say is in unit/config/broken-file.test.ts.
  test.each([
    '{"version":1,"tokens":{"URL":{"token":"T',
    '{"version":1,"tokens":{"URL":{"token":T}}}',
    '{"version":1,"tokens":{"URL":{"token":"T\nT"}}}',
    '{"version":1,"tokens":{"URL":{"token":"\\xT"}}}',
    `{"version":1,"tokens":{${entry}}} T`,
    '"T"',
    '{"version":"T"}',
    '{"version":1,"tokens":{"URL":"T"}}',
    '{"version":1,"tokens":["T"]}',
    '{"version":1,"tokens":{"URL":{"token":"T"}}}',
    '{"version":1,"tokens":{"T":"URL"}}',
    '{"version":1,"stores":{"team":"T"}}',
    `{"version":2,"tokens":{${entry}}}`,
  ])('%j', async (text) => {
    for (const token of [short, long]) {
      const user = new World()
      user.save(text.replaceAll('URL', url).replaceAll(/T(?!\d)/g, token))
      for (const line of ['list', 'doctor', 'auth status', 'create --id 1 --name x', 'config get timeout'])
        await everyWay(user, line)
    }
  })
})

describe('a command that is about settings and stores shows no token', () => {
  const settings = {
    store: 'team',
    stores: {
      team: { address: url },
      command: { address: 'https://127.0.0.1:2', 'token-command': 'cat /nonexistent/token.txt', timeout: '1s' },
      bare: { address: 'https://127.0.0.1:3', token: short, headers: { authorization: short } },
    },
    tokens: {
      [url]: { token: short, savedAt, scope: short },
      'https://127.0.0.1:4': { token: long, savedAt },
    },
  }

  test.each(
    linesOf(`
      auth status
      auth status --store team
      auth status --store bare
      auth logout --store bare
      config list
      config get store
      config get tokens
      config get tokens.${url}
      config get tokens.${url}.token
      config get stores.team.token
      config get stores.bare.token
      config path
      stores list
      stores add new https://127.0.0.1:1
      stores use bare
      stores remove team
      doctor
      doctor --store bare
      help environment
      list`),
  )('%s', async (line) => {
    const user = new World(settings)
    await everyWay(user, `${line} --timeout 200ms`)
    await everyWay(user, `${line} --timeout 200ms`, { env: { PLANTS_TOKEN: 's3cret-of-env' } })
    await user.run(`${line} --timeout 200ms --verbose`, { terminals: ['stdout'] })
    await user.run(`${line} --timeout 200ms --verbose`, { terminals: ['stdout', 'stderr'] })
  })

  const proxy = 'http://me:s3cret-of-proxy@127.0.0.1:1'

  test.each([proxy, proxy.slice(7), proxy.replace('http', 'ftp'), proxy.replace('@', '@@'), proxy.replace('me:', '')])(
    'nor the password of the proxy %s',
    async (value) => {
      for (const name of ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY']) {
        const store = `--store ${name === 'HTTP_PROXY' ? 'http' : 'https'}://x.invalid --allow-http --timeout 100ms`
        for (const line of ['doctor', 'create --id 1 --name x'])
          await everyWay(new World(), `${line} ${store}`, { env: { [name]: value, PLANTS_TOKEN: short } })
      }
    },
  )
})
