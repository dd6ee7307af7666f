import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, http, json } from '../../helpers/hostile.js'
import { canTrace } from '../../helpers/linux.js'
import { start, startUnder } from '../../helpers/process.js'
import { howToRepeat, linesOf, socketPath, token } from '../../helpers/remote.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const plant = json(200, { name: 'Fern' })
const fern = '{"name":"Fern"}\n'
const reset: Answer = (socket) => void socket.resetAndDestroy()
const header = { name: 'Idempotency-Key', in: 'header', schema: { type: 'string' } }

/** A description of a service, with parameters of its operation or of its path. */
function describedBy(operation: unknown[], path: unknown[] = [], rest: Record<string, unknown> = {}): Buffer {
  return json(200, {
    openapi: '3.1.0',
    paths: { '/plants': { parameters: path, post: { parameters: operation } } },
    ...rest,
  })
}

const keyed = describedBy([header])
const post = 'POST /plants'

describe('what was not sent is sent when somebody is there', () => {
  const flags = ['create', '--id', '1', '--name', 'Fern', '--output', 'json', '--timeout', '20s']

  test('after a refused connection', async () => {
    const before = await Hostile.listen({})
    const { port, url } = before
    await before.close()
    const program = start([...flags, '--store', url], temporaryFolder(), { env: { PLANTS_TOKEN: token } })
    await speaks(program)
    const remote = await Hostile.listen({ posts: [plant], place: { host: '127.0.0.1', port } })
    const { exitCode, stdout, stderr } = await program
    const said = [{ warning: 'Could not reach URL: the connection was refused. Trying again for up to 2 s' }]
    expect({ code: exitCode, out: stdout, said: linesOf(`${stderr}`, remote), requests: remote.lines }).toEqual({
      code: 0,
      out: fern,
      said,
      requests: [post],
    })
  })

  test('after a socket that was not there', async () => {
    const path = socketPath()
    const program = start([...flags, '--store', `unix:${path}`], temporaryFolder(), { env: { PLANTS_TOKEN: token } })
    await speaks(program)
    const remote = await Hostile.listen({ posts: [plant], place: { path } })
    const { exitCode, stdout, stderr } = await program
    const warning = `Could not reach unix:${path}: there is no socket at ${path}. Trying again for up to 2 s`
    expect({ code: exitCode, out: stdout, said: linesOf(`${stderr}`, remote), requests: remote.lines }).toEqual({
      code: 0,
      out: fern,
      said: [{ warning }],
      requests: [post],
    })
  })
})

describe('a signal', () => {
  const flags = ['create', '--id', '1', '--name', 'Fern', '--output', 'json', '--timeout', '60s', '--store']
  const answered = 'Interrupted before URL answered'

  test('that comes while an answer is waited for leaves it open', async () => {
    const remote = await Hostile.listen({})
    const program = start([...flags, remote.url], temporaryFolder(), { env: { PLANTS_TOKEN: token } })
    await once(remote, 'request')
    program.kill('SIGINT')
    const { exitCode, stdout, stderr } = await program
    expect({ code: exitCode, out: stdout, said: linesOf(`${stderr}`, remote) }).toEqual({
      code: 130,
      out: '',
      said: [{ error: 500, message: answered, hint: howToRepeat.unasked }],
    })
  })

  test('SIGTERM does the same, with 143', async () => {
    const remote = await Hostile.listen({})
    const program = start([...flags, remote.url], temporaryFolder(), { env: { PLANTS_TOKEN: token } })
    await once(remote, 'request')
    program.kill('SIGTERM')
    const { exitCode, stderr } = await program
    expect({ code: exitCode, said: linesOf(`${stderr}`, remote) }).toEqual({
      code: 143,
      said: [{ error: 500, message: 'Terminated before URL answered', hint: howToRepeat.unasked }],
    })
  })

  test('that comes before anything was sent says that nothing was stored', async () => {
    const remote = await Hostile.listen({})
    const url = remote.url.replace('http', 'https') // whose handshake nobody answers
    const program = start([...flags, url], temporaryFolder(), { env: { PLANTS_TOKEN: token }, timeout: 5000 })
    await once(remote, 'connection')
    program.kill('SIGINT')
    const { exitCode, stdout, stderr } = await program
    expect({ code: exitCode, out: stdout, said: linesOf(`${stderr}`, remote) }).toEqual({
      code: 130,
      out: '',
      said: [{ error: 500, message: 'Interrupted, nothing was stored' }],
    })
  })

  test('that comes between two tries says that nothing was stored', async () => {
    const remote = await Hostile.listen({ posts: [http(503, '', { 'Retry-After': 30 })] })
    const program = start([...flags, remote.url], temporaryFolder(), { env: { PLANTS_TOKEN: token } })
    await speaks(program)
    program.kill('SIGINT')
    const { exitCode, stderr } = await program
    const warning = 'URL answered 503 with nothing. Trying again for up to 60 s'
    expect({ code: exitCode, said: linesOf(`${stderr}`, remote), requests: remote.lines }).toEqual({
      code: 130,
      said: [{ warning }, { error: 500, message: 'Interrupted, nothing was stored' }],
      requests: [post],
    })
  })

  test.runIf(canTrace)('that comes while a warning is still being written says so as well (needs strace)', async () => {
    const remote = await Hostile.listen({ posts: [http(503, '', { 'Retry-After': 30 })] })
    const late = ['-D', '-f', '-o', '/dev/null', '-e', 'trace=write', '-e', 'inject=write:delay_exit=100ms']
    const program = startUnder('strace', late, [...flags, remote.url], temporaryFolder(), {
      env: { PLANTS_TOKEN: token },
    })
    await speaks(program)
    program.kill('SIGINT')
    expect(await program).toMatchObject({ exitCode: 130, stderr: expect.stringContaining('nothing was stored') })
  })

  test('that comes between two tries, of which the first was not answered, leaves it open', async () => {
    const remote = await Hostile.listen({ posts: [reset, http(503, '', { 'Retry-After': 30 })], openapi: keyed })
    const program = start([...flags, remote.url], temporaryFolder(), { env: { PLANTS_TOKEN: token } })
    while (remote.posts.length < 2) await once(remote, 'request')
    program.kill('SIGINT')
    const { exitCode, stderr } = await program
    expect({ code: exitCode, said: linesOf(`${stderr}`, remote).slice(1) }).toEqual({
      code: 130,
      said: [{ error: 500, message: answered, hint: howToRepeat.listed }],
    })
  })

  test('that comes while the service is asked about keys leaves it open', async () => {
    const remote = await Hostile.listen({ posts: [reset], openapi: () => undefined })
    const program = start([...flags, remote.url], temporaryFolder(), { env: { PLANTS_TOKEN: token } })
    while (remote.requests.length < 2) await once(remote, 'request')
    program.kill('SIGINT')
    const { exitCode, stdout, stderr } = await program
    expect({ code: exitCode, out: stdout, said: linesOf(`${stderr}`, remote) }).toEqual({
      code: 130,
      out: '',
      said: [{ error: 500, message: answered, hint: howToRepeat.unasked }],
    })
  })
})

/** Resolves when a program says something on stderr. */
async function speaks({ stderr }: ReturnType<typeof start>): Promise<void> {
  if (stderr) await once(stderr, 'data')
}
