import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { Progress } from '../../../src/output/progress.js'
import { Hostile, json } from '../../helpers/hostile.js'
import { token } from '../../helpers/http-store.js'
import { takeTime } from '../../helpers/plant-service.js'
import type { RunOptions } from '../../helpers/run.js'
import { World } from '../../helpers/world.js'

/** A terminal, and what was drawn on it at which time. */
function screen(columns = 80) {
  const world = { time: 0, drawn: [] as string[] }
  const write = async (text: string) => void world.drawn.push(text)
  const stderr = { isTerminal: true, columns, write, log: write, stream: () => new PassThrough() }
  return Object.assign(world, { io: { now: () => world.time, stderr } })
}

test('the rate and the time left are those of this run', () => {
  const terminal = screen()
  const progress = new Progress(terminal.io, true, 0)
  progress.show({ done: 760_216, rejected: 0, part: 0.5 })
  terminal.time = 2000
  progress.show({ done: 960_216, rejected: 3, part: 0.75 })
  expect(terminal.drawn).toEqual([
    '\r50 %, 760,216 done\u001b[K',
    '\r75 %, 960,216 done, 3 rejected, 100,000/s, 2 s left\u001b[K',
  ])
})

test('it is drawn after the delay, ten times a second, no wider than the terminal', async () => {
  const terminal = screen(12)
  const progress = new Progress(terminal.io, true, 500)
  for (; terminal.time < 720; terminal.time += 30) progress.show({ done: terminal.time })
  await progress.clear()
  expect(terminal.drawn).toEqual(['\r510 done\u001b[K', '\r630 done, 1\u001b[K', '\r\u001b[K'])
})

test('a pipe, JSON errors and --verbose are not told what is waited for', async () => {
  const created = json(200, { name: 'Fern' })
  const isShown = async (flags: string, terminals: RunOptions['terminals'] = []) => {
    const service = await Hostile.listen({
      posts: [(socket) => void takeTime(2500).then(() => socket.write(created))],
    })
    const create = `create --id 1 --name Fern${flags} --store ${service.url}`
    const { code, err } = await new World().run(create, { env: { PLANTS_TOKEN: token }, terminals })
    return { code, isShown: err.includes('Waiting') }
  }
  const onTerminal = [' --output json', ' --verbose'].map((flags) =>
    isShown(flags, ['stdout', 'stderr']),
  )
  expect(await Promise.all([isShown(''), ...onTerminal])).toEqual(
    Array(3).fill({ code: 0, isShown: false }),
  )
})
