import { expect, test, vi } from 'vitest'
import { openLog } from '../../../src/server/log.js'

function opened() {
  const written: string[] = []
  const log = async (lines: string) => void written.push(lines)
  const output = { isTerminal: false, columns: 80, rows: 24, log, write: log, stream: () => process.stderr }
  const logger = openLog({ output, level: 'info' })
  const count = () => written.map((lines) => lines.split('\n').length - 1)
  return { logger, written, count }
}

test('the lines after the first one are written together, after 100 ms, 64 KiB, or at the end', () => {
  vi.useFakeTimers()
  try {
    const { logger, written, count } = opened()
    for (let line = 0; line < 4; line += 1) logger.info({ line })
    expect(count()).toEqual([1])
    vi.advanceTimersByTime(100)
    expect(count()).toEqual([1, 3])
    logger.info({ text: 'a'.repeat(65_536) })
    expect(count()).toEqual([1, 3, 1])
    logger.info('stopped')
    logger.flush()
    expect(count()).toEqual([1, 3, 1, 1])
    expect(JSON.parse(written.at(-1) ?? '')).toMatchObject({ level: 'info', msg: 'stopped' })
    vi.advanceTimersByTime(1000)
    logger.info('later')
    expect(count()).toEqual([1, 3, 1, 1, 1])
  } finally {
    vi.useRealTimers()
  }
})
