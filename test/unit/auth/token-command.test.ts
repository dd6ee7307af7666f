import { describe, expect, test } from 'vitest'
import { Hostile } from '../../helpers/hostile.js'
import { posts, Team } from '../../helpers/users.js'
import { isWindows, printed, refusal, World } from '../../helpers/world.js'

const auth = 'auth token --store team'
const create = 'create --id 1 --name Fern --timeout 20s --store team'

const failure = (why: string) =>
  refusal(
    `The token command of team gave no token: ${why}`,
    'Try it in a shell: it must print a token, and nothing else on stdout',
    3,
  )

describe('a token command that fails', () => {
  const hangs = ['it did not finish within 0.3 s', '300ms'] as const

  test.skipIf(isWindows).each([
    ['echo s3cret; exit 7', 'it ended with exit code 7', '1h'],
    ["mkfifo fifo; trap '' TERM; echo s3cret; while :; do read x < fifo; done", ...hangs],
    ['tail -f /dev/null &\necho $! > pid; wait', ...hangs],
  ])('gives no token: %j (needs sh)', async (lines, why, timeout) => {
    const team = new Team()
    const program = team.script(lines)
    const command = `exec ${program}`
    expect(await team.takes(command).run(`${auth} --timeout ${timeout}`)).toEqual(failure(why))
    if (team.has('pid')) team.background()
  })

  test.skipIf(isWindows)('has the time of its store (needs tail)', async () => {
    const team = new Team().takes('exec tail -f /dev/null', undefined, { timeout: '200ms' })
    expect(await team.run(auth)).toEqual(failure('it did not finish within 0.2 s'))
  })

  test.skipIf(isWindows)('because there is no such program gives no token (needs sh)', async () => {
    const result = await new Team().takes('no-such-program-s 2> /dev/null').run(auth)
    expect(result).toEqual(failure('it ended with exit code 127'))
  })

  test.skipIf(isWindows)(
    'that is called by a token command gives no token, whoever it is for (needs sh)',
    async () => {
      const team = new Team()
      const program = team.script('touch ran; echo s3cret')
      const env = { PLANTS_TOKEN_FOR: 'https://other.example.com' }
      expect(await team.takes(program).run(auth, { env })).toEqual(
        failure('it was called by a token command'),
      )
      expect(team.has('ran')).toBe(false)
    },
  )

  test('stops everything with 3: nothing is sent, not even a saved token', async () => {
    const service = await Hostile.listen({ posts })
    const team = new Team({
      stores: { team: { address: service.url, 'token-command': 'false' } },
      tokens: { [service.url]: { token: 's3cret-saved', savedAt: '2026-01-02T03:04:05.678Z' } },
    })
    for (const line of [create, 'auth status --store team', auth])
      expect(await team.run(line)).toMatchObject({ code: 3, out: '' })
    expect(service.connections).toBe(0)
  })
})

describe('a token command is invalid', () => {
  test.each([
    ['', 'is empty', 'Give it a value'],
    ['echo s3cret\0b', 'contains U+0000', 'Remove that character'],
  ])('and not saved, or run: %j', async (command, why, hint) => {
    const settings = { version: 1, stores: { team: { address: 'https://plants.example.com' } } }
    const user = new World(settings)
    const rejected = { code: 2, out: '', err: expect.stringContaining(` ${why}\n  ${hint}`) }
    const add = ['stores', 'add', 'new', 'https://plants.example.com', `--token-command=${command}`]
    expect(await user.run(add)).toEqual(rejected)
    expect(user.saved).toEqual(settings)
    const team = new Team().takes(command)
    const message = expect.stringContaining(
      `plants: stores.team.token-command in ${team.file} ${why}\n`,
    )
    expect(await team.run(auth)).toEqual({ code: 2, out: '', err: message })
  })
})

