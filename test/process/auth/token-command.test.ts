import { once } from 'node:events'
import { expect, test } from 'vitest'
import { hang } from '../../helpers/hang.mjs'
import { Hostile } from '../../helpers/hostile.js'
import { bin } from '../../helpers/process.js'
import { posts, Team } from '../../helpers/users.js'
import { printed, refusal } from '../../helpers/world.js'

const auth = 'auth token --store team'
const fern = 'create --id 1 --name Fern --store team'

test('a token command runs in the folder of the program, and reads none of its stdin', async () => {
  const team = new Team()
  const service = await Hostile.listen({ posts })
  team.script('cat > eaten; echo s3cret')
  const writer = team
    .takes('./command', service.url)
    .start('create --store team', { stdin: 'pipe' })
  writer.stdin?.write('{"id":1,')
  writer.stdin?.end('"name":"Fern"}')
  expect(await writer).toMatchObject({ exitCode: 0, stdout: '{"name":"Fern"}\n', stderr: '' })
  expect(service.posts.map(({ body }) => body)).toEqual(['{"id":1,"name":"Fern"}'])
  expect(team.read('eaten')).toBe('')
  // As in a loop of a shell, whose list is on stdin.
  expect(await team.spawn(auth, { input: 'the rest of a list' })).toEqual(printed('s3cret\n'))
  expect(team.read('eaten')).toBe('')
})

test('the stderr of a token command comes as it is, before the error', async () => {
  const team = new Team()
  const program = team.script('printf "The safe is \\033[1mlocked\\033[0m\\n" >&2; exit 2')
  const failure = refusal(
    'The token command of team gave no token: it ended with exit code 2',
    'Try it in a shell: it must print a token, and nothing else on stdout',
    3,
  )
  const err = `The safe is \u001b[1mlocked\u001b[0m\n${failure.err}`
  expect(await team.takes(program).spawn(auth)).toEqual({ ...failure, err })
})

test('token commands that ask for the tokens of each other end at once', async () => {
  const team = new Team()
  const ask = (store: string) => ({ 'token-command': `${bin} auth token --store ${store}` })
  const two = { address: 'https://two.example.com/v1', ...ask('team') }
  team.save({ stores: { team: { address: 'https://one.example.com', ...ask('two') }, two } })
  const { code, out, err } = await team.spawn(auth, { timeout: hang.wait })
  const circle = `plants: The token command of two gave no token: it was called by a token command\n`
  expect({ code, out, circles: err.split(circle).length - 1 }).toEqual({
    code: 3,
    out: '',
    circles: 1,
  })
})

test.each([
  ['SIGINT', 130, 'Interrupted', ''],
  ['SIGTERM', 143, 'Terminated', "trap '' INT TERM"],
] as const)(
  '%s ends the program with %i, and its token command',
  async (signal, code, word, trap) => {
    const team = new Team()
    const script = team.script(
      `${trap}\nmkfifo fifo; echo $$ > pid; echo s3cret; echo ready >&2; while :; do read x < fifo; done`,
    )
    team.takes(`exec ${script}`)
    const program = team.start(fern)
    await once(program.stderr ?? program, 'data')
    program.kill(signal)
    expect(await program).toMatchObject({
      exitCode: code,
      stdout: '',
      stderr: expect.stringContaining(`plants: ${word}`),
    })
    expect(() => process.kill(parseInt(team.read('pid'), 10), 0)).toThrow('ESRCH')
  },
)

test('a token command may ask the user, once, after the questions for the plant', async () => {
  const team = new Team()
  const service = await Hostile.listen({ posts })
  team.takes(
    team.script("printf 'PIN: ' > /dev/tty; read -r pin < /dev/tty; echo s3cret-$pin"),
    service.url,
  )
  const typing = team.terminal('create --store team --no-color')
  await typing.answer(['id', '1\r'], ['name', 'Fern\r'], ['tag', '\r'], ['PIN: ', '1234\r'])
  const { code, screen } = await typing.ended
  expect([code, screen.match(/PIN/g)]).toEqual([0, ['PIN']])
  expect(screen.trimEnd()).toMatch(/Planted Fern \(id 1\)$/)
  expect(service.posts.map(({ headers }) => headers['authorization'])).toEqual([
    'Bearer s3cret-1234',
  ])
})
