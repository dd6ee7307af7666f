import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Hostile, json } from '../../helpers/hostile.js'
import { runPlants } from '../../helpers/run.js'
import { failed, found, posts, sh, Team } from '../../helpers/team.js'

describe('a token command that does not end well', () => {
  const tellsWhy = 'Try it in a shell'

  test.each<[string, string, string]>([
    ['with a code', 'echo s3cret; exit 7', 'ended with exit code 7'],
    ['by a signal', 'echo s3cret; kill -KILL $$', 'was killed by SIGKILL'],
    ['by SIGTERM', 'echo s3cret; kill -TERM $$', 'was killed by SIGTERM'],
    ['by a code that stands for a signal', 'echo s3cret; exit 137', 'ended with exit code 137'],
    ['with JSON and a code', 'echo \'{"token":"s3cret"}\'; exit 1', 'ended with exit code 1'],
  ])('%s gives no token', async (_, lines, why) => {
    const team = new Team()
    const program = team.program('command', sh(lines))
    expect(await team.takes(program).token()).toEqual(failed(program, why, tellsWhy))
  })

  test.each<[string, string, string]>([
    ['hangs', 'exec tail -f /dev/null', '300ms'],
    ['hangs and does not heed SIGTERM', "trap '' TERM; echo s3cret; while :; do read x < FIFO; done", '300ms'],
    ['hangs behind its output', 'echo s3cret; exec tail -f /dev/null', '300ms'],
    ['hangs, when it may take no time at all', 'exec tail -f /dev/null', '0'],
  ])('because it %s gives no token', { timeout: 15_000 }, async (_, lines, timeout) => {
    const team = new Team()
    const fifo = join(team.folder, 'fifo')
    const program = team.program('command', sh(`mkfifo ${fifo} 2> /dev/null\n${lines.replaceAll('FIFO', fifo)}`))
    const seconds = timeout === '0' ? '0' : '0.3'
    expect(await team.takes(program).token('--timeout', timeout)).toEqual(
      failed(program, `did not finish within ${seconds} s`, 'If it needs longer, set a longer timeout: --timeout 2m'),
    )
  })

  test('because it waits for a process of its own gives no token, and is not waited for', async () => {
    const team = new Team()
    const program = team.program('command', sh(`tail -f /dev/null &\necho $! > ${team.folder}/pid\nwait`))
    onTestFinished(() => void process.kill(parseInt(team.noted('pid'), 10), 'SIGKILL'))
    expect(await team.takes(program).token('--timeout', '300ms')).toMatchObject({
      code: 3,
      err: expect.stringContaining('within 0.3 s'),
    })
  })

  test('may take longer than a timer can', async () => {
    const team = new Team().takes('echo s3cret')
    expect(await team.token('--timeout', '30d')).toEqual(found({ token: 's3cret', source: 'command' }))
  })

  test('may take as long as is saved with the store', async () => {
    const team = new Team()
    const stores = {
      team: { address: 'https://plants.example.com', 'token-command': 'tail -f /dev/null', timeout: '200ms' },
    }
    writeFileSync(join(team.folder, 'settings.json'), JSON.stringify({ version: 1, stores }), { mode: 0o600 })
    expect(await team.token()).toMatchObject({ code: 3, err: expect.stringContaining('did not finish within 0.2 s') })
  })

  const nameIt = 'Check its name, or use its full path'

  test.each<[string, string, string]>([
    ['is not there', '/nonexistent/command', 'could not be started: there is no such program'],
    ['is not on the PATH', 'no-such-program-s', 'could not be started: there is no such program'],
    ['may not be run', 'FOLDER/plain', 'could not be started: permission denied'],
    ['is a directory', 'FOLDER', 'could not be started: permission denied'],
    ['needs a program that is not there', 'FOLDER/orphan', 'could not be started: there is no such program'],
  ])('because it %s gives no token', async (_, command, why) => {
    const team = new Team()
    team.program('plain', sh('echo s3cret'), 0o600)
    team.program('orphan', '#!/nonexistent/shell\necho s3cret\n')
    const program = command.replace('FOLDER', team.folder)
    team.env['PATH'] = team.folder // one that this user may look through
    expect(await team.takes(program).token()).toEqual(failed(program, why, nameIt))
  })

  test.each(['', ' ', '\t\n'])('is refused when it is no word: %j', async (command) => {
    const team = new Team()
    const add = ['stores', 'add', 'team', 'https://plants.example.com', `--token-command=${command}`]
    expect(await runPlants(add, { env: team.env })).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining('--token-command'),
    })
    await runPlants(['stores', 'add', 'team', 'https://plants.example.com'], { env: team.env })
    const set = ['config', 'set', 'stores.team.token-command', command]
    expect(await runPlants(set, { env: team.env })).toMatchObject({ code: 2, out: '' })
    expect((await team.takes(command).token()).code).toBe(2)
  })

  test('stops everything with 3, and nothing is sent', async () => {
    const remote = await Hostile.listen({ posts })
    const team = new Team().takes('false', remote.url)
    for (const argv of [
      ['create', '--id', '1', '--name', 'Fern'],
      ['auth', 'status'],
      ['auth', 'token'],
    ]) {
      const { code, out } = await runPlants([...argv, '--store', 'team'], { env: team.env })
      expect({ argv, code, out }).toEqual({ argv, code: 3, out: '' })
    }
    expect(remote.connections).toBe(0)
  })
})