describe('a token command', () => {
  test.skipIf(isWindows)('is read by a shell (needs sh)', async () => {
    const team = new Team()
    const program = team.script('printf "%s\\n" "$@" > words; echo " s3cret"', 'my words')
    const command = `'${program}' a "b  c" "$OTHER" $(echo d) | tr -d ' '`
    const env = { OTHER: 'from the environment', PATH: process.env['PATH'] ?? '' }
    expect(await team.takes(command).run(auth, { env })).toEqual(printed('s3cret\n'))
    const words = ['a', 'b  c', 'from the environment', 'd']
    expect(team.read('words').trim().split('\n')).toEqual(words)
  })

  test.skipIf(isWindows)(
    'may leave a process behind that holds its stdout open (needs sh)',
    async () => {
      const team = new Team()
      team.takes(team.script('tail -f /dev/null 2> /dev/null &\necho $! > pid; echo s3cret'))
      expect(await team.run(auth)).toEqual(printed('s3cret\n'))
      expect(process.kill(team.background(), 0)).toBe(true)
    },
  )

  test.skipIf(isWindows).each(['team', 'postgres://me:s3cret-of-a-database@127.0.0.1/plants'])(
    'has the environment of the program, without its secrets, with PLANTS_STORE=%s (needs sh)',
    async (store) => {
      const team = new Team()
      team.takes(team.script('env > env.txt; echo s3cret'))
      const secrets = {
        PLANTS_SERVE_TOKEN: 's3cret-to-serve',
        PGPASSWORD: 's3cret-of-a-database',
      }
      const others = {
        PATH: '/usr/bin:/bin',
        HOME: team.home,
        OTHER: 'kept',
        PGPASSFILE: '/nonexistent/pgpass',
      }
      const env = {
        ...secrets,
        ...others,
        PLANTS_STORE: store,
      }
      expect(await team.run(auth, { env })).toEqual(printed('s3cret\n'))
      const kept = { ...team.env, ...others, ...(store === 'team' && { PLANTS_STORE: store }) }
      const expected = Object.entries(kept).map((entry) => entry.join('='))
      expected.push('PLANTS_TOKEN_FOR=https://plants.example.com/v1')
      const lines = team.read('env.txt').trimEnd().split('\n')
      expect(lines.filter((line) => !/^(PWD|OLDPWD|SHLVL|_)=/.test(line)).toSorted()).toEqual(
        expected.toSorted(),
      )
    },
  )

  test('is not run when PLANTS_TOKEN is set, by another store, or for nothing', async () => {
    const team = new Team()
    const service = await Hostile.listen({ posts })
    team.takes(team.script('touch ran; echo s3cret'), service.url)
    for (const line of [
      'create --id x --name Fern --store team',
      `create --id 1 --name Fern --store ${service.url}`,
      'auth logout --store team',
      'auth status',
    ]) {
      await team.run(line, { env: { PLANTS_STORE: './plants.db' }, stdin: 's3cret-typed' })
      expect({ line, isRun: team.has('ran') }).toEqual({ line, isRun: false })
    }
    expect((await team.run(create, { env: { PLANTS_TOKEN: 's3cret-of-env' } })).code).toBe(0)
    expect(team.has('ran')).toBe(false)
  })
})

const longest = 's3cret'.padEnd(4096, 'x')

function prints(text: string): Team {
  const team = new Team()
  team.write('printed', text)
  return team.takes(`cat ${team.home}/printed`)
}

test.skipIf(isWindows).each([
  ['A token in blanks, after a byte order mark', '\ufeff\n\n \ts3cret \r\n\n', 's3cret'],
  ['The longest token', longest, longest],
  ['64 KiB', 's3cret'.padEnd(65_536, '\n'), 's3cret'],
])('%s from a token command is taken (needs sh)', async (_, text, token) => {
  expect(await prints(text).run(auth)).toEqual(printed(`${token}\n`))
})

const notOne =
  'what it printed contains a space, a line break or another invalid character. A token consists of letters, digits and -._~+/='

test.skipIf(isWindows).each([
  ['blanks', ' \r\n', 'what it printed is empty'],
  ['too long a token', `${longest}x`, 'what it printed is longer than 4096 characters'],
  ['JSON', '{"token":"s3cret"}', notOne],
])('%s from a token command is no token, and is not repeated (needs sh)', async (_, text, why) => {
  expect(await prints(text).run(auth)).toEqual(failure(why))
})

test.skipIf(isWindows)('no more than 64 KiB of a token command are read (needs sh)', async () => {
  const { code, err } = await new Team().takes('exec yes s3cret').run(auth)
  expect([code, err]).toEqual([3, expect.stringContaining('gave no token: it ended with')])
})

test('an empty PLANTS_TOKEN is an error, where a token is needed', async () => {
  const team = new Team().takes('echo s3cret')
  const empty = refusal('PLANTS_TOKEN is empty', 'Copy the token again, without any other text')
  for (const token of ['', ' '])
    expect(await team.run(auth, { env: { PLANTS_TOKEN: token } })).toEqual(empty)
  const line = 'create --id 1 --name Fern'
  expect((await team.run(line, { env: { PLANTS_TOKEN: '' } })).code).toBe(0)
})
