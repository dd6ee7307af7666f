import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { Progress } from '../../../src/output/progress.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'

/** A terminal, and what was drawn on it at which time. */
function screen(columns = 80) {
  const sandbox = { time: 0, drawn: [] as string[] }
  const write = async (text: string) => void sandbox.drawn.push(text)
  const stderr = {
    isTerminal: true,
    columns,
    write,
    log: write,
    openStream: () => new PassThrough(),
  }
  return Object.assign(sandbox, { io: { now: () => sandbox.time, stderr } })
}

test('progress shows the rate and the remaining time of this run', () => {
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

test.each([
  { part: 0.999, remaining: '1 s' },
  { part: 0.25, remaining: '3 s' },
  { part: 0.02, remaining: '49 s' },
  { part: 0.01, remaining: '1 min 39 s' },
  { part: 0.0002, remaining: '1 h 23 min' },
])(
  'progress shows $remaining as the remaining time after $part in a second',
  ({ part, remaining }) => {
    const terminal = screen()
    const progress = new Progress(terminal.io, true, 0)
    progress.show({ done: 0, part: 0 })
    terminal.time = 1000
    progress.show({ done: 0, part })
    expect(terminal.drawn.at(-1)).toContain(`, ${remaining} left`)
  },
)

test('progress is drawn after a delay, ten times a second, no wider than the terminal', async () => {
  const terminal = screen(12)
  const progress = new Progress(terminal.io, true, 500)
  for (; terminal.time < 720; terminal.time += 30) progress.show({ done: terminal.time })
  await progress.clear()
  expect(terminal.drawn).toEqual(['\r510 done\u001b[K', '\r630 done, 1\u001b[K', '\r\u001b[K'])
})

test('an import draws progress on a terminal, but not with --quiet', async () => {
  const user = new Sandbox()
  const drawn = async (flags: string) => {
    const how = { stdin: '{"id":1,"name":"Fern"}', terminals: ['stderr' as const] }
    return (await user.run(`import --output text${flags}`, how)).err
  }
  expect(await drawn('')).toBe('\r1 done\u001b[K\r\u001b[K')
  expect(await drawn(' --quiet')).toBe('')
})