describe.skipIf(process.platform === 'win32')('settings that others can change', () => {
  const change = (mode: string) => `can be changed by others (mode ${mode})`
  const replace = (folder: string, mode: string) =>
    `can be replaced by others, who can write to ${folder} (mode ${mode})`

  test.each<[string, (team: Team) => { why: string; fix: string }]>([
    ['a file of mode 666', (team) => opened(team.settings, 0o666, change('666'), '600')],
    ['a file of mode 620', (team) => opened(team.settings, 0o620, change('620'), '600')],
    ['a file in a directory of mode 770', (team) => opened(team.folder, 0o770, replace(team.folder, '770'), '700')],
    [
      'a link into a directory of mode 777',
      (team) => opened(linked(team), 0o777, replace(join(team.folder, 'shared'), '777'), '700'),
    ],
  ])('run no command and send no saved token or password: %s', async (_, open) => {
    const remote = await Hostile.listen({ posts })
    const team = new Team()
    const savedAt = '2026-01-02T03:04:05.678Z'
    const database = 'postgres://plants@127.0.0.1:1/plants'
    const stores = {
      team: {
        address: `${remote.url}/v1`,
        'token-command': team.program('ask', sh(`touch ${team.folder}/ran; echo s3cret`)),
      },
      own: { address: remote.url },
      shared: { address: database },
    }
    const tokens = { [remote.url]: { token: 's3cret-own', savedAt }, [database]: { token: 's3cret-password', savedAt } }
    writeFileSync(team.settings, JSON.stringify({ version: 1, stores, tokens }), { mode: 0o600 })
    const create = (store: string, env = {}) =>
      runPlants(['create', '--id', '1', '--name', 'Fern', '--store', store, '--timeout', '1s'], {
        env: { ...team.env, ...env },
      })
    expect(await create('own')).toMatchObject({ code: 0 })
    const before = remote.connections
    const { why, fix } = open(team)
    for (const [store, refusal] of [
      ['team', 'The token command of team is not run'],
      ['own', `The saved token for ${remote.url} is not sent`],
      ['shared', `The saved password for ${database} is not sent`],
    ] as const) {
      const { code, out, err } = await create(store)
      const expected = `plants: ${refusal}: the settings in ${team.settings} ${why}\n  Check what they contain, then run: ${fix}\n`
      expect({ store, code, out, err }).toEqual({ store, code: 3, out: '', err: expect.stringContaining(expected) })
    }
    expect({ connections: remote.connections, ran: existsSync(join(team.folder, 'ran')) }).toEqual({
      connections: before,
      ran: false,
    })
    expect(await runPlants(['config', 'get', 'stores.own.address'], { env: team.env })).toMatchObject({
      code: 0,
      out: `${remote.url}\n`,
    })
    expect(await create('own', { PLANTS_TOKEN: 's3cret' })).toMatchObject({ code: 0 })
    execFileSync('sh', ['-c', fix])
    expect(await create('team')).toMatchObject({ code: 0, err: '' })
    expect(existsSync(join(team.folder, 'ran'))).toBe(true)
  })

  function opened(path: string, mode: number, why: string, fix: string) {
    chmodSync(path, mode)
    return { why, fix: `chmod ${fix} ${path}` }
  }

  /** Moves the settings to another directory, where a link leads. */
  function linked(team: Team): string {
    const shared = join(team.folder, 'shared')
    mkdirSync(shared, { mode: 0o700 })
    renameSync(team.settings, join(shared, 'plants.json'))
    symlinkSync('shared/plants.json', team.settings)
    return shared
  }
})

