import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { bash, bashOptions, intoPipe, unblock } from '../../helpers/bash.js'
import { hang } from '../../helpers/hang.mjs'
import { type Answer, Hostile, json } from '../../helpers/hostile.js'
import { socketPath, token } from '../../helpers/http-store.js'
import { isLinux } from '../../helpers/linux.js'
import { bin } from '../../helpers/process.js'
import { printed, World } from '../../helpers/world.js'

const env = { PLANTS_TOKEN: token }
const fern = 'create --id 1 --name Fern --verbose --store'
const done = [json(200, { name: 'Fern' })]
const busy = () => json(503, { error: 503, message: 'Busy' })
const refusal = () => json(400, { error: 422, message: 'No ferns' })

describe('with --verbose', () => {
  test.each<[string, string]>([
    ['has no reader', '2> >(true)'],
    ['is a pipe that is closed at once', '2> >(exec 0<&-)'],
    ['is closed', '2>&-'],
    ...(isLinux ? [['takes nothing', '2> /dev/full'] as [string, string]] : []),
  ])('a stderr that %s changes nothing', async (_, redirection) => {
    const service = await Hostile.listen({ posts: [busy(), ...done] })
    const user = new World()
    const create = `"$plants" ${fern} ${service.url} ${redirection}`
    expect(await bash(user, create, env)).toEqual(printed('{"name":"Fern"}\n'))
    expect(await bash(user, `"$plants" get 1 -v ${redirection}`)).toEqual({
      code: 1,
      out: '',
      err: '',
    })
  })

  test.runIf(isLinux)('a stderr that nobody reads delays nothing (a full pipe)', async () => {
    const service = await Hostile.listen({ posts: done })
    const { exitCode, stdout } = await intoFullPipe(service).process
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: 'Planted Fern (id 1)\n' })
  })

  test('a signal is reported last', async () => {
    const service = await Hostile.listen({ posts: [() => child.kill('SIGINT')] })
    const child = new World().start(`${fern} ${service.url}`, { env })
    const { exitCode, stdout, stderr } = await child
    expect({ exitCode, stdout }).toEqual({ exitCode: 130, stdout: '' })
    const [request = '', ...rest] = String(stderr).split('\n> POST ').slice(1)
    const last = `plants: Interrupted before ${service.url} answered`
    expect({ last: request.split('\n').at(-3), rest }).toEqual({ last, rest: [] })
  })

  test.runIf(isLinux)(
    'a slow reader gets every line whole and in order, and the error last (a full pipe)',
    async () => {
      const service = await Hostile.listen({ posts: [busy(), refusal()] })
      const { process: child, reader, read } = intoFullPipe(service)
      readSync(reader, Buffer.alloc(64)) // room for some of the first line
      await expect.poll(() => service.requests.length, { interval: 5 }).toBe(2)
      let said = ''
      for await (const chunk of read(1000)) said += chunk
      const lines = said.replace(/^\0+/, '').trimEnd().split('\n')
      expect((await child).exitCode).toBe(1)
      const kinds = lines.flatMap((line) => /^(> POST|< \d+|plants: )/.exec(line)?.[0] ?? [])
      const exchange = ['> POST', expect.stringMatching(/^< \d/), 'plants: ']
      expect(kinds).toEqual([...exchange, ...exchange])
      expect(lines.filter((line) => !/^(\* |> |< |plants: | {2})/.test(line))).toEqual([])
    },
  )

  describe.runIf(isLinux).each<[string, (service: Hostile) => Promise<{ process: ChildProcess }>]>([
    ['a pipe', async (service) => intoFullPipe(service)],
    ['a non-blocking pipe', async (service) => intoFullPipe(service, unblock('stderr'))],
    ['a socket', intoFullSocket],
  ])('a second SIGINT ends a program whose stderr nobody reads, %s,', (_, begin) => {
    test('while it waits for an answer', async () => {
      const service = await Hostile.listen({ posts: [() => undefined] })
      const request = once(service, 'request')
      const { process: child } = await begin(service)
      await request
      expect(await interrupt(child)).toBeOneOf(['SIGINT', 130])
    })

    test('while its error waits', async () => {
      const going = new AbortController()
      const answer: Answer = (socket) => void socket.write(refusal(), () => going.abort())
      const answered = once(going.signal, 'abort')
      const service = await Hostile.listen({ posts: [answer] })
      const { process: child } = await begin(service)
      await answered
      expect(await interrupt(child)).toBeOneOf(['SIGINT', 130])
    })
  })
})

/** Starts the program with a stderr that is full and that nobody reads. */
function intoFullPipe(service: Hostile, before = '') {
  return intoPipe(new World(), 2, `${fern} ${service.url} --output text`, {
    before,
    env,
    isFull: true,
  })
}

/** Starts the program with such a stderr that is a socket. */
async function intoFullSocket(service: Hostile): Promise<{ process: ChildProcess }> {
  const path = socketPath()
  const server = createServer({ pauseOnConnect: true }).listen(path)
  await once(server, 'listening')
  const socket = connect(path)
  await once(socket, 'connect')
  socket.on('error', () => undefined).write(Buffer.alloc(1_048_576)) // more than the system keeps
  onTestFinished(() => {
    socket.destroy()
    server.close()
  })
  const stdio = ['ignore' as const, 'ignore' as const, socket]
  const { env: variables } = bashOptions(new World(), env)
  return {
    process: spawn(bin, `${fern} ${service.url}`.split(' '), {
      stdio,
      env: variables,
      timeout: hang.wait,
      killSignal: 'SIGKILL',
    }),
  }
}

/** Sends SIGINT until the program ends. Signals within 0.1 s count as one. */
async function interrupt(child: ChildProcess): Promise<unknown> {
  const isOver = () => child.kill('SIGINT') === false || child.exitCode !== null
  await expect.poll(isOver, { interval: 200 }).toBe(true)
  return child.signalCode ?? child.exitCode
}
