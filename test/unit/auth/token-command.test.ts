import { once } from 'node:events'
import { chownSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Hostile, json } from '../../helpers/hostile.js'
import { bin, plants, start } from '../../helpers/process.js'
import { type Result, runPlants } from '../../helpers/run.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'

const path = process.env['PATH'] ?? ''
const isRoot = process.getuid?.() === 0
const posts = [json(200, { name: 'Fern' })]

/** A folder with scripts, and settings in which the store `team` takes its token from a command. */
class Team {
  readonly folder = temporaryFolder()
  readonly env: Record<string, string> = { PATH: path, PLANTS_CONFIG_DIR: this.folder }

  /** Makes a program, and gives its path. */
  program(name: string, text: string, mode = 0o700): string {
    const file = join(this.folder, name)
    writeFileSync(file, text, { mode })
    return file
  }

  takes(command: string, address = 'https://plants.example.com/v1'): this {
    const stores = { team: { address, 'token-command': command } }
    writeFileSync(join(this.folder, 'settings.json'), JSON.stringify({ version: 1, stores }), { mode: 0o600 })
    return this
  }

  /** What `auth token` makes of it, in this process. */
  async token(...flags: string[]): Promise<Result> {
    return runPlants(['auth', 'token', '--store', 'team', '--output', 'json', ...flags], { env: this.env })
  }

  /** What lies in a file of the folder, or nothing. */
  noted(name: string): string {
    return readFileSync(join(this.folder, name), { encoding: 'utf8', flag: 'a+' })
  }
}

function sh(lines: string): string {
  return `#!/bin/sh\n${lines}\n`
}

function found(fields: Record<string, unknown>): Result {
  return { code: 0, out: `${JSON.stringify(fields)}\n`, err: '' }
}

function failed(program: string, why: string, hint: string): Result {
  const message = `The token command of team (${program}) ${why}`
  return { code: 3, out: '', err: `${JSON.stringify({ error: 401, message, hint })}\n` }
}

const mustPrint = 'Try it in a shell: it must print a token, or {"token":"…","expires":"…"}, and nothing else on stdout'
const notOne =
  'printed a text that holds a space, a line break or another character that no token has: they have letters, digits and -._~+/='
const later = '2999-12-31T23:59:59.000Z'