describe('the words of a token command', () => {
  test.each<[string, string[]]>([
    ['a b  c', ['a', 'b', 'c']],
    ['a\\ b c', ['a b', 'c']],
    [' a ', ['a']],
    ['$HOME $PATH `id` $(id)', ['$HOME', '$PATH', '`id`', '$(id)']],
    [
      '; echo s3cret && rm -rf x | y > z < w & # q',
      [';', 'echo', 's3cret', '&&', 'rm', '-rf', 'x', '|', 'y', '>', 'z', '<', 'w', '&', '#', 'q'],
    ],
    ['* ~ {a,b}', ['*', '~', '{a,b}']],
    ['a"b" c\'', ['a"b"', "c'"]],
    ['caf\u00e9 \u{1f331}', ['caf\u00e9', '\u{1f331}']],
  ])('%s are read by no shell', async (text, words) => {
    const team = new Team()
    const program = team.program(
      'words',
      sh(`for word in "$@"; do printf '%s\\n' "$word" >> ${team.folder}/words.txt; done; echo s3cret`),
    )
    expect((await team.takes(`${program} ${text}`).token()).code).toBe(0)
    expect(team.noted('words.txt').split('\n').slice(0, -1)).toEqual(words)
  })

  test.each([
    `"FOLDER/my command" x`,
    `'FOLDER/my command'`,
    `sh -c 'echo s3cret'`,
    `pass "show plants"`,
    `pass '' x`,
    '"',
  ])('are refused when one begins with a quote, which no shell would read: %s', async (text) => {
    const team = new Team()
    const command = text.replace('FOLDER', team.folder)
    const refused = {
      ...{ code: 2, out: '' },
      err: expect.stringMatching(
        / contains a quote, but no shell interprets it\n {2}Write a space within a word as "\\ ", or use a script/,
      ),
    }
    const address = 'https://plants.example.com'
    const env = { env: team.env }
    expect(await runPlants(['stores', 'add', 'team', address, `--token-command=${command}`], env)).toEqual(refused)
    expect((await runPlants(['stores', 'list'], env)).out.trimEnd().split('\n')).toHaveLength(1)
    await runPlants(['stores', 'add', 'team', address], env)
    expect(await runPlants(['config', 'set', 'stores.team.token-command', command], env)).toEqual(refused)
    expect((await runPlants(['config', 'get', 'stores.team.token-command'], env)).code).toBe(1)
    expect(await team.takes(command).token()).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining('contains a quote'),
    })
  })

  test('are refused when they hold U+0000, and not repeated', async () => {
    const team = new Team()
    const command = 'echo s3cret\0b'
    const argv = ['stores', 'add', 'team', 'https://plants.example.com', `--token-command=${command}`]
    expect(await runPlants(argv, { env: team.env })).toMatchObject({ code: 2, out: '' })
    await runPlants(argv.slice(0, 4), { env: team.env })
    const set = ['config', 'set', 'stores.team.token-command', command]
    expect(await runPlants(set, { env: team.env })).toMatchObject({ code: 2, out: '' })
    team.takes(command)
    for (const line of ['auth token', 'auth status', 'create --id 1 --name Fern', 'doctor']) {
      const { code, err } = await runPlants([...line.split(' '), '--store', 'team'], { env: team.env })
      const refused = {
        code: 2,
        err: expect.stringMatching(/^plants: stores\.team\.token-command in .* contains U\+0000\n/),
      }
      const failed = { code: 1, err: 'plants: 2 checks failed\n  See the hints above\n' }
      expect({ line, code, err }).toEqual({ line, ...(line === 'doctor' ? failed : refused) })
    }
  })

  test('may stand in a program whose name has a space', async () => {
    const team = new Team()
    const program = team.program('my command', sh('echo s3cret'))
    expect(await team.takes(program.replace(' ', '\\ ')).token()).toEqual(found({ token: 's3cret', source: 'command' }))
  })
})

