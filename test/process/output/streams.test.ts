import { execFileSync } from 'node:child_process'
import {
  closeSync,
  constants,
  createReadStream,
  existsSync,
  openSync,
  readFileSync,
  readSync,
} from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { ignoreSystemError } from '../../../src/errors.js'
import { canMount, isLinux, mountSmallDisk } from '../../helpers/sandbox/linux.js'
import { bin, launch, runBash } from '../../helpers/sandbox/process.js'
import { scaleRounds } from '../../helpers/sandbox/rounds.js'
import { Sandbox, toJsonResult, toTextResult } from '../../helpers/sandbox/sandbox.js'
import { insertPlants } from '../../helpers/sandbox/sqlite-file.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'
import { buildRequest, connectTo } from '../../helpers/scripted-server/raw-http.js'
import { buildJsonResponse, ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'
import { serve, testToken } from '../../helpers/scripted-server/service.js'

const repeated = { repeats: scaleRounds(1) - 1 }
const pollOptions = { interval: 5 }
const fern = { id: 1, name: 'Fern' }
const plant = `${JSON.stringify(fern)}\n`

async function storeOf(count: number): Promise<{ user: Sandbox; text: string }> {
  const user = new Sandbox()
  await user.spawn('create --id 1 --name Fern')
  insertPlants(user.store, count)
  return { user, text: (await user.run('list')).out }
}

describe.runIf(isLinux)('a stdout that cannot be written to', () => {
  const unwritten = {
    ...{ code: 74, out: '' },
    err: expect.stringContaining('Stdout could not be written: no space left on device'),
  }

  test.each([
    '"$plants" create --id 1 --name Fern > /dev/full',
    `echo '${plant}' | "$plants" import -q --atomic > /dev/full`,
  ])('does not undo %s', async (script) => {
    const user = new Sandbox()
    expect(await runBash(user, script)).toEqual(unwritten)
    expect(await user.run('list')).toEqual(toJsonResult(fern))
  })

  test.each(['list', 'get 1', '--help'])('ends "plants %s" with exit code 74', async (line) => {
    const { user } = await storeOf(10)
    expect(await runBash(user, `"$plants" ${line} > /dev/full`)).toEqual(unwritten)
  })

  test.runIf(canMount)('is noticed in the middle of a list (a tmpfs, needs unshare)', async () => {
    const { user, text } = await storeOf(20_000)
    const file = join((await mountSmallDisk()).inside, 'list')
    expect(await runBash(user, `"$plants" list > '${file}'`)).toEqual(unwritten)
    expect(readFileSync(file, 'utf8') === text.slice(0, 256 * 1024)).toBe(true)
  })
})

describe('a reader', () => {
  test.each(['list', 'export'])(
    'that closes after the first line ends a %s without an error',
    repeated,
    async (command) => {
      const { user } = await storeOf(20_000)
      const script = `"$plants" ${command} | head -1; echo "\${PIPESTATUS[@]}"`
      expect(await runBash(user, script)).toEqual(toTextResult(`${plant}0 0\n`))
    },
  )

  test('that has already closed does not affect a create', repeated, async () => {
    const script = `"$plants" create --id 1 --name Fern | true; echo "\${PIPESTATUS[@]}"; "$plants" list`
    expect(await runBash(new Sandbox(), script)).toEqual(toTextResult(`0 0\n${plant}`))
  })
})

describe.runIf(isLinux)('a stdout (seen through /proc)', () => {
  const isBlocked = (pid: number | undefined) => /pipe_write/.test(proc(pid, 'wchan'))
  const isFullWithoutBlocking = (pid: number | undefined) =>
    /flags:\s\d*4\d{3}\n/.test(proc(pid, 'fdinfo/1')) &&
    Number(/wchar: (\d+)/.exec(proc(pid, 'io'))?.[1]) > 50_000
  const pipes = [
    ['blocking', '', isBlocked],
    [
      'non-blocking', // as Node makes it for all who share it
      '(node --eval "process.stdout; process.kill(process.pid, 9)"; true) 2> /dev/null;',
      isFullWithoutBlocking,
    ],
  ] as const

  test.each(pipes)(
    'that is a %s pipe gives a slow reader every byte',
    repeated,
    async (_, before, isFull) => {
      const { user, text: all } = await storeOf(20_000)
      const { writer, read } = listIntoPipe(user, before)
      await expect.poll(() => isFull(writer.pid), pollOptions).toBe(true)
      const output = await read()
      const { exitCode, stderr } = await writer
      expect([exitCode, stderr, output === all]).toEqual([0, '', true])
    },
  )

  test.each(pipes)(
    'that is a %s pipe does not delay a signal that ends an unread list',
    repeated,
    async (_, before, isFull) => {
      const { user } = await storeOf(10_000)
      for (const name of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) {
        const { writer } = listIntoPipe(user, before)
        await expect.poll(() => isFull(writer.pid), pollOptions).toBe(true)
        writer.kill(name)
        const { exitCode, signal } = await writer
        expect(signal ?? exitCode).toBeOneOf([name, name === 'SIGINT' ? 130 : 143])
      }
    },
  )
})

/** Starts a list whose stdout is a pipe that is read when the test wants. */
function listIntoPipe(user: Sandbox, before: string) {
  const path = join(createTemporaryFolder(), 'pipe')
  execFileSync('mkfifo', [path])
  const both = openSync(path, 'r+') // one end alone would wait for the other
  const reader = openSync(path, 'r')
  closeSync(both)
  const script = `exec > "$1"; ${before} exec "$0" list`
  const writer = launch(user, ['bash', '-c', script, bin, path])
  onTestFinished(() => {
    writer.kill('SIGKILL')
    closeSync(reader)
  })
  const options = { fd: reader, highWaterMark: 4000, autoClose: false }
  const read = () => text(createReadStream('', options))
  return { writer, read }
}

function proc(pid: number | undefined, file: string): string {
  const path = `/proc/${pid}/${file}`
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

test.runIf(isLinux)(
  'a service drops lines of an unread log beyond 1 MiB, and still serves and drains',
  async () => {
    const folder = createTemporaryFolder()
    const path = join(folder, 'pipe')
    execFileSync('mkfifo', [path])
    const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    onTestFinished(() => closeSync(reader))
    const service = await serve(['--drain-timeout', '1s'], {
      folder,
      through: ['sh', '-c', 'exec "$@" 2> "$0"', path],
    })
    const connections = await Promise.all(
      Array.from({ length: 20 }, () => connectTo(service.endpoint)),
    )
    const ask = async (target: string, status: number, [connection] = connections) => {
      connection?.send(buildRequest(testToken, { target }))
      expect((await connection?.readResponse())?.status).toBe(status)
    }
    const askOften = async (times: number) => {
      for (let count = 0; count < times; count += connections.length)
        await Promise.all(connections.map((each) => ask('/nothing', 404, [each])))
    }
    await askOften(10_000)
    let log = ''
    const bytes = Buffer.alloc(65_536)
    const readMore = () => {
      const length = ignoreSystemError(() => readSync(reader, bytes)) ?? 0 // EAGAIN when it is empty
      log += bytes.toString('utf8', 0, length)
      return log
    }
    // What the backlog held, whose lines come in blocks of 64 KiB, and a new line
    await expect
      .poll(() => readMore().length, pollOptions)
      .toBeGreaterThan(1_048_576 - 65_536 - 300)
    const kept = async () => {
      await ask('/openapi.json', 405)
      return readMore()
    }
    await expect.poll(kept, pollOptions).toContain('/openapi.json')
    // A pipe takes the part of a line for which it has room, and the rest after it was read.
    await expect.poll(() => readMore().endsWith('\n'), pollOptions).toBe(true)
    expect(log.length).toBeLessThan(1_048_576 + 3 * 65_536)
    for (const line of log.trimEnd().split('\n'))
      expect(JSON.parse(line)).toMatchObject({ level: 'info' })
    await askOften(500)
    expect((await service.stop()).code).toBeOneOf([0, 143])
  },
)

const input = `echo '${plant.trim()}' | "$plants" import -q > /dev/null`

test.runIf(isLinux).each([
  ['export /dev/stdout', plant],
  ['export >(cat)', plant],
  ['export /dev/null; echo none', 'none'],
])('plants %s writes to a device or a pipe without a temporary file', async (line, text) => {
  const user = new Sandbox()
  const script = `${input}; exec 4> result; "$plants" ${line} | cat >&4; cat result`
  expect((await runBash(user, script)).out).toContain(text)
})

test.each([
  ['has no reader', '2> >(true)'],
  ['is closed', '2>&-'],
  ...(isLinux ? [['takes nothing', '2> /dev/full']] : []),
])('a stderr that %s does not change the result of a command', async (_, redirection) => {
  const answers = [
    buildJsonResponse(503, { error: 503, message: 'Busy' }),
    buildJsonResponse(200, { name: 'Fern' }),
  ]
  const { url } = await ScriptedServer.listen({ posts: answers })
  const create = `"$plants" create --id 1 --name Fern -v --store ${url} ${redirection}`
  const env = { PLANTS_TOKEN: testToken }
  expect(await runBash(new Sandbox(), create, env)).toEqual(toTextResult('{"name":"Fern"}\n'))
})

test('a stdin that never ends does not delay an error when flags were given', async () => {
  const result = await new Sandbox().spawn('create --id 1', { stdin: 'pipe' })
  expect(result).toMatchObject({ code: 2, out: '' })
})

test.each(['create --id "$id" --name "$name"', 'get "$id"', 'delete "$id" --yes'])(
  'plants %s in a shell loop does not read the stdin of the loop',
  async (command) => {
    const user = new Sandbox()
    const ids = [1, 2, 3]
    user.write('list', ids.map((id) => `${id} Plant ${id}\n`).join(''))
    const stdin = ids.map((id) => `{"id":${id},"name":"Old"}\n`).join('')
    if (!command.startsWith('create')) await user.run('import', { stdin })
    const loop = `while read -r id name; do "$plants" ${command}; done < list`
    const { code, out } = await runBash(user, loop)
    expect([code, out.split('\n').length - 1]).toEqual([0, 3])
  },
)
