import { expect, test, vi } from 'vitest'
import { openLog } from '../../../src/server/log.js'

function opened() {
  const written: string[] = []
  const log = async (lines: string) => void written.push(lines)
  const output = { isTerminal: false, columns: 80, rows: 24, log, write: log, stream: () => process.stderr }
  const logger = openLog({ output, level: 'info', delay: 100 })
  const count = () => written.map((lines) => lines.split('\n').length - 1)
  return { logger, written, count }
}

test('lines of requests are written together: after 100 ms, 64 KiB, with another line, or at the end', () => {
  vi.useFakeTimers()
  try {
    const { logger, written, count } = opened()
    for (let line = 0; line < 4; line += 1) logger.info({ outcome: 'created', line })
    expect(count()).toEqual([1])
    vi.advanceTimersByTime(100)
    expect(count()).toEqual([1, 3])
    logger.info({ outcome: 'a'.repeat(65_536) })
    expect(count()).toEqual([1, 3, 1])
    logger.info({ outcome: 'created' })
    logger.info('draining')
    expect(count()).toEqual([1, 3, 1, 2])
    logger.info({ outcome: 'created' })
    logger.flush()
    expect(count()).toEqual([1, 3, 1, 2, 1])
    expect(JSON.parse(written.at(-1) ?? '')).toMatchObject({ level: 'info', outcome: 'created' })
    vi.advanceTimersByTime(1000)
    logger.info('later')
    expect(count()).toEqual([1, 3, 1, 2, 1, 1])
  } finally {
    vi.useRealTimers()
  }
})
