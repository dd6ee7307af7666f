import { once } from 'node:events'
import { chownSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Hostile } from '../../helpers/hostile.js'
import { bin, plants, start } from '../../helpers/process.js'
import { posts, sh, Team } from '../../helpers/team.js'

const isRoot = process.getuid?.() === 0

describe('a token command', () => {
  const fern = ['create', '--store', 'team', '--timeout', '20s']

  test('has nothing on its stdin, and does not eat the plant', async () => {
    const team = new Team()
    const remote = await Hostile.listen({ posts })
    team.takes(team.program('reads', sh(`cat > ${team.folder}/eaten; echo s3cret`)), remote.url)
    const input = '{"id":1,"name":"Fern"}'
    expect(await plants(fern, team.folder, { env: team.env, input })).toEqual({
      code: 0,
      out: '{"name":"Fern"}\n',
      err: '',
    })
    expect({ eaten: team.noted('eaten'), sent: remote.posts.map(({ body }) => body) }).toEqual({
      eaten: '',
      sent: [input],
    })
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
    const program = team.program(
      'agent',
      sh(`tail -f /dev/null 2> /dev/null &\necho $! > ${team.folder}/pid\necho s3cret`),
    )
    const { code, out } = await plants(
      ['auth', 'token', '--store', 'team', '--timeout', '10s'],
      team.takes(program).folder,
      {
        env: team.env,
      },
    )
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

  /** Two stores, each of which gets its token from a command. */
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
    const { exitCode, stdout, stderr } = await start(['auth', 'token', '--store', 'one'], team.folder, {
      env: team.env,
      timeout: 20_000,
    })
    const circle = 'The token command of one (%) asks plants for the token that it must print'.replace('%', bin)
    expect({ exitCode, stdout }).toEqual({ exitCode: 3, stdout: '' })
    expect(JSON.parse(String(stderr).split('\n')[0] ?? '')).toMatchObject({ error: 401, message: circle })
    expect(String(stderr).match(/asks plants for the token/g)).toHaveLength(1)
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
      const program = start(['create', '--id', '1', '--name', 'Fern', '--store', 'team'], team.folder, {
        env: team.env,
      })
      await once(program.stderr ?? program, 'data')
      program.kill(signal)
      const { exitCode: code, stdout, stderr } = await program
      expect({ code, stdout, stderr }).toEqual({
        code: exitCode,
        stdout: '',
        stderr: expect.stringContaining(`plants: ${message}`),
      })
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
    const hint = 'Run plants as that user, without sudo, or set PLANTS_TOKEN or PGPASSWORD'
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
