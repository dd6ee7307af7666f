import { once } from 'node:events'
import { expect, test } from 'vitest'
import { delayOf, maxTimer, wait } from '../../../src/platform/clock.js'

test('a timeout that is over, or longer than a timer can be, needs no warning of Node', async () => {
  const warnings: Error[] = []
  const note = (warning: Error) => warnings.push(warning)
  process.on('warning', note)
  await wait(-5, [])
  await once(AbortSignal.timeout(1), 'abort') // warnings come later
  process.off('warning', note)
  expect({ warnings, delays: [-5, 7, Infinity].map(delayOf) }).toEqual({ warnings: [], delays: [0, 7, maxTimer] })
})
