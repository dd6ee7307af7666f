import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Hostile, json } from '../../helpers/hostile.js'
import { objectsOf } from '../../helpers/json-lines.js'
import { isLinux } from '../../helpers/linux.js'
import { bin, type ProcessResult, plants, start } from '../../helpers/process.js'
import { ownService, socketPath, token } from '../../helpers/remote.js'
import { rounds } from '../../helpers/rounds.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'
import { connected, fern, request, wire } from '../../helpers/traces.js'

const posts = [json(200, { name: 'Fern' })]

describe('a process', () => {
  const env = { PLANTS_TOKEN: token }

  test('says the same, and first what came first', async () => {
    const url = await ownService({ host: '127.0.0.1', port: 0 }, join(temporaryFolder(), 'plants.db'))
    const first = await plants([...fern, '--store', url], temporaryFolder(), { env })
    expect({ code: first.code, out: first.out }).toEqual({ code: 0, out: '{"name":"Fern"}\n' })
    expect(wire(first.err, url).slice(0, 9)).toEqual([connected, ...request, '< 200'])
    const second = await plants([...fern, '--store', url, '--output', 'json'], temporaryFolder(), { env })
    expect(second.code).toBe(1)
    const lines = objectsOf(second.err).map((line) => line['verbose'] ?? `${line['error']}`)
    const last = wire(lines.join('\n'), url)
    expect([last.slice(0, 1 + request.length), last.at(-1)]).toEqual([[connected, ...request], '409'])
  })

  test.each([
    ['whose stderr has no reader', '2> >(true)'],
    ['whose stderr is a pipe that is closed at once', '2> >(exec 0<&-)'],
    ['whose stderr is closed', '2>&-'],
    ...(isLinux ? [['whose stderr takes nothing', '2> /dev/full'] as [string, string]] : []),
  ])('%s does its work all the same', async (_, redirection) => {
    const remote = await Hostile.listen({
      posts: [json(503, { error: 503, message: 'Busy' }, { 'X-Long': 'x'.repeat(8000) }), ...posts],
    })
    expect(await bash(`"$plants" ${fern.join(' ')} --store ${remote.url} ${redirection}`)).toEqual({
      code: 0,
      out: '{"name":"Fern"}\n',
      err: '',
    })
    expect(await bash(`"$plants" get 1 -v ${redirection}`)).toEqual({ code: 1, out: '', err: '' })
  })

  test.runIf(isLinux)('is not held up by a stderr that nobody reads (a full pipe)', async () => {
    const remote = await Hostile.listen({ posts })
    const { process: child } = intoFullPipe([...fern, '--store', remote.url])
    const { exitCode, stdout } = await child
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '{"name":"Fern"}\n' })
  })

  test.each([
    ['SIGINT', 130, 'Interrupted'],
    ['SIGTERM', 143, 'Terminated'],
  ] as const)('that waits for an answer is ended by %s with %s, and says so last', async (signal, code, word) => {
    for (const flags of [[], ['--output', 'json']]) {
      const remote = await Hostile.listen({ posts: [() => child.kill(signal)] })
      const child = start([...fern, '--store', remote.url, ...flags], temporaryFolder(), { env })
      const { exitCode, stdout, stderr } = await child
      expect({ exitCode, stdout }).toEqual({ exitCode: code, stdout: '' })
      const lines = String(stderr).trimEnd().split('\n')
      const message = `${word} before ${remote.url} answered`
      if (flags.length > 0) expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ error: 500, message })
      else
        expect(lines.slice(-2)).toEqual([`plants: ${message}`, expect.stringMatching(/^ {2}Whether plant 1 is stored/)])
      expect(lines.filter((line) => /^(\{"verbose":")?> POST/.test(line))).toHaveLength(1)
    }
  })

  test('that waits between two tries is ended by SIGINT with 130', async () => {
    const remote = await Hostile.listen({
      posts: [json(503, { error: 503, message: 'Busy' }, { 'Retry-After': '20' })],
    })
    const child = start([...fern, '--store', remote.url], temporaryFolder(), { env })
    child.stderr?.on('data', (chunk: Buffer) => chunk.includes('Trying again') && child.kill('SIGINT'))
    const { exitCode, stdout, stderr } = await child
    expect({ exitCode, stdout, last: String(stderr).trimEnd().split('\n').at(-1) }).toEqual({
      exitCode: 130,
      stdout: '',
      last: 'plants: Interrupted, nothing was stored',
    })
  })

  test.runIf(isLinux)('that waits is ended by SIGINT also when nobody reads its stderr (a full pipe)', async () => {
    let sent = Infinity
    const stop = () => {
      sent = performance.now()
      child.kill('SIGINT')
    }
    const remote = await Hostile.listen({ posts: [stop] })
    const { process: child } = intoFullPipe([...fern, '--store', remote.url])
    const { exitCode, signal } = await child
    expect(signal ?? exitCode).toBeOneOf(['SIGINT', 130])
    expect(performance.now() - sent).toBeLessThan(5000)
  })

  test.runIf(isLinux).each(['text', 'json'])(
    'whose reader is slow tells every line whole and in order, and the error last, in %s (a full pipe)',
    async (output) => {
      const long = { 'X-Long': 'x'.repeat(9000) }
      const answers = [
        json(503, { error: 503, message: 'Busy' }, long),
        json(400, { error: 422, message: 'No ferns' }, long),
      ]
      const remote = await Hostile.listen({ posts: answers })
      const { process: child, reader } = intoFullPipe([...fern, '--store', remote.url, '--output', output])
      readSync(reader, Buffer.alloc(8192)) // room for some of the first answer
      await expect.poll(() => remote.requests.length, { timeout: 10_000, interval: 5 }).toBe(2)
      const lines = (await drain(reader, child)).trimEnd().split('\n')
      expect((await child).exitCode).toBe(1)
      const texts = output === 'json' ? lines.map(textOf) : lines
      const kinds = texts.flatMap((line) => /^(> POST|< \d+$|< x-long: x{9000}$|plants: )/.exec(line)?.[0] ?? [])
      const exchange = ['> POST', expect.stringMatching(/^< \d/), `< x-long: ${long['X-Long']}`, 'plants: ']
      expect(kinds).toEqual([...exchange, ...exchange])
      expect(texts.filter((line) => !/^(\* |> |< |plants: | {2})/.test(line))).toEqual([])
    },
  )

  const stalled: [string, (argv: string[]) => Promise<{ process: ChildProcess }>][] = [
    ['a socket', intoFullSocket],
    ['a pipe that somebody has made non-blocking', async (argv) => intoFullPipe(argv, unblock)],
    ['a pipe', async (argv) => intoFullPipe(argv)],
  ]

  test.runIf(isLinux).each(stalled)(
    'whose stderr is %s that nobody reads is ended by SIGINT while it waits for an answer',
    async (_, begin) => {
      const remote = await Hostile.listen({ posts: [() => undefined] })
      const request = once(remote, 'request')
      const { process: child } = await begin([...fern, '--store', remote.url])
      await request
      child.kill('SIGINT')
      expect(await endOf(child)).toBeOneOf(['SIGINT', 130])
    },
  )

  test.runIf(isLinux).each(stalled)(
    'whose stderr is %s that nobody reads is ended by SIGINT while its error waits',
    async (_, begin) => {
      const answer = json(400, { error: 422, message: 'No ferns' })
      const remote = await Hostile.listen({
        posts: [(socket) => void socket.write(answer, () => child.kill('SIGINT'))],
      })
      const { process: child } = await begin([...fern, '--store', remote.url])
      expect(await endOf(child)).toBeOneOf(['SIGINT', 130])
    },
  )

  test('on a real terminal the error comes last', async () => {
    const remote = await Hostile.listen({ posts: [json(400, { error: 422, message: 'No ferns' })] })
    for (let round = 0; round < rounds(5); round += 1) {
      const { code, screen } = await terminal([...fern, '--no-color', '--store', remote.url], temporaryFolder(), env)
        .ended
      const short = wire(screen.replaceAll('\r', ''), remote.url).filter((line) =>
        /^(> POST|< \d+$|\* whole|plants:)/.test(line),
      )
      expect({ code, short }).toEqual({
        code: 1,
        short: ['> POST URL/plants', '< 400', '* whole response after N ms', 'plants: No ferns'],
      })
    }
  })

  /** Starts the program with a stderr that is full and that nobody reads; it is killed after 20 s. */
  function intoFullPipe(args: string[], before = '') {
    const folder = temporaryFolder()
    const path = join(folder, 'pipe')
    spawnSync('mkfifo', [path])
    const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    onTestFinished(() => closeSync(reader))
    fillUp(reader)
    const script = `exec 2> "$1"; shift; ${before} exec "$0" "$@"`
    const child = execa('bash', ['-c', script, bin, path, ...args], {
      ...{
        reject: false,
        stripFinalNewline: false,
        stdin: 'ignore',
        extendEnv: false,
        timeout: 20_000,
        killSignal: 'SIGKILL',
      },
      env: { PATH: process.env['PATH'], HOME: folder, ...env },
    })
    return { process: child, reader }
  }

  /** Starts the program with such a stderr that is a socket. */
  async function intoFullSocket(args: string[]): Promise<{ process: ChildProcess }> {
    const path = socketPath()
    const server = createServer({ pauseOnConnect: true }).listen(path)
    await once(server, 'listening')
    const socket = connect(path)
    await once(socket, 'connect')
    socket.on('error', () => undefined).write(Buffer.alloc(1_048_576)) // more than the system keeps
    const folder = temporaryFolder()
    const child = spawn(bin, args, {
      ...{ stdio: ['ignore', 'ignore', socket], timeout: 20_000, killSignal: 'SIGKILL' },
      env: { PATH: process.env['PATH'], HOME: folder, ...env },
    })
    onTestFinished(() => {
      socket.destroy()
      server.close()
    })
    return { process: child }
  }

  /** The exit code of a process, or the signal that has ended it. */
  async function endOf(child: ChildProcess): Promise<unknown> {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    return child.signalCode ?? child.exitCode
  }

  /**
   * What comes out of a pipe until a process has ended, read in small pieces; the zeros that have filled it are left
   * out.
   */
  async function drain(fd: number, child: ChildProcess): Promise<string> {
    const chunks: Buffer[] = []
    for (;;) {
      const isOver = child.exitCode !== null || child.signalCode !== null
      const chunk = readSome(fd)
      if (chunk.length === 0 && isOver) return Buffer.concat(chunks).toString().replace(/^\0+/, '')
      chunks.push(chunk)
      await new Promise(setImmediate)
    }
  }

  /** Runs a script in which "$plants" is the program. */
  async function bash(script: string): Promise<ProcessResult> {
    const folder = temporaryFolder()
    const { exitCode, stdout, stderr } = await execa('bash', ['-c', `plants=$0; ${script}`, bin], {
      ...{ reject: false, stripFinalNewline: false, stdin: 'ignore', extendEnv: false, cwd: folder },
      env: { PATH: process.env['PATH'], HOME: folder, PLANTS_DATA_DIR: join(folder, 'data'), ...env },
    })
    return { code: exitCode, out: stdout, err: stderr }
  }
})

/** Makes stderr non-blocking for all who share it, as Node does, and leaves it so. */
const unblock = '(node --eval "process.stderr; process.kill(process.pid, 9)"; true) > /dev/null;'

/** What a line of JSON says in text. */
function textOf(line: string): string {
  const { verbose, warning, message } = JSON.parse(line)
  return verbose ?? `plants: ${warning ?? message}`
}

/** What a pipe holds, up to a thousand bytes. */
function readSome(fd: number): Buffer {
  const bytes = Buffer.alloc(1000)
  try {
    return bytes.subarray(0, readSync(fd, bytes))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return Buffer.alloc(0)
    throw error
  }
}

/** Writes into a pipe until it takes no more. */
function fillUp(fd: number): void {
  try {
    for (;;) writeSync(fd, Buffer.alloc(4096))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) throw error
  }
}
