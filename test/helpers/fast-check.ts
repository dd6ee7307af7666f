import fc from 'fast-check'
import { rounds, seed } from './rounds.js'

// What fails is reported with the seed and the path that lead to it.
fc.configureGlobal({ seed })

export { fc }

/** Tries what holds for any values, so many times, and more often in a soak. */
export function check<Values extends [unknown, ...unknown[]]>(
  times: number,
  arbitraries: { [At in keyof Values]: fc.Arbitrary<Values[At]> },
  holds: (...values: Values) => unknown,
): Promise<void> {
  const property = fc.asyncProperty(
    fc.tuple<Values>(...arbitraries),
    async (values) => void (await holds(...values)),
  )
  return fc.assert(property, { numRuns: rounds(times) })
}
