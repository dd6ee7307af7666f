import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { long, manners, OutputUser, short, when } from '../../helpers/redacting.js'
import { runPlants } from '../../helpers/run.js'

describe('a password in the address of a store is not shown', () => {
  const addresses = [
    'https://user:s3cret@h.example',
    'https://s3cret@h.example',
    'https://user:s3cret/s3cret@h.example',
    'https://user:s3cret@s3cret@h.example',
    'https://user:s3cret?s3cret#s3cret@h.example',
    'https://user:s3cret s3cret@h.example',
    'https:/user:s3cret@h.example',
    'https:user:s3cret@h.example',
    'https:\\\\user:s3cret@h.example',
    'HTTP:///user:s3cret@h.example/@s3cret@/v1',
  ]

  // Each address with every second command, and each command with every second address.
  const numbered = addresses.map((address, index) => ({ address, index }))

  test.each(numbered)('that is given for a run: $address', async ({ address, index }) => {
    const lines = [
      'stores list',
      'config list',
      'config get store',
      'list',
      'create --id 1 --name x',
      'auth status',
      'doctor',
    ]
    for (const line of lines.filter((_, at) => (at + index) % 2 === 0)) {
      const argv = line.split(' ')
      await new OutputUser().someWays([...argv, '--store', address])
      await new OutputUser().someWays(argv, { env: { PLANTS_STORE: address } })
    }
    const user = new OutputUser()
    for (const line of [
      'stores add x ADDRESS',
      'stores use ADDRESS',
      'stores remove ADDRESS',
      'config set store ADDRESS',
    ]) {
      await user.someWays(line.split(' ').map((word) => word.replace('ADDRESS', address)))
    }
  })

  test.each(numbered)('that somebody has saved: $address', async ({ address, index }) => {
    const saved = JSON.stringify({ version: 1, store: address, stores: { team: { address } } })
    const user = new OutputUser().write(saved)
    const asking = [
      'stores list',
      'config list',
      'config get stores.team.address',
      'config get store',
      'auth status',
      'doctor',
      'list',
    ]
    for (const line of asking.filter((_, at) => (at + index) % 2 === 0)) {
      await user.someWays(line.split(' '))
      await user.someWays([...line.split(' '), '--store', 'team'])
      await user.run(line.split(' '), { terminals: ['stdout', 'stderr'] })
    }
    for (const line of ['stores add team https://h.example', 'stores use team', 'config set stores.team.timeout 1s']) {
      await user.someWays(line.split(' '))
    }
    for (const output of ['text', 'json']) {
      const removal = await user.write(saved).run(['stores', 'remove', 'team', '--output', output, '--verbose'])
      expect(removal).toMatchObject({
        code: 0,
        out: expect.stringMatching(/https?:.*\*\*\*@h\.example|https?:.*\*\*\*@\/v1/i),
      })
    }
  })
})

describe('a mistake of ours does not show a token', () => {
  test.each(manners)('in its message and its stack: %s %s', async (output, flag = '--no-color') => {
    for (const token of [short, long]) {
      const env = {
        PLANTS_TOKEN: token,
        PLANTS_SERVE_TOKEN: 's3cret-to-serve',
        get PLANTS_TIMEOUT(): string {
          const error = new TypeError(`${token}, Bearer ${token} and s3cret-to-serve`)
          error.stack = `${error.stack}\n    at ${token} (/home/${token}/x.js:1:1)`
          throw error
        },
      }
      const { code, out, err } = await runPlants(['list', '--output', output ?? '', flag], { env })
      expect({ code, out, err }).toEqual({ code: 70, out: '', err: expect.stringContaining('***, Bearer *** and ***') })
      expect(/^ +at /m.test(err)).toBe(output === 'text')
    }
  })
})

