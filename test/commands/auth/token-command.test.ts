import { describe, expect, test } from 'vitest'
import { isWindows, Sandbox, toTextResult } from '../../helpers/sandbox/sandbox.js'
import {
  buildSavedTokens,
  posts,
  TokenCommandSandbox,
} from '../../helpers/sandbox/token-command-sandbox.js'
import { ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'

// What such a failure says is in transcripts/auth.txt.

const auth = 'auth token --store team'
const create = 'create --id 1 --name Fern --timeout 20s --store team'
const failure = (why: string) => ({
  code: 3,
  out: '',
  err: expect.stringContaining(`printed no token: ${why}`),
})

test.skipIf(isWindows).each([
  ['echo s3cret; exit 7', 'it failed with exit code 7', '1h'],
  [
    "mkfifo fifo; trap '' TERM; echo s3cret; while :; do read x < fifo; done",
    'it did not finish within 0.3 s',
    '300ms',
  ],
])('a token command that fails gives no token: %j (needs sh)', async (lines, why, timeout) => {
  const team = new TokenCommandSandbox()
  const command = `exec ${team.writeScript(lines)}`
  expect(await team.saveTokenCommand(command).run(`${auth} --timeout ${timeout}`)).toEqual(
    failure(why),
  )
})

test('after a token command that fails, nothing is sent, not even a saved token', async () => {
  const service = await ScriptedServer.listen({ posts })
  const team = new TokenCommandSandbox({
    stores: { team: { address: service.url, 'token-command': 'false' } },
    tokens: buildSavedTokens(service.url),
  })
  for (const line of [create, 'auth status --store team', auth])
    expect(await team.run(line)).toMatchObject({ code: 3, out: '' })
  expect(service.connections).toBe(0)
})

test.each(['', 'echo s3cret\0b'])(
  'a token command is neither saved nor run if it is %j',
  async (command) => {
    const settings = { version: 1, stores: { team: { address: 'https://plants.example.com' } } }
    const user = new Sandbox(settings)
    const add = ['stores', 'add', 'new', 'https://plants.example.com', `--token-command=${command}`]
    expect(await user.run(add)).toMatchObject({ code: 2, out: '' })
    expect(user.saved).toEqual(settings)
    const team = new TokenCommandSandbox().saveTokenCommand(command)
    const err = expect.stringContaining(`stores.team.token-command in ${team.file} `)
    expect(await team.run(auth)).toEqual({ code: 2, out: '', err })
  },
)

describe.skipIf(isWindows)('a token command (needs sh)', () => {
  test('is run by a shell', async () => {
    const team = new TokenCommandSandbox()
    const program = team.writeScript('printf "%s\\n" "$@" > words; echo " s3cret"', 'my words')
    const command = `'${program}' a "b  c" "$OTHER" $(echo d) | tr -d ' '`
    const env = { OTHER: 'from the environment', PATH: process.env['PATH'] ?? '' }
    expect(await team.saveTokenCommand(command).run(auth, { env })).toEqual(
      toTextResult('s3cret\n'),
    )
    expect(team.read('words')).toBe('a\nb  c\nfrom the environment\nd\n')
  })

  test.each(['team', 'postgres://me:s3cret-of-a-database@127.0.0.1/plants'])(
    'has the environment of the program without its secrets, with PLANTS_STORE=%s',
    async (store) => {
      const team = new TokenCommandSandbox()
      team.saveTokenCommand(team.writeScript('env > env.txt; echo s3cret'))
      const secrets = { PLANTS_SERVE_TOKEN: 's3cret-to-serve', PGPASSWORD: 's3cret-of-a-database' }
      const others = { PATH: '/usr/bin:/bin', HOME: team.home, OTHER: 'kept', PGPASSFILE: '/none' }
      const env = { ...secrets, ...others, PLANTS_STORE: store }
      expect(await team.run(auth, { env })).toEqual(toTextResult('s3cret\n'))
      const kept = {
        ...team.env,
        ...others,
        ...(store === 'team' && { PLANTS_STORE: store }),
        PLANTS_TOKEN_FOR: 'https://plants.example.com/v1',
      }
      const found = team.read('env.txt').trimEnd().split('\n')
      const ofShell = /^(PWD|OLDPWD|SHLVL|_)=/
      expect(found.filter((line) => !ofShell.test(line)).toSorted()).toEqual(
        Object.entries(kept)
          .map((entry) => entry.join('='))
          .toSorted(),
      )
    },
  )

  test('is not run when PLANTS_TOKEN is set, for another store, or without a need', async () => {
    const team = new TokenCommandSandbox()
    const service = await ScriptedServer.listen({ posts })
    team.saveTokenCommand(team.writeScript('touch ran; echo s3cret'), service.url)
    for (const line of [
      'create --id x --name Fern --store team',
      `create --id 1 --name Fern --store ${service.url}`,
      'auth logout --store team',
      `${create} --dry-run`,
      'auth status',
    ]) {
      await team.run(line, { env: { PLANTS_STORE: './plants.db' }, stdin: 's3cret-typed' })
      expect({ line, isRun: team.has('ran') }).toEqual({ line, isRun: false })
    }
    expect((await team.run(create, { env: { PLANTS_TOKEN: 's3cret-of-env' } })).code).toBe(0)
    expect(team.has('ran')).toBe(false)
  })

  const longest = 's3cret'.padEnd(4096, 'x')

  test.each([
    ['a token in blanks, after a byte order mark', '\ufeff\n\n \ts3cret \r\n\n', 's3cret'],
    ['the longest token', longest, longest],
    ['blanks', ' \r\n', undefined],
    ['too long a token', `${longest}x`, undefined],
    ['JSON', '{"token":"s3cret"}', undefined],
    ['more than 64 KiB', 's3cret\n'.repeat(100_000), undefined],
  ])('must print exactly one token: %s', async (_, text, token) => {
    const team = new TokenCommandSandbox()
    team.write('printed', text)
    const result = await team.saveTokenCommand(`cat ${team.home}/printed`).run(auth)
    expect(result).toEqual(token === undefined ? failure('') : toTextResult(`${token}\n`))
  })
})