describe('a token command that prints', () => {
  test.each<[string, string, Record<string, unknown>]>([
    ['a token', 's3cret-A.b_c~d+e/f==', { token: 's3cret-A.b_c~d+e/f==' }],
    ['a token and a line feed', 's3cret\n', { token: 's3cret' }],
    ['a token and CR LF', 's3cret\r\n', { token: 's3cret' }],
    ['a token between blanks', '\n\n \ts3cret \r\n\n', { token: 's3cret' }],
    ['a token behind a byte order mark', '\ufeffs3cret\n', { token: 's3cret' }],
    ['the longest token', 's3cret'.padEnd(4096, 'x'), { token: 's3cret'.padEnd(4096, 'x') }],
    ['JSON', '{"token":"s3cret"}', { token: 's3cret' }],
    ['JSON behind a byte order mark', '\ufeff{"token":"s3cret"}\r\n', { token: 's3cret' }],
    ['JSON on several lines', '\r\n{\r\n  "token": "s3cret",\r\n  "type": "Bearer"\r\n}\r\n', { token: 's3cret' }],
    ['JSON without a time', '{"token":"s3cret","expires":null}', { token: 's3cret' }],
    ['JSON with a time', `{"expires":"${later}","token":"s3cret"}`, { token: 's3cret', expires: later }],
    ['JSON with a time elsewhere', '{"token":"s3cret","expires":"2999-12-31t23:59:59.5+02:00"}', { token: 's3cret', expires: later }],
  ])('%s gives it', async (_, text, fields) => {
    const team = new Team()
    writeFileSync(join(team.folder, 'printed'), text)
    const { code, out, err } = await team.takes(`cat ${team.folder}/printed`).token()
    const { expires, ...rest } = fields
    expect({ code, ...JSON.parse(out), err }).toEqual({
      ...{ code: 0, source: 'command', err: '', ...rest },
      ...(expires === undefined ? {} : { expires: expect.stringMatching(/^2999-12-31T(23:59:59|21:59:59)/) }),
    })
  })

  test.each<[string, string, string, string]>([
    ['nothing', '', 'printed nothing', mustPrint],
    ['blanks', ' \r\n', 'printed nothing', mustPrint],
    ['two lines', 's3cret\ns3cret\n', notOne, mustPrint],
    ['a header', 'Bearer s3cret', notOne, mustPrint],
    ['a text with accents', 's3cr\u00e9t-s3cret', notOne, mustPrint],
    ['U+0000', 's3cret\0', notOne, mustPrint],
    ['a header of its own', 's3cret\r\nX-Other: s3cret', notOne, mustPrint],
    ['a longer token', 's3cret'.padEnd(4097, 'x'), 'printed a text that is longer than 4096 characters', mustPrint],
    ['a text', '"s3cret"', notOne, mustPrint],
    ['an array', '["s3cret"]', notOne, mustPrint],
    ['broken JSON', '{"token":"s3cret"', 'printed broken JSON', mustPrint],
    ['JSON and more', '{"token":"s3cret"}\n{"token":"s3cret"}', 'printed broken JSON', mustPrint],
    ['JSON without a token', '{"access_token":"s3cret"}', 'printed JSON without a token', mustPrint],
    ['JSON with a token that is no text', '{"token":["s3cret"]}', 'printed JSON without a token', mustPrint],
    ['JSON with an empty token', '{"token":""}', 'printed nothing', mustPrint],
    ['JSON with two tokens', '{"token":"s3cret s3cret"}', notOne, mustPrint],
    ['JSON with a line break in its token', '{"token":"s3cret\\r\\nX: s3cret"}', notOne, mustPrint],
    ...['soon', '', '2999-12-31', '2999-13-31T23:59:59Z', '2999-12-31T23:59:59', '2020-01-01 00:00 (s3cret)', 's3cret'].map(
      (time): [string, string, string, string] => [
        `JSON with the time ${JSON.stringify(time)}`,
        JSON.stringify({ token: 's3cret', expires: time }),
        'printed "expires" that is no time',
        'It must be a time such as 2026-01-02T03:04:05Z',
      ],
    ),
    [
      'JSON with a time that is a number',
      '{"token":"s3cret","expires":1893456000}',
      'printed "expires" that is no time',
      'It must be a time such as 2026-01-02T03:04:05Z',
    ],
    [
      'a token that has expired',
      '{"token":"s3cret","expires":"2020-01-02T03:04:05Z"}',
      'printed a token that has expired, on 2020-01-02T03:04:05.000Z',
      'Renew it where the command takes it from',
    ],
  ])('%s gives no token, and it is not repeated', async (_, text, why, hint) => {
    const team = new Team()
    writeFileSync(join(team.folder, 'printed'), text)
    expect(await team.takes(`cat ${team.folder}/printed`).token()).toEqual(failed('cat', why, hint))
  })

  test('10 MB is stopped early', async () => {
    const team = new Team()
    const program = team.program('much', sh(`head -c 10000000 /dev/zero | tr '\\0' x; echo done > ${team.folder}/done`))
    expect(await team.takes(program).token()).toEqual(failed(program, 'printed more than 64 KiB', mustPrint))
    expect(team.noted('done')).toBe('')
  })

  test('without an end is stopped', async () => {
    const team = new Team()
    expect(await team.takes('yes s3cret').token()).toEqual(failed('yes', 'printed more than 64 KiB', mustPrint))
  })

  test('exactly 64 KiB around a token gives it', async () => {
    const team = new Team()
    writeFileSync(join(team.folder, 'printed'), 's3cret'.padEnd(65_536, '\n'))
    expect(await team.takes(`cat ${team.folder}/printed`).token()).toEqual(found({ token: 's3cret', source: 'command' }))
  })
})