describe('settings that are broken near a token do not show it', () => {
  const entry = `"https://127.0.0.1:1":{"token":"${short}","savedAt":"${when}"}`
  const broken: [string, string][] = [
    ['cut off in the token', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":"${short}`],
    ['cut off behind the token', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":"${short}"`],
    ['a token without quotes', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":${short},"savedAt":"${when}"}}}`],
    ['a token in single quotes', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":'${short}'}}}`],
    ['a line break in the token', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":"${short}\n${short}"}}}`],
    ['an escape in the token', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":"\\x${short}"}}}`],
    ['a comma too much', `{"version":1,"tokens":{${entry},}}`],
    ['text behind it', `{"version":1,"tokens":{${entry}}} ${short}`],
    ['a token alone', short],
    ['a token in quotes', `"${short}"`],
    ['a token as the version', `{"version":"${short}"}`],
    ['a token in place of its entry', `{"version":1,"tokens":{"https://127.0.0.1:1":"${short}"}}`],
    ['a token without its address', `{"version":1,"tokens":"${short}"}`],
    ['a token in an array', `{"version":1,"tokens":["${short}"]}`],
    ['a token without a time', `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":"${short}"}}}`],
    [
      'a token in an array of its entry',
      `{"version":1,"tokens":{"https://127.0.0.1:1":{"token":["${short}"],"savedAt":"${when}"}}}`,
    ],
    ['a token and its address the wrong way round', `{"version":1,"tokens":{"${short}":"https://127.0.0.1:1"}}`],
    ['a token in place of a store', `{"version":1,"stores":{"team":"${short}"}}`],
    ['a token in a later version', `{"version":2,"tokens":{${entry}}}`],
  ]

  test.each(broken)('%s', async (_, text) => {
    const lines = [
      'auth status',
      'list',
      'create --id 1 --name x',
      'stores list',
      'config list',
      'config get timeout',
      'doctor',
    ]
    for (const [content, commands] of [
      [text, lines],
      [text.replaceAll(short, long), ['list', 'doctor']],
    ] as const) {
      const user = new OutputUser().write(content)
      for (const line of commands) {
        await user.someWays(line.split(' '))
      }
      expect(readFileSync(user.file, 'utf8')).toBe(content)
    }
  })
})

describe('what is asked of settings and stores shows no token', () => {
  const address = 'https://127.0.0.1:1'
  const fields = {
    store: 'team',
    stores: {
      team: { address },
      command: { address: 'https://127.0.0.1:2', 'token-command': 'cat token.txt', timeout: '1s' },
      bare: { address: 'https://127.0.0.1:3' },
    },
    tokens: {
      [address]: { token: short, savedAt: when, scope: short },
      'https://127.0.0.1:4': { token: long, savedAt: when },
    },
  }

  test.each([
    'auth status',
    'auth status --store team',
    'auth status --store bare',
    'auth logout --store bare',
    'config list',
    'config get store',
    'config get tokens',
    `config get tokens.${address}`,
    `config get tokens.${address}.token`,
    'config get stores.team.token',
    'config path',
    'stores list',
    'stores add new https://127.0.0.1:1',
    'stores use bare',
    'stores remove team',
    'doctor',
    'doctor --store bare',
    'help environment',
    'list',
  ])('%s', async (line) => {
    const user = new OutputUser().write(
      JSON.stringify({ version: 1, ...fields }).replace('token.txt', '/nonexistent/token.txt'),
    )
    await user.someWays([...line.split(' '), '--timeout', '200ms'])
    await user.someWays([...line.split(' '), '--timeout', '200ms'], { env: { PLANTS_TOKEN: 's3cret-of-env' } })
    for (const terminals of [['stdout' as const], ['stdout' as const, 'stderr' as const]]) {
      await user.run([...line.split(' '), '--timeout', '200ms', '--verbose'], { terminals })
    }
  })

  test.each(['stores list', 'config list', 'doctor', 'auth status', 'config get stores.team.token'])(
    'not even one that somebody has put with a store: %s',
    async (line) => {
      const stores = { team: { address, token: short, headers: { authorization: short } } }
      await new OutputUser()
        .write(JSON.stringify({ version: 1, stores }))
        .someWays([...line.split(' '), '--timeout', '200ms'])
    },
  )

  test('nor the password of a proxy', async () => {
    const proxy = 'http://me:s3cret-of-proxy@127.0.0.1:1'
    const overHttps = ['doctor', 'create --id 1 --name x'].map((line) => [line, 'https://x.invalid'])
    const overHttp = overHttps.map(([line]) => [line, 'http://x.invalid'])
    for (const name of ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY']) {
      for (const value of [
        proxy,
        proxy.slice(7),
        proxy.replace('http', 'ftp'),
        proxy.replace('@', '@@'),
        'http://s3cret-of-proxy@127.0.0.1:1',
      ]) {
        const env = { [name]: value, PLANTS_TOKEN: short }
        for (const [line = '', store = ''] of name === 'HTTP_PROXY' ? overHttp : overHttps) {
          await new OutputUser().someWays(
            [...line.split(' '), '--store', store, '--allow-http', '--timeout', '100ms'],
            { env },
          )
        }
      }
    }
  })
})
