import { execFileSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { Hostile } from '../../helpers/hostile.js'
import { posts, Team } from '../../helpers/team.js'
import { printed, refusal, World } from '../../helpers/world.js'

const auth = 'auth token --store team'
const create = 'create --id 1 --name Fern --timeout 20s --store team'

const failure = (program: string, why: string, hint: string) =>
  refusal(`The token command of team (${program}) ${why}`, hint, 3)

describe('a token command that fails', () => {
  const tryIt = 'Try it in a shell'
  const hangs = ['did not finish within 0.3 s', 'If it needs longer, set a longer timeout: --timeout 2m'] as const

  test.each([
    ['echo s3cret; exit 7', 'ended with exit code 7', tryIt],
    ['echo s3cret; kill -KILL $$', 'was killed by SIGKILL', tryIt],
    ['exec tail -f /dev/null', ...hangs],
    ["mkfifo fifo; trap '' TERM; echo s3cret; while :; do read x < fifo; done", ...hangs],
    ['tail -f /dev/null &\necho $! > pid; wait', ...hangs],
  ])('gives no token: %j', async (lines, why, hint) => {
    const team = new Team()
    const program = team.script(lines)
    expect(await team.takes(program).run(`${auth} --timeout 300ms`)).toEqual(failure(program, why, hint))
    if (team.has('pid')) team.background()
  })

  test('has no time with --timeout 0, and otherwise that of its store', async () => {
    const team = new Team().takes('tail -f /dev/null', undefined, { timeout: '200ms' })
    const slow = (seconds: number) => failure('tail', hangs[0].replace('0.3', `${seconds}`), hangs[1])
    expect(await team.run(`${auth} --timeout 0`)).toEqual(slow(0))
    expect(await team.run(auth)).toEqual(slow(0.2))
  })

  test('because it cannot be started gives no token', async () => {
    const team = new Team()
    const plain = team.script('echo s3cret', 'plain', 0o600)
    const env = { PATH: team.home } // one that this user may look through
    for (const [program, why] of [
      ['no-such-program-s', 'there is no such program'],
      [plain, 'permission denied'],
    ] as const) {
      const failed = failure(program, `could not be started: ${why}`, 'Check its name, or use its full path')
      expect(await team.takes(program).run(auth, { env })).toEqual(failed)
    }
  })

  test('stops everything with 3: nothing is sent, not even a saved token', async () => {
    const remote = await Hostile.listen({ posts })
    const team = new Team({
      stores: { team: { address: remote.url, 'token-command': 'false' } },
      tokens: { [remote.url]: { token: 's3cret-saved', savedAt: '2026-01-02T03:04:05.678Z' } },
    })
    for (const line of [create, 'auth status --store team', auth])
      expect(await team.run(line)).toMatchObject({ code: 3, out: '' })
    expect(remote.connections).toBe(0)
  })

  test('because it waits for its own token is not run', async () => {
    const team = new Team()
    const program = team.script('touch ran; echo s3cret')
    const env = { PLANTS_TOKEN_FOR: 'unix:/run/two.sock\nhttps://plants.example.com/v1' }
    const hint = 'Make it read the token from another source'
    const failed = failure(program, 'asks plants for the token that it must print', hint)
    expect(await team.takes(program).run(auth, { env })).toEqual(failed)
    expect(team.has('ran')).toBe(false)
  })
})

describe('a token command is invalid', () => {
  const quote = ['contains a quote, but no shell interprets it', 'Write a space within a word as "\\ ", or use a']

  test.each([
    ['', 'is empty', 'Give it a value'],
    ['"HOME/my command" x', ...quote],
    [`sh -c 'echo s3cret'`, ...quote],
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
    const message = expect.stringContaining(`plants: stores.team.token-command in ${team.file} ${why}\n`)
    for (const line of [create, auth, 'auth status --store team'])
      expect(await team.run(line)).toEqual({ code: 2, out: '', err: message })
    expect(await team.run('doctor --store team')).toMatchObject({ code: 1, out: expect.stringContaining(why) })
  })
})

describe('a token command', () => {
  test('is split at spaces, and no shell reads it', async () => {
    const team = new Team()
    const program = team.script('printf "%s\\n" "$@" > words; echo s3cret', 'my words').replace(' ', '\\ ')
    const special = `$HOME \`id\` $(id) ; echo && rm -rf x | y > z < w & # q * ~ {a,b} a"b" c' caf\u00e9 \u{1f331}`
    expect(await team.takes(` ${program} a b  c d\\ e ${special} `).run(auth)).toEqual(printed('s3cret\n'))
    expect(team.read('words').trim().split('\n')).toEqual(['a', 'b', 'c', 'd e', ...special.split(' ')])
  })

  test('may take longer than a timer can', async () => {
    expect(await new Team().takes('echo s3cret').run(`${auth} --timeout 30d`)).toEqual(printed('s3cret\n'))
  })

  test('may leave a process behind that holds its stdout open', async () => {
    const team = new Team()
    team.takes(team.script('tail -f /dev/null 2> /dev/null &\necho $! > pid; echo s3cret'))
    expect(await team.run(auth)).toEqual(printed('s3cret\n'))
    expect(process.kill(team.background(), 0)).toBe(true)
  })

  test.each(['team', 'postgres://me:s3cret-of-a-database@127.0.0.1/plants'])(
    'has the environment of the program, without its secrets, with PLANTS_STORE=%s',
    async (store) => {
      const team = new Team()
      team.takes(team.script('env > env.txt; echo s3cret'))
      const secrets = { PLANTS_TOKEN: ' ', PLANTS_SERVE_TOKEN: 's3cret-to-serve', PGPASSWORD: 's3cret-of-a-database' }
      const others = { PATH: '/usr/bin:/bin', HOME: team.home, OTHER: 'kept', PGPASSFILE: '/nonexistent/pgpass' }
      const env = { ...secrets, ...others, PLANTS_TOKEN_FOR: 'unix:/run/two.sock:/v1', PLANTS_STORE: store }
      expect(await team.run(auth, { env })).toEqual(printed('s3cret\n'))
      const kept = { ...team.env, ...others, ...(store === 'team' && { PLANTS_STORE: store }) }
      const expected = Object.entries(kept).map((entry) => entry.join('='))
      expected.push('PLANTS_TOKEN_FOR=https://plants.example.com/v1', 'unix:/run/two.sock:/v1')
      const lines = team.read('env.txt').trimEnd().split('\n')
      expect(lines.filter((line) => !/^(PWD|OLDPWD|SHLVL|_)=/.test(line)).toSorted()).toEqual(expected.toSorted())
    },
  )

  test('is not run when PLANTS_TOKEN is set, by another store, or for nothing', async () => {
    const team = new Team()
    const remote = await Hostile.listen({ posts })
    team.takes(team.script('touch ran; echo s3cret'), remote.url)
    const lines = [
      ...['create --id x --name Fern --store team', `create --id 1 --name Fern --store ${remote.url}`, 'stores list'],
      ...['config list', 'auth login --with-token --store team', 'auth logout --store team', 'auth status'],
    ]
    for (const line of lines) {
      await team.run(line, { env: { PLANTS_STORE: './plants.db' }, stdin: 's3cret-typed' })
      expect({ line, isRun: team.has('ran') }).toEqual({ line, isRun: false })
    }
    expect((await team.run(create, { env: { PLANTS_TOKEN: 's3cret-of-env' } })).code).toBe(0)
    expect(team.has('ran')).toBe(false)
  })
})

test.skipIf(process.platform === 'win32')(
  'settings that others can change run no command, and send no saved token',
  async () => {
    const remote = await Hostile.listen({ posts })
    const saved = { token: 's3cret-saved', savedAt: '2026-01-02T03:04:05.678Z' }
    const team = new Team()
    const command = { address: `${remote.url}/v1`, 'token-command': team.script('touch ran; echo s3cret') }
    team.save({
      stores: { team: command, own: { address: remote.url } },
      tokens: { [remote.url]: saved },
    })
    const createAt = (store: string) => team.run(`create --id 1 --name Fern --timeout 1s --store ${store}`)
    chmodSync(team.file, 0o602)
    const mend = `chmod 600 ${team.file}`
    const why = `The settings in ${team.file} are in a file that can be changed by others (mode 602)`
    for (const store of ['team', 'own'])
      expect(await createAt(store)).toEqual(refusal(why, `Check what it contains, then run: ${mend}`))
    expect([remote.connections, team.has('ran')]).toEqual([0, false])
    execFileSync('sh', ['-c', mend])
    for (const store of ['team', 'own']) expect(await createAt(store)).toMatchObject({ code: 0, err: '' })
    expect(team.has('ran')).toBe(true)
  },
)

const longest = 's3cret'.padEnd(4096, 'x')

function prints(text: string): Team {
  const team = new Team()
  team.write('printed', text)
  return team.takes(`cat ${team.home}/printed`)
}

test.each([
  ['A token', 's3cret-A.b_c~d+e/f==', 's3cret-A.b_c~d+e/f=='],
  ['A token in blanks, after a byte order mark', '\ufeff\n\n \ts3cret \r\n\n', 's3cret'],
  ['The longest token', longest, longest],
  ['64 KiB', 's3cret'.padEnd(65_536, '\n'), 's3cret'],
  ['JSON on several lines', '\ufeff\r\n{\r\n  "token": "s3cret",\r\n  "expires": null\r\n}\r\n', 's3cret'],
])('%s from a token command is taken', async (_, text, token) => {
  expect(await prints(text).run(auth)).toEqual(printed(`${token}\n`))
})

test.each(['2999-12-31t23:59:59Z', '3000-01-01T01:59:59.0+02:00'])(
  'a token command can tell that its token expires at %s',
  async (expires) => {
    const { out } = await prints(JSON.stringify({ token: 's3cret', expires })).run(`${auth} --output json`)
    expect(JSON.parse(out)).toEqual({ token: 's3cret', source: 'command', expires: '2999-12-31T23:59:59.000Z' })
  },
)

const mustPrint = 'Try it in a shell: it must print a token, or {"token":"…","expires":"…"}, and nothing else on stdout'
const notOne =
  'printed text that contains a space, a line break or another invalid character. A token consists of letters, digits and -._~+/='

test.each([
  ['blanks', ' \r\n', 'printed nothing'],
  ['a header', 'Bearer s3cret', notOne],
  ['too long a token', `${longest}x`, 'printed text that is longer than 4096 characters'],
  ['broken JSON', '{"token":"s3cret"', 'printed invalid JSON'],
  ['JSON whose token is an array', '{"token":["s3cret"]}', 'printed JSON without a token'],
  ['JSON with a line break in its token', '{"token":"s3cret\\r\\nX: s3cret"}', notOne],
])('%s from a token command is no token, and is not repeated', async (_, text, why) => {
  expect(await prints(text).run(auth)).toEqual(failure('cat', why, mustPrint))
})

const noTime = ['printed an invalid "expires"', 'It must be a time such as 2026-01-02T03:04:05Z'] as const
const late = 'printed a token that expired on 2020-01-02T03:04:05.000Z'

test.each<[unknown, string, string]>([
  ['2999-12-31', ...noTime],
  ['2999-13-31T23:59:59Z', ...noTime],
  ['2020-01-01 00:00 (s3cret)', ...noTime],
  [1, ...noTime],
  ['2020-01-02T03:04:05Z', late, 'Renew the token where the command reads it'],
])('a token that expires at %j is not taken', async (expires, why, hint) => {
  const result = await prints(JSON.stringify({ token: 's3cret', expires })).run(auth)
  expect(result).toEqual(failure('cat', why, hint))
})

test('a token command is killed when it prints more than 64 KiB', async () => {
  const team = new Team()
  const program = team.script("head -c 10000000 /dev/zero | tr '\\0' x; touch done")
  const why = 'printed more than 64 KiB'
  expect(await team.takes(program).run(auth)).toEqual(failure(program, why, mustPrint))
  expect(team.has('done')).toBe(false)
  expect(await team.takes('yes s3cret').run(auth)).toEqual(failure('yes', why, mustPrint))
})
