import { EventEmitter, once } from 'node:events'
import { afterEach, expect, test, vi } from 'vitest'
import { run } from '../../../src/cli/program/run.js'
import type { Input } from '../../../src/platform/io.js'
import { Captured, ioOf, type RunOptions } from '../../helpers/run.js'
import { answer, World } from '../../helpers/world.js'

afterEach(() => void vi.useRealTimers())

/** Runs a command whose stdin is a pipe that stays open until `send` is called. */
async function withOpenStdin(user: World, args: string, options: RunOptions) {
  const events = new EventEmitter()
  const isRead = once(events, 'read')
  const io = ioOf({ cwd: user.home, env: user.env, ...options })
  const stderr = new Captured(options, 'stderr')
  const stdin: Input = {
    ...io.stdin,
    isPiped: true,
    async *chunks() {
      const sent = once(events, 'sent')
      events.emit('read')
      yield Buffer.from(String(await sent))
    },
  }
  const done = run(args.split(' '), { ...io, stdin, stderr })
  await isRead
  return { stderr, send: (text: string) => events.emit('sent', text), done }
}

test.each([
  ['import', 'plants', '{"id":1,"name":"A"}'],
  ['create', 'a plant', '{"id":1,"name":"A"}'],
  ['get -', 'plants', '1'],
  ['delete - --yes', 'plants', '1'],
  ['update - --tag x', 'plants', '1'],
  ['auth login --from-stdin --store http://127.0.0.1:9', 'a token', 'x'],
])('%s reports once that it waits for %s on a silent stdin', async (args, what, input) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const user = new World()
  const { stderr, send, done } = await withOpenStdin(user, args, { terminals: ['stderr'] })
  vi.advanceTimersByTime(4999)
  await new Promise(setImmediate)
  expect(stderr.text).toBe('')
  vi.advanceTimersByTime(60_000)
  vi.useRealTimers()
  await expect.poll(() => stderr.text).toBe(`plants: Waiting for ${what} on stdin\n`)
  send(input)
  await done
  expect(stderr.text.match(/Waiting/g)).toHaveLength(1)
})

test.each<[string, RunOptions]>([
  ['import', {}],
  ['import --quiet', { terminals: ['stderr'] }],
])('%s waits without a word with %j', async (args, options) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const { stderr, send, done } = await withOpenStdin(new World(), args, options)
  vi.advanceTimersByTime(60_000)
  vi.useRealTimers()
  send('{"id":1,"name":"A"}')
  expect([await done, stderr.text]).toEqual([0, ''])
})

test.each(['get -', 'delete - --yes', 'update - --tag x'])(
  '%s takes /dev/null for an empty list',
  async (args) => {
    const user = new World()
    await user.run('create --id 1 --name A')
    expect(await user.run(args)).toEqual(answer())
    expect(await user.run(args, { stdin: '' })).toEqual(answer())
  },
)

test('import - takes /dev/null for no plants', async () => {
  const none = { code: 0, err: 'plants: warning: stdin contains no records\n' }
  expect(await new World().run('import -')).toMatchObject(none)
})
