import { expect, test } from 'vitest'
import { PlantsError } from '../../../src/errors.js'
import { Log } from '../../../src/server/log.js'
import { parseObjects } from '../../helpers/sandbox/sandbox.js'
import { createLogTo } from '../../helpers/scripted-server/service.js'

function createLog(level: string, isTerminal: boolean) {
  const written: string[] = []
  const { output } = createLogTo(async (lines) => void written.push(lines))
  return {
    log: new Log({ output: { ...output, isTerminal }, level, delayMs: 0, redact: String }),
    text: () => written.join('').replaceAll(/\d\d:\d\d:\d\d/g, 'TIME'),
  }
}

test.each([
  ['info', ['created', 'warning', 'error']],
  ['warn', ['warning', 'error']],
])('a log of level %s has the same lines as text and as JSON', (level, expected) => {
  for (const isTerminal of [true, false]) {
    const { log, text } = createLog(level, isTerminal)
    log.record({ outcome: 'created', path: '/a\u001b[31m', milliseconds: 1.2 })
    log.warn('warning')
    log.error(new Error('error'), 'r-1')
    const found = ['created', 'warning', 'error'].filter((word) => text().includes(word))
    expect(found).toEqual(expected)
    expect(text()).not.toContain('\u001b')
  }
})

test('the log writes lines of requests together, in blocks of 64 KiB', () => {
  const blocks: string[] = []
  const { output } = createLogTo(async (lines) => void blocks.push(lines))
  const log = new Log({ output, level: 'info', delayMs: 3_600_000, redact: String })
  for (let index = 0; index < 1000; index += 1)
    log.record({ outcome: 'created', path: `/${'a'.repeat(100)}` })
  const longestLine = 300
  expect(blocks).toHaveLength(2)
  for (const { length } of blocks) {
    expect(length).toBeGreaterThanOrEqual(65_536)
    expect(length).toBeLessThan(65_536 + longestLine)
  }
})

test('the log has one sentence for a failure that a person can fix, and the stack of an internal error', () => {
  const away = new PlantsError('unavailable', 'Away', { cause: new Error('No route') })
  const lost = new PlantsError('unknownOutcome', 'Lost', { hint: 'Look', cause: away })
  const ours = [away, lost, new PlantsError('unwritable', 'The disk is full')]
  const defects = [
    new TypeError('x is undefined'),
    new PlantsError('internalError', 'Internal error'),
  ]
  const [json, terminal] = [createLog('info', false), createLog('info', true)]
  for (const { log } of [json, terminal])
    for (const failure of [...ours, ...defects]) log.error(failure, 'r-1')
  const line = { level: 'error', time: expect.any(String), requestId: 'r-1' }
  const matchStack = ({ message }: Error) => expect.stringMatching(RegExp(`: ${message}\\n {4}at `))
  expect(parseObjects(json.text())).toEqual([
    { ...line, code: 'unavailable', msg: 'Away', reason: 'No route' },
    { ...line, code: 'unknownOutcome', msg: 'Lost', reason: 'Away' },
    { ...line, code: 'unwritable', msg: 'The disk is full' },
    ...defects.map((defect) => ({ ...line, msg: 'failed', stack: matchStack(defect) })),
  ])
  expect(terminal.text().split('\n').slice(0, 5)).toEqual([
    'TIME error: Away requestId=r-1 code=unavailable reason=No route',
    'TIME error: Lost requestId=r-1 code=unknownOutcome reason=Away',
    'TIME error: The disk is full requestId=r-1 code=unwritable',
    'TIME error: failed requestId=r-1',
    '  TypeError: x is undefined',
  ])
})
