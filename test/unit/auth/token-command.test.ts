import { describe, expect, test } from 'vitest'
import { Hostile } from '../../helpers/hostile.js'
import { posts, Team } from '../../helpers/team.js'
import { isWindows } from '../../helpers/windows.js'
import { printed, refusal, World } from '../../helpers/world.js'

const auth = 'auth token --store team'
const create = 'create --id 1 --name Fern --timeout 20s --store team'

const failure = (program: string, why: string, hint: string) =>
  refusal(`The token command of team (${program}) ${why}`, hint, 3)

describe('a token command that fails', () => {
  const tryIt = 'Try it in a shell'
  const hangs = [
    'did not finish within 0.3 s',
    'If it needs longer, set a longer timeout: --timeout 2m',
    '300ms',
  ] as const

  test.skipIf(isWindows).each([
    ['echo s3cret; exit 7', 'ended with exit code 7', tryIt, '1h'],
    ['echo s3cret; kill -KILL $$', 'was killed by SIGKILL', tryIt, '1h'],
    ["mkfifo fifo; trap '' TERM; echo s3cret; while :; do read x < fifo; done", ...hangs],
    ['tail -f /dev/null &\necho $! > pid; wait', ...hangs],
  ])('gives no token: %j (needs sh)', async (lines, why, hint, timeout) => {
    const team = new Team()
    const program = team.script(lines)
    expect(await team.takes(program).run(`${auth} --timeout ${timeout}`)).toEqual(
      failure(program, why, hint),
    )
    if (team.has('pid')) team.background()
  })

  test.skipIf(isWindows)('has the time of its store (needs tail)', async () => {
    const team = new Team().takes('tail -f /dev/null', undefined, { timeout: '200ms' })
    expect(await team.run(auth)).toEqual(failure('tail', hangs[0].replace('0.3', '0.2'), hangs[1]))
  })

  test('because it cannot be started gives no token', async () => {
    const failed = failure(
      'no-such-program-s',
      'could not be started: there is no such program',
      'Check its name, or use its full path',
    )
    const env = { PATH: new World().home } // one that this user may look through
    expect(await new Team().takes('no-such-program-s').run(auth, { env })).toEqual(failed)
  })

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
    [
      `sh -c 'echo s3cret'`,
      'contains a quote, but no shell interprets it',
      'Write a space within a word as "\\ ", or use a',
    ],
    ['echo s3cret\0b', 'contains U+0000', 'Remove that character'],
  ])('and not saved, or run: %j', async (command, why, hint) => {
    const settings = { version: 1, stores: { team: { address: 'https://plants.example.com' } } }
    const user = new World(settings)
    const rejected = { code: 2, out: '', err: expect.stringContaining(` ${why}\n  ${hint}`) }
    const add = ['stores', 'add', 'new', 'https://plants.example.com', `--token-command=${command}`]
    for (const line of [add, ['stores', 'set', 'team', '--token-command', command]])
      expect(await user.run(line)).toEqual(rejected)
    expect(user.saved).toEqual(settings)
    const team = new Team().takes(command)
    const message = expect.stringContaining(
      `plants: stores.team.token-command in ${team.file} ${why}\n`,
    )
    expect(await team.run(auth)).toEqual({ code: 2, out: '', err: message })
  })
})

describe('a token command', () => {
  test.skipIf(isWindows)('is split at spaces, and no shell reads it (needs sh)', async () => {
    const team = new Team()
    const program = team
      .script('printf "%s\\n" "$@" > words; echo s3cret', 'my words')
      .replace(' ', '\\ ')
    const special = `$HOME \`id\` $(id) ; echo && rm -rf x | y > z < w & # q * ~ {a,b} a"b" c' caf\u00e9 \u{1f331}`
    expect(await team.takes(` ${program} a b  c d\\ e ${special} `).run(auth)).toEqual(
      printed('s3cret\n'),
    )
    expect(team.read('words').trim().split('\n')).toEqual([
      'a',
      'b',
      'c',
      'd e',
      ...special.split(' '),
    ])
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
        PLANTS_TOKEN: ' ',
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
        PLANTS_TOKEN_FOR: 'unix:/run/two.sock:/v1',
        PLANTS_STORE: store,
      }
      expect(await team.run(auth, { env })).toEqual(printed('s3cret\n'))
      const kept = { ...team.env, ...others, ...(store === 'team' && { PLANTS_STORE: store }) }
      const expected = Object.entries(kept).map((entry) => entry.join('='))
      expected.push('PLANTS_TOKEN_FOR=https://plants.example.com/v1', 'unix:/run/two.sock:/v1')
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

const mustPrint = 'Try it in a shell: it must print a token, and nothing else on stdout'
const notOne =
  'printed text that contains a space, a line break or another invalid character. A token consists of letters, digits and -._~+/='

test.skipIf(isWindows).each([
  ['blanks', ' \r\n', 'printed nothing'],
  ['too long a token', `${longest}x`, 'printed text that is longer than 4096 characters'],
  ['JSON', '{"token":"s3cret"}', notOne],
])('%s from a token command is no token, and is not repeated (needs sh)', async (_, text, why) => {
  expect(await prints(text).run(auth)).toEqual(failure('cat', why, mustPrint))
})

test.skipIf(isWindows)('no more than 64 KiB of a token command are read (needs sh)', async () => {
  const failed = failure('yes', 'printed more than 64 KiB', mustPrint)
  expect(await new Team().takes('yes s3cret').run(auth)).toEqual(failed)
})
