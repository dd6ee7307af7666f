import { once } from 'node:events'
import { expect, test } from 'vitest'
import { toTextResult } from '../../helpers/sandbox/sandbox.js'
import { posts, TokenCommandSandbox } from '../../helpers/sandbox/token-command-sandbox.js'
import { ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'

const auth = 'auth token --store team'

test('a token command runs in the folder of the program, and reads none of its stdin', async () => {
  const team = new TokenCommandSandbox()
  const service = await ScriptedServer.listen({ posts })
  team.writeScript('cat > eaten; echo s3cret')
  team.saveTokenCommand('./command', service.url)
  const input = '{"id":1,"name":"Fern"}'
  expect((await team.spawn('create --store team', { input })).code).toBe(0)
  expect(service.posts.map(({ body }) => body)).toEqual([input])
  expect(await team.spawn(auth, { input: 'the rest of a list' })).toEqual(toTextResult('s3cret\n'))
  expect(team.read('eaten')).toBe('')
})

test('the stderr of a token command is passed through unchanged, before the error', async () => {
  const team = new TokenCommandSandbox()
  const program = team.writeScript('printf "The safe is \\033[1mlocked\\033[0m\\n" >&2; exit 2')
  const { code, err } = await team.saveTokenCommand(program).spawn(auth)
  expect(code).toBe(3)
  expect(err.startsWith('The safe is \u001b[1mlocked\u001b[0m\nplants: ')).toBe(true)
})

test.each([
  ['SIGINT', 130, ''],
  ['SIGTERM', 143, "trap '' INT TERM"],
] as const)(
  '%s ends the program with exit code %i, and ends its token command, too',
  async (signal, code, trap) => {
    const team = new TokenCommandSandbox()
    const waits = 'mkfifo fifo; echo $$ > pid; echo ready >&2; while :; do read x < fifo; done'
    team.saveTokenCommand(`exec ${team.writeScript(`${trap}\n${waits}`)}`)
    const program = team.start('create --id 1 --name Fern --store team')
    await once(program.stderr ?? program, 'data')
    program.kill(signal)
    expect(await program).toMatchObject({ exitCode: code, stdout: '' })
    expect(() => process.kill(parseInt(team.read('pid'), 10), 0)).toThrow('ESRCH')
  },
)

test('a token command may ask the user, once, after the questions for the plant', async () => {
  const team = new TokenCommandSandbox()
  const service = await ScriptedServer.listen({ posts })
  const script = "printf 'PIN: ' > /dev/tty; read -r pin < /dev/tty; echo s3cret-$pin"
  const typing = team
    .saveTokenCommand(team.writeScript(script), service.url)
    .terminal('create --store team')
  await typing.answer(['id', '1\r'], ['name', 'Fern\r'], ['tag', '\r'], ['PIN: ', '1234\r'])
  const { code, screen } = await typing.ended
  expect([code, screen.match(/PIN/g)]).toEqual([0, ['PIN']])
  const [post] = service.posts
  expect(post?.headers['authorization']).toBe('Bearer s3cret-1234')
})