describe('a token command that does not end well', () => {
  const tellsWhy = 'Try it in a shell'

  test.each<[string, string, string]>([
    ['with a code', 'echo s3cret; exit 7', 'ended with exit code 7'],
    ['by a signal', 'echo s3cret; kill -KILL $$', 'was ended by SIGKILL'],
    ['by SIGTERM', 'echo s3cret; kill -TERM $$', 'was ended by SIGTERM'],
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
      failed(program, `did not end within ${seconds} s`, 'If it needs longer, wait longer with --timeout 2m'),
    )
  })

  test('because it waits for a process of its own gives no token, and is not waited for', async () => {
    const team = new Team()
    const program = team.program('command', sh(`tail -f /dev/null &\necho $! > ${team.folder}/pid\nwait`))
    onTestFinished(() => void process.kill(parseInt(team.noted('pid'), 10), 'SIGKILL'))
    expect(await team.takes(program).token('--timeout', '300ms')).toMatchObject({ code: 3, err: expect.stringContaining('within 0.3 s') })
  })

  test('may take longer than a timer can', async () => {
    const team = new Team().takes('echo s3cret')
    expect(await team.token('--timeout', '30d')).toEqual(found({ token: 's3cret', source: 'command' }))
  })

  test('may take as long as is saved with the store', async () => {
    const team = new Team()
    const stores = { team: { address: 'https://plants.example.com', 'token-command': 'tail -f /dev/null', timeout: '200ms' } }
    writeFileSync(join(team.folder, 'settings.json'), JSON.stringify({ version: 1, stores }), { mode: 0o600 })
    expect(await team.token()).toMatchObject({ code: 3, err: expect.stringContaining('did not end within 0.2 s') })
  })

  const nameIt = 'Check the name, or give its whole path'

  test.each<[string, string, string]>([
    ['is not there', '/nonexistent/command', 'could not be started: there is no such program'],
    ['is not on the PATH', 'no-such-program-s', 'could not be started: there is no such program'],
    ['may not be run', 'FOLDER/plain', 'could not be started: this user may not run it'],
    ['is a folder', 'FOLDER', 'could not be started: this user may not run it'],
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
    expect(await runPlants(add, { env: team.env })).toMatchObject({ code: 2, out: '', err: expect.stringContaining('--token-command') })
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

describe('a token command on a terminal', () => {
  async function asking(...flags: string[]) {
    const team = new Team()
    const remote = await Hostile.listen({ posts })
    const asks = "printf 'PIN: ' > /dev/tty; read -r pin < /dev/tty; echo s3cret-$pin"
    team.takes(team.program('asks', sh(asks)), remote.url)
    const typing = terminal(['create', '--store', 'team', '--no-color', ...flags], team.folder, { PLANTS_CONFIG_DIR: team.folder })
    await typing.see('PIN: ')
    return { typing, remote }
  }

  test.each([
    ['before the questions for the plant', [], ['id', '1\r', 'name', 'Fern\r', 'tag', '\r']],
    ['before the request', ['--id', '1', '--name', 'Fern'], []],
  ])('may ask there, %s', async (_, flags, dialogue) => {
    const { typing, remote } = await asking(...flags)
    typing.type('1234\r')
    for (const [index, text] of dialogue.entries()) await (index % 2 === 0 ? typing.see(text) : typing.type(text))
    await typing.see('Planted Fern')
    expect((await typing.ended).code).toBe(0)
    expect(remote.posts.map(({ headers, body }) => [headers['authorization'], body])).toEqual([
      ['Bearer s3cret-1234', '{"id":1,"name":"Fern"}'],
    ])
  })

  test('ends with the program at Ctrl-C', async () => {
    const { typing, remote } = await asking('--id', '1', '--name', 'Fern')
    typing.type('\x03')
    const { code, screen } = await typing.ended
    expect({ code, screen, connections: remote.connections }).toEqual({
      ...{ code: 130, connections: 0 },
      screen: expect.stringContaining('plants: Interrupted'),
    })
  })
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
    const program = team.program('words', sh(`for word in "$@"; do printf '%s\\n' "$word" >> ${team.folder}/words.txt; done; echo s3cret`))
    expect((await team.takes(`${program} ${text}`).token()).code).toBe(0)
    expect(team.noted('words.txt').split('\n').slice(0, -1)).toEqual(words)
  })

  test.each([`"FOLDER/my command" x`, `'FOLDER/my command'`, `sh -c 'echo s3cret'`, `pass "show plants"`, `pass '' x`, '"'])(
    'are refused when one begins with a quote, which no shell would read: %s',
    async (text) => {
      const team = new Team()
      const command = text.replace('FOLDER', team.folder)
      const refused = {
        ...{ code: 2, out: '' },
        err: expect.stringMatching(
          / holds a quote, and no shell reads it\n {2}Write a space within a word as "\\ ", or put the command into/,
        ),
      }
      const address = 'https://plants.example.com'
      const env = { env: team.env }
      expect(await runPlants(['stores', 'add', 'team', address, `--token-command=${command}`], env)).toEqual(refused)
      expect((await runPlants(['stores', 'list'], env)).out.trimEnd().split('\n')).toHaveLength(1)
      await runPlants(['stores', 'add', 'team', address], env)
      expect(await runPlants(['config', 'set', 'stores.team.token-command', command], env)).toEqual(refused)
      expect((await runPlants(['config', 'get', 'stores.team.token-command'], env)).code).toBe(1)
      expect(await team.takes(command).token()).toMatchObject({ code: 2, out: '', err: expect.stringContaining('holds a quote') })
    },
  )

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
      expect({ line, code, err }).toEqual({ line, code: line === 'doctor' ? 1 : 2, err: expect.not.stringContaining('A mistake') })
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
    const remote = await Hostile.listen({ posts: [json(503, { error: 503, message: 'Not now' }, { 'Retry-After': 0 }), ...posts] })
    team.takes(team.program('count', sh(`echo run >> ${team.folder}/runs; echo s3cret`)), remote.url)
    const { code } = await runPlants([...fern, '--id', '1', '--name', 'Fern'], { env: team.env })
    const sent = remote.posts.map(({ headers }) => headers['authorization'])
    expect({ code, sent, runs: team.noted('runs') }).toEqual({ code: 0, sent: ['Bearer s3cret', 'Bearer s3cret'], runs: 'run\n' })
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
    await runPlants(line, { env: { ...team.env, PLANTS_STORE: join(team.folder, 'plants.db'), ...env }, stdin: 's3cret-typed' })
    expect(team.noted('runs')).toBe('')
  })

  test('has nothing on its stdin, and does not eat the plant', async () => {
    const team = new Team()
    const remote = await Hostile.listen({ posts })
    team.takes(team.program('reads', sh(`cat > ${team.folder}/eaten; echo s3cret`)), remote.url)
    const input = '{"id":1,"name":"Fern"}'
    expect(await plants(fern, team.folder, { env: team.env, input })).toEqual({ code: 0, out: '{"name":"Fern"}\n', err: '' })
    expect({ eaten: team.noted('eaten'), sent: remote.posts.map(({ body }) => body) }).toEqual({ eaten: '', sent: [input] })
  })

  test('does not eat a plant that comes late', async () => {
    const team = new Team()
    const remote = await Hostile.listen({ posts })
    team.takes(team.program('reads', sh(`cat > ${team.folder}/eaten; echo s3cret`)), remote.url)
    const writer = start(fern, team.folder, { env: team.env, stdin: 'pipe' })
    writer.stdin?.write('{"id":1,')
    writer.stdin?.end('"name":"Fern"}')
    expect(await writer).toMatchObject({ exitCode: 0, stdout: '{"name":"Fern"}\n' })
    expect(team.noted('eaten')).toBe('')
  })

  test('has its stderr passed through, as it is', async () => {
    const team = new Team()
    const remote = await Hostile.listen({ posts })
    team.takes(team.program('asks', sh('printf "Touch your key \\033[1mnow\\033[0m\\n" >&2; echo s3cret')), remote.url)
    expect(await plants([...fern, '--id', '1', '--name', 'Fern'], team.folder, { env: team.env })).toEqual({
      code: 0,
      out: '{"name":"Fern"}\n',
      err: 'Touch your key \u001b[1mnow\u001b[0m\n',
    })
  })

  test('that says why it fails is heard before the error', async () => {
    const team = new Team()
    const program = team.program('locked', sh('echo "The safe is locked" >&2; exit 2'))
    expect(await plants(['auth', 'token', '--store', 'team'], team.takes(program).folder, { env: team.env })).toEqual({
      code: 3,
      out: '',
      err: `The safe is locked\nplants: The token command of team (${program}) ended with exit code 2\n  Try it in a shell\n`,
    })
  })

  test('may leave a process behind that holds its stdout open', async () => {
    const team = new Team()
    const program = team.program('agent', sh(`tail -f /dev/null 2> /dev/null &\necho $! > ${team.folder}/pid\necho s3cret`))
    const { code, out } = await plants(['auth', 'token', '--store', 'team', '--timeout', '10s'], team.takes(program).folder, {
      env: team.env,
    })
    const pid = parseInt(team.noted('pid'), 10)
    onTestFinished(() => void process.kill(pid, 'SIGKILL'))
    expect({ code, out, isLeftAlone: process.kill(pid, 0) }).toEqual({ code: 0, out: 's3cret\n', isLeftAlone: true })
  })

  test('has the environment, but not the tokens that stand in it', async () => {
    const team = new Team()
    team.takes(team.program('env', sh(`env > ${team.folder}/env.txt; echo s3cret`)))
    const others = { PLANTS_TOKEN: ' ', PLANTS_SERVE_TOKEN: 's3cret-to-serve', OTHER: 'kept', PLANTS_STORE: 'team' }
    const ofDatabases = { PGPASSWORD: 's3cret-of-a-database', PGPASSFILE: '/nonexistent/pgpass' }
    const { code } = await plants(['auth', 'token'], team.folder, { env: { ...team.env, ...others, ...ofDatabases } })
    const names = team.noted('env.txt').match(/^\w+(?==)/gm)
    expect({ code, names, tokens: team.noted('env.txt').match(/s3cret/g) }).toEqual({
      code: 0,
      names: expect.arrayContaining(['PATH', 'HOME', 'OTHER', 'PLANTS_CONFIG_DIR', 'PLANTS_STORE', 'PGPASSFILE']),
      tokens: null,
    })
    for (const name of ['PLANTS_TOKEN', 'PLANTS_SERVE_TOKEN', 'PGPASSWORD']) expect(names).not.toContain(name)
    const address = { PLANTS_STORE: 'postgres://me:s3cret-of-a-database@127.0.0.1/plants' }
    await plants(['auth', 'token', '--store', 'team'], team.folder, { env: { ...team.env, ...address } })
    expect(team.noted('env.txt')).not.toMatch(/s3cret|PLANTS_STORE/)
  })

  /** Two stores, each of which takes its token from a command. */
  function pair(one: string, two: string): Team {
    const team = new Team()
    const stores = {
      one: { address: 'https://one.example.com', 'token-command': one },
      two: { address: 'unix:/run/two.sock:/v1', 'token-command': two },
    }
    writeFileSync(join(team.folder, 'settings.json'), JSON.stringify({ version: 1, stores }), { mode: 0o600 })
    return team
  }

  test.each([
    ['itself', 'one'],
    ['another', 'two'],
  ])('that asks for the token that it should print, by way of %s, ends at once', async (_, asked) => {
    const ask = (store: string) => `${bin} auth token --output json --store ${store}`
    const team = pair(ask(asked), ask('one'))
    const { exitCode, stdout, stderr } = await start(['auth', 'token', '--store', 'one'], team.folder, { env: team.env, timeout: 20_000 })
    const circle = 'The token command of one (%) asks for the very token that it should print'.replace('%', bin)
    expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: '' })
    expect(JSON.parse(String(stderr).split('\n')[0] ?? '')).toMatchObject({ error: 401, message: circle })
    expect(String(stderr).match(/asks for the very token/g)).toHaveLength(1)
  })

  test('finds in PLANTS_TOKEN_FOR the address of its store, and those that wait for it', async () => {
    const team = pair(`${bin} auth token --store two`, 'FOLDER/says')
    const file = join(team.folder, 'settings.json')
    writeFileSync(file, readFileSync(file, 'utf8').replace('FOLDER', team.folder))
    team.program('says', sh(`printf %s "$PLANTS_TOKEN_FOR" > ${team.folder}/for.txt; echo s3cret`))
    const run = (store: string) => plants(['auth', 'token', '--store', store], team.folder, { env: team.env })
    expect(await run('two')).toEqual({ code: 0, out: 's3cret\n', err: '' })
    expect(team.noted('for.txt')).toBe('unix:/run/two.sock:/v1')
    expect(await run('one')).toEqual({ code: 0, out: 's3cret\n', err: '' })
    expect(team.noted('for.txt')).toBe('unix:/run/two.sock:/v1\nhttps://one.example.com')
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

  test('is run where the program was started', async () => {
    const team = new Team()
    team.program('here', sh('echo s3cret'))
    const { code, out } = await plants(['auth', 'token', '--store', 'team'], team.takes('./here').folder, {
      env: team.env,
      cwd: team.folder,
    })
    expect({ code, out }).toEqual({ code: 0, out: 's3cret\n' })
  })

  test.each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
  ] as const)('that %s finds running ends, and the program with %i', async (signal, exitCode, message) => {
    for (const lines of ['exec tail -f /dev/null', "trap '' INT TERM; while :; do read x < FIFO; done"]) {
      const team = new Team()
      const fifo = join(team.folder, 'fifo')
      const ready = `mkfifo ${fifo}; echo $$ > ${team.folder}/pid; echo ready >&2; echo s3cret`
      team.takes(team.program('hangs', sh(`${ready}\n${lines.replaceAll('FIFO', fifo)}`)))
      const program = start(['create', '--id', '1', '--name', 'Fern', '--store', 'team'], team.folder, { env: team.env })
      await once(program.stderr ?? program, 'data')
      program.kill(signal)
      const { exitCode: code, stdout, stderr } = await program
      expect({ code, stdout, stderr }).toEqual({ code: exitCode, stdout: '', stderr: expect.stringContaining(`plants: ${message}`) })
      expect(() => process.kill(parseInt(team.noted('pid'), 10), 0)).toThrow('ESRCH')
    }
  })
})