describe('a token command', () => {
  const fern = ['create', '--store', 'team', '--timeout', '20s']

  test('is run once a run', async () => {
    const team = new Team()
    const remote = await Hostile.listen({
      posts: [json(503, { error: 503, message: 'Not now' }, { 'Retry-After': 0 }), ...posts],
    })
    team.takes(team.program('count', sh(`echo run >> ${team.folder}/runs; echo s3cret`)), remote.url)
    const { code } = await runPlants([...fern, '--id', '1', '--name', 'Fern'], { env: team.env })
    const sent = remote.posts.map(({ headers }) => headers['authorization'])
    expect({ code, sent, runs: team.noted('runs') }).toEqual({
      code: 0,
      sent: ['Bearer s3cret', 'Bearer s3cret'],
      runs: 'run\n',
    })
  })

  test.each<[string, string[], Record<string, string>]>([
    ['when PLANTS_TOKEN is set', [...fern, '--id', '1', '--name', 'Fern'], { PLANTS_TOKEN: 's3cret-of-env' }],
    ['for a plant that is none', [...fern, '--id', 'x', '--name', 'Fern'], {}],
    ['for a file', ['list', '--store', 'FOLDER/plants.db'], {}],
    ['for its address without its name', ['create', '--id', '1', '--name', 'Fern', '--store', 'URL'], {}],
    ['to name the stores', ['stores', 'list'], {}],
    ['to list the settings', ['config', 'list'], {}],
    ['to remove a saved token', ['auth', 'logout', '--store', 'team'], {}],
    ['to save a token', ['auth', 'login', '--with-token', '--store', 'team'], {}],
    ['for the status of another store', ['auth', 'status'], {}],
  ])('is not run %s', async (_, argv, env) => {
    const team = new Team()
    const remote = await Hostile.listen({ posts })
    team.takes(team.program('count', sh(`echo run >> ${team.folder}/runs; echo s3cret`)), remote.url)
    const line = argv.map((word) => word.replace('FOLDER', team.folder).replace('URL', remote.url))
    await runPlants(line, {
      env: { ...team.env, PLANTS_STORE: join(team.folder, 'plants.db'), ...env },
      stdin: 's3cret-typed',
    })
    expect(team.noted('runs')).toBe('')
  })

  test('that fails is not replaced by a token that was saved', async () => {
    const remote = await Hostile.listen({ posts })
    const team = new Team()
    const stores = { team: { address: remote.url, 'token-command': 'false' } }
    const tokens = { [remote.url]: { token: 's3cret-saved', savedAt: '2026-01-02T03:04:05.678Z' } }
    writeFileSync(join(team.folder, 'settings.json'), JSON.stringify({ version: 1, stores, tokens }), { mode: 0o600 })
    expect((await runPlants([...fern, '--id', '1', '--name', 'Fern'], { env: team.env })).code).toBe(3)
    expect(remote.connections).toBe(0)
  })
})