describe.skipIf(!isRoot)(`a token command of another user is not run${isRoot ? '' : ' (skipped: needs root)'}:`, () => {
  test('with sudo, whose user’s settings root reads', async () => {
    const team = new Team()
    const file = join(team.folder, 'settings.json')
    team.takes(team.program('ask', sh(`touch ${team.folder}/ran; echo s3cret-token`)))
    chownSync(file, 1234, 1234)
    const env = { ...team.env, SUDO_UID: '1234' }
    const hint = 'Run plants as that user, without sudo, or give the token in PLANTS_TOKEN'
    const message = `The token command of team is not run: the settings in ${file} belong to another user (uid 1234)`
    const err = `${JSON.stringify({ error: 401, message, hint })}\n`
    const flags = ['--store', 'team', '--output', 'json']
    expect(await plants(['auth', 'token', ...flags], team.folder, { env })).toEqual({ code: 3, out: '', err })
    const create = ['create', '--id', '1', '--name', 'Fern', ...flags]
    expect(await plants([...create, '--dry-run'], team.folder, { env })).toEqual({ code: 3, out: '', err })
    const given = await plants([...create, '--dry-run'], team.folder, { env: { ...env, PLANTS_TOKEN: 's3cret-given' } })
    expect(given).toMatchObject({ code: 0, err: '' })
    expect(existsSync(join(team.folder, 'ran'))).toBe(false)
    chownSync(file, 0, 0)
    expect(await plants(['auth', 'token', ...flags], team.folder, { env })).toMatchObject({ code: 0, err: '' })
  })
})
